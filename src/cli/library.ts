import { pino } from "pino";
import { readPreviewConfig } from "../config/config.ts";
import { previewLibrary } from "../services.ts";
import { messageOf } from "../model/errors.ts";

/**
 * Shows where the library would have the file of a page: `node src/cli/library.ts preview URL`. It reads the settings that
 * matter for that, and the page, as the service does, and downloads nothing. The path, below LIBRARY_DIR, goes to standard output.
 */
const usage =
  "usage: npm run -s library -- preview URL\nThe path that the library would give the file of the page at URL, as the service's settings say.\n";
const [command = "", text = "", ...rest] = process.argv.slice(2);
const page = URL.parse(text);

if (["help", "--help", "-h"].includes(command)) process.stdout.write(usage);
else if (command !== "preview") refuse(`the command must be preview, got ${JSON.stringify(command)}`);
else if (page === null) refuse(`URL must begin with https:// or http://, got ${JSON.stringify(text)}`);
else if (rest.length > 0) refuse(`one URL at a time, got ${rest.length + 1}`);
else {
  try {
    const logger = pino({ level: "warn" }, pino.destination(2));
    process.stdout.write(`${await previewLibrary(readPreviewConfig(), page, logger)}\n`);
  } catch (error) {
    process.stderr.write(`library: ${messageOf(error)}\n`);
    process.exitCode = 1;
  }
}

function refuse(fault: string): void {
  process.stderr.write(`library: ${fault}\n${usage}`);
  process.exitCode = 2;
}
