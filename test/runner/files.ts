import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { makeFolder } from "../folder.ts";
import { openDiskFiles } from "../../src/files/disk.ts";
import type { FileStore } from "../../src/files/files.ts";

export interface TestFiles extends FileStore {
  /** Ids that have parts, and ids that have a result. */
  parts(): string[];
  results(): string[];
  text(id: string): string;
  /** Where the result of a task is, in a folder that is there. */
  resultPath(id: string): string;
}

/** Creates files on the disk that a test can inspect, removed after it. */
export function createTestFiles(): TestFiles {
  const folder = makeFolder();
  const names = (kind: string) => {
    const path = join(folder, kind);
    return existsSync(path) ? readdirSync(path).toSorted() : [];
  };
  return {
    ...openDiskFiles({ folder }),
    parts: () => names("parts"),
    results: () => names("files"),
    text: (id) => readFileSync(join(folder, "files", id), "utf8"),
    resultPath(id) {
      mkdirSync(join(folder, "files"), { recursive: true });
      return join(folder, "files", id);
    },
  };
}
