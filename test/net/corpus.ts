import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";

/** Attack URLs and addresses from outside of the repository; tests that need them are skipped without. */
const corpusDir = resolve(import.meta.dirname, "../..", process.env["CORPUS_DIR"] ?? "../shared/corpus");

/** Returns the rows of a corpus file, none if there is no corpus. */
export function corpusRows<Row>(file: string): Row[] {
  const path = `${corpusDir}/${file}`;
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as Row[]) : [];
}
