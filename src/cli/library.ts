import { pino } from "pino";
import { readPreviewConfig } from "../config/config.ts";
import { previewLibrary } from "../services.ts";
import { messageOf } from "../model/errors.ts";

/**
 * Shows where the library would have the file of a page: `node src/cli/library.ts preview URL`. It reads the settings that
 * matter for that, and the page, as the service does, and downloads nothing. The path, below LIBRARY_DIR, goes to standard output.
 */
const usage = "usage: npm run -s library -- preview URL";
const [command, url = "", ...rest] = process.argv.slice(2);
const page = URL.parse(url);
if (command !== "preview" || page === null || rest.length > 0) {
  process.stderr.write(`${usage}\n`);
  process.exitCode = 2;
} else {
  try {
    const logger = pino({ level: "warn" }, pino.destination(2));
    process.stdout.write(`${await previewLibrary(readPreviewConfig(), page, logger)}\n`);
  } catch (error) {
    process.stderr.write(`library: ${messageOf(error)}\n`);
    process.exitCode = 1;
  }
}
