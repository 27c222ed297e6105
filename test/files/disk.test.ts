import { randomUUIDv7 } from "node:crypto";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import fs from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { openDiskFiles } from "../../src/files/disk.ts";
import { describeFiles } from "../contracts/files.ts";
import { makeFolder } from "../stores/folder.ts";

describeFiles("the disk", () => openDiskFiles({ folder: join(makeFolder(), "data") }));

describe("files on the disk", () => {
  it("creates no folder before there is something to store in it", async () => {
    const folder = makeFolder();
    const files = openDiskFiles({ folder: join(folder, "data") });
    await files.open(randomUUIDv7());
    await files.remove(randomUUIDv7());
    await files.ids();
    expect(readdirSync(folder)).toEqual([]);
  });

  it("are found by the next process, under the task's id alone", async () => {
    const folder = makeFolder();
    const id = randomUUIDv7();
    const files = openDiskFiles({ folder });
    const path = join(await files.openWorkFolder(id), "result.mp4");
    writeFileSync(path, "content");
    await files.saveResult(id, path);
    expect(readdirSync(join(folder, "files"))).toEqual([id]);
    const opened = await openDiskFiles({ folder }).open(id);
    expect(opened?.size).toBe(7);
    await opened?.handle.close();
  });

  it("are listed without files that are not of this service", async () => {
    const folder = makeFolder();
    const files = openDiskFiles({ folder });
    const id = randomUUIDv7();
    await files.openWorkFolder(id);
    mkdirSync(join(folder, "parts", "lost+found"));
    mkdirSync(join(folder, "files"));
    writeFileSync(join(folder, "files", ".DS_Store"), "");
    expect(await files.ids()).toEqual([id]);
  });

  it("have the free space of the file system that they are on", async () => {
    const folder = makeFolder();
    const freeBytes = await openDiskFiles({ folder }).freeBytes();
    const { bavail, bsize, blocks } = await fs.statfs(folder);
    // Others write to the disk meanwhile.
    expect(Math.abs(freeBytes - bavail * bsize)).toBeLessThan((blocks * bsize) / 100);
  });

  it("fail with `unavailable` if a file is in place of a folder", async () => {
    const folder = makeFolder();
    writeFileSync(join(folder, "parts"), "");
    await expect(openDiskFiles({ folder }).openWorkFolder(randomUUIDv7())).rejects.toMatchObject({
      name: "ServiceError",
      code: "unavailable",
      message: expect.stringMatching(/work folder of task .* file system error ENOTDIR$/),
      cause: { code: "ENOTDIR" },
    });
  });

  it.each([
    ["ENOSPC", "disk_full"],
    ["EDQUOT", "disk_full"],
    ["EIO", "unavailable"],
    ["EMFILE", "unavailable"],
  ])("fail on %s with %s, and leave no result", async (errno, code) => {
    const files = openDiskFiles({ folder: makeFolder() });
    const id = randomUUIDv7();
    const path = join(await files.openWorkFolder(id), "result");
    writeFileSync(path, "content");
    failNext("rename", errno);
    await expect(files.saveResult(id, path)).rejects.toMatchObject({
      code,
      cause: { code: errno },
    });
    expect(await files.open(id)).toBeUndefined();
    await files.saveResult(id, path);
    expect(await files.ids()).toEqual([id]);
  });
});

/** Makes the next call fail, as a full or broken disk does. */
function failNext(call: "rename", code: string): void {
  const spy = vi.spyOn(fs, call).mockRejectedValueOnce(Object.assign(new Error(code), { code }));
  syncBuiltinESMExports();
  onTestFinished(() => {
    spy.mockRestore();
    syncBuiltinESMExports();
  });
}
