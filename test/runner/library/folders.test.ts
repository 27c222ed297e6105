import { utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { KnownNames, openFolder } from "../../../src/runner/library/folders.ts";
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
  const names = await new KnownNames().read(folder);
  isReading = false;
  vi.restoreAllMocks();
  expect(names.chooseFolder("7.MP4")).toBe("7.MP4 (2)");
  expect([...byTurn.values()].reduce((sum, number) => sum + number)).toBe(1_200);
  expect(Math.max(...byTurn.values())).toBeLessThanOrEqual(500);
});

it("the names of a folder are read once, and again when something else has put a file there", async () => {
  const path = makeFolder();
  writeFileSync(join(path, "one.mp4"), "");
  await using folder = await openFolder(path, "films");
  const known = new KnownNames();
  const first = await known.read(folder);
  writeFileSync(join(path, "two.mp4"), "");
  await known.add(folder, { files: ["two.mp4"] });
  expect(await known.read(folder)).toBe(first);
  expect(first.chooseFolder("TWO.MP4")).toBe("TWO.MP4 (2)");
  writeFileSync(join(path, "three.mp4"), "");
  // Some file systems keep times that are too coarse for a test.
  utimesSync(path, 0, 0);
  const second = await known.read(folder);
  expect(second).not.toBe(first);
  expect(second.chooseFolder("THREE.MP4")).toBe("THREE.MP4 (2)");
});
