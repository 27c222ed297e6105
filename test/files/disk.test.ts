import { randomUUIDv7 } from "node:crypto";
import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import fs from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { openDiskFiles } from "../../src/files/disk.ts";
import { describeFiles } from "../contracts/files.ts";
import { makeFolder } from "../folder.ts";

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
      message: expect.stringMatching(/work folder of task .* a file is in the place of a folder \(ENOTDIR\)$/),
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

describe.skipIf(process.platform === "win32")("symbolic links in the folders", () => {
  const unavailable = (message: string | RegExp) => ({
    name: "ServiceError",
    code: "unavailable",
    message: expect.stringMatching(message),
  });

  /** A folder with a secret file, and a file store whose folders exist. */
  function plant() {
    const outside = makeFolder();
    const secret = join(outside, "secret");
    writeFileSync(secret, "secret");
    const folder = makeFolder();
    for (const name of ["files", "parts"]) mkdirSync(join(folder, name));
    const id = randomUUIDv7();
    const files = openDiskFiles({ folder });
    const [result, work] = [join(folder, "files", id), join(folder, "parts", id)];
    const isUntouched = () => {
      expect(readdirSync(outside)).toEqual(["secret"]);
      expect(readFileSync(secret, "utf8")).toBe("secret");
    };
    return { outside, secret, id, files, result, work, isUntouched };
  }

  it("are not opened as a result", async () => {
    const { secret, id, files, result } = plant();
    symlinkSync(secret, result);
    await expect(files.open(id)).rejects.toMatchObject(
      unavailable(/^cannot open the file of task .*: a symbolic link is in its place \(ELOOP\)$/),
    );
  });

  it("are not used as a work folder", async () => {
    const { outside, id, files, work, isUntouched } = plant();
    symlinkSync(outside, work);
    await expect(files.openWorkFolder(id)).rejects.toMatchObject(
      unavailable(new RegExp(`^${id} must be a folder, and is a symbolic link$`)),
    );
    isUntouched();
  });

  it("are not saved as a result", async () => {
    const { secret, id, files, isUntouched } = plant();
    const path = join(await files.openWorkFolder(id), "result");
    symlinkSync(secret, path);
    await expect(files.saveResult(id, path)).rejects.toMatchObject(
      unavailable(/^result must be a file, and is a symbolic link$/),
    );
    expect(await files.open(id)).toBeUndefined();
    isUntouched();
  });

  it("are replaced by a result, and not written through", async () => {
    const { secret, id, files, result, isUntouched } = plant();
    symlinkSync(secret, result);
    const path = join(await files.openWorkFolder(id), "result");
    writeFileSync(path, "content");
    await files.saveResult(id, path);
    expect(readFileSync(result, "utf8")).toBe("content");
    isUntouched();
  });

  it("are removed themselves, and not what they lead to", async () => {
    const { outside, secret, id, files, result, work, isUntouched } = plant();
    symlinkSync(secret, result);
    symlinkSync(outside, work);
    expect(await files.ids()).toEqual([id]);
    await files.remove(id);
    expect(await files.ids()).toEqual([]);
    symlinkSync(outside, join(await files.openWorkFolder(id), "link"));
    await files.removeWorkFolder(id);
    expect(await files.ids()).toEqual([]);
    isUntouched();
  });

  it("and pipes are not waited for", async () => {
    const { id, files, result } = plant();
    execFileSync("mkfifo", [result]);
    await expect(files.open(id)).rejects.toMatchObject(unavailable(/must be a file, and is none$/));
  });

  it("and pipes are not waited for where a file is written to, either", async () => {
    const { id, files } = plant();
    execFileSync("mkfifo", [join(await files.openWorkFolder(id), "stream.request")]);
    await expect(files.openStream(id)).rejects.toMatchObject(unavailable(/ENXIO/));
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
