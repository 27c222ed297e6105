import { describe, expect, it } from "vitest";
import { diskError } from "../../src/files/disk-error.ts";

const systemError = (code: string) => Object.assign(new Error(code), { code });

describe("an error of the file system", () => {
  it.each([
    ["ENOSPC", "disk_full", "no space is left on the disk (ENOSPC)"],
    ["EDQUOT", "disk_full", "the disk quota is used up (EDQUOT)"],
    ["EFBIG", "disk_full", "the file system allows no file of that size (EFBIG)"],
    ["EACCES", "unavailable", "permission is denied (EACCES)"],
    ["EROFS", "unavailable", "the file system is read-only (EROFS)"],
    ["ENOENT", "unavailable", "a file or folder is missing (ENOENT)"],
    ["EIO", "unavailable", "the disk reports an error (EIO)"],
    ["ENAMETOOLONG", "unavailable", "the name is too long for the file system (ENAMETOOLONG)"],
    ["EMFILE", "unavailable", "the process has too many files open (EMFILE)"],
    ["EXDEV", "unavailable", "file system error EXDEV"],
  ])("%s becomes %s, in words: %s", (code, expected, reason) => {
    expect(diskError("write a file", systemError(code))).toMatchObject({
      code: expected,
      message: `cannot write a file: ${reason}`,
    });
  });

  it("is the one of the write if closing the file fails too", () => {
    const error = new SuppressedError(systemError("EIO"), systemError("ENOSPC"));
    expect(diskError("write a file", error)).toMatchObject({ code: "disk_full" });
  });

  it("is told from a defect of the program, which stays as it is", () => {
    const defect = systemError("ERR_INVALID_ARG_TYPE");
    expect(diskError("write a file", defect)).toBe(defect);
  });
});
