import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";

/** Attack material that is kept outside of the repository; tests that need it skip without it. */
const corpusDir = resolve(
  import.meta.dirname,
  "../..",
  process.env["CORPUS_DIR"] ?? "../shared/corpus",
);

/** The rows of a corpus file, or none where there is no corpus. */
export function corpusRows<Row>(file: string): Row[] {
  const path = `${corpusDir}/${file}`;
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as Row[]) : [];
}
