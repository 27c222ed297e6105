import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { openFolder, readNames } from "../../../src/runner/library/folders.ts";
import { FolderNames } from "../../../src/runner/library/unique-names.ts";
import { makeFolder } from "../../folder.ts";

it("other requests have their turns while the names of a large folder are compared", async () => {
  const path = makeFolder();
  for (let n = 0; n < 1_200; n += 1) writeFileSync(join(path, `${n}.mp4`), "");
  await using folder = await openFolder(path, "films");
  let turn = 0;
  let isReading = true;
  const count = () => {
    turn += 1;
    if (isReading) setImmediate(count);
  };
  const byTurn = new Map<number, number>();
  const { addFile } = FolderNames.prototype;
  vi.spyOn(FolderNames.prototype, "addFile").mockImplementation(function addCounted(this: FolderNames, name) {
    byTurn.set(turn, (byTurn.get(turn) ?? 0) + 1);
    addFile.call(this, name);
  });
  setImmediate(count);
  const names = await readNames(folder);
  isReading = false;
  vi.restoreAllMocks();
  expect(names.chooseFolder("7.MP4")).toBe("7.MP4 (2)");
  expect([...byTurn.values()].reduce((sum, number) => sum + number)).toBe(1_200);
  expect(Math.max(...byTurn.values())).toBeLessThanOrEqual(500);
});
