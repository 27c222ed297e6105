import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDiskFiles } from "../../src/files/disk.ts";
import type { FileStore } from "../../src/files/files.ts";

export interface TestFiles extends FileStore {
  /** Ids that have parts, and ids that have a result. */
  parts(): string[];
  results(): string[];
  text(id: string): string;
  destroy(): void;
}

/** Creates files on the disk that a test can inspect. */
export function createTestFiles(): TestFiles {
  const folder = mkdtempSync(join(tmpdir(), "unreel-runner-"));
  const names = (kind: string) => {
    const path = join(folder, kind);
    return existsSync(path) ? readdirSync(path).toSorted() : [];
  };
  return {
    ...openDiskFiles({ folder }),
    parts: () => names("parts"),
    results: () => names("files"),
    text: (id) => readFileSync(join(folder, "files", id), "utf8"),
    destroy: () => rmSync(folder, { recursive: true, force: true }),
  };
}
