import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, onTestFinished } from "vitest";

/** Creates a folder for one test, removed after it. */
export function makeFolder(): string {
  const folder = createFolder();
  onTestFinished(() => removeFolder(folder));
  return folder;
}

/** Creates a folder for the tests of a file or a block, removed after the last. */
export function makeSharedFolder(): string {
  const folder = createFolder();
  afterAll(() => removeFolder(folder));
  return folder;
}

function createFolder(): string {
  return mkdtempSync(join(tmpdir(), "unreel-test-"));
}

function removeFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
}
