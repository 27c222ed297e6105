import { describe, expect, it } from "vitest";
import { diskError } from "../../src/files/disk-error.ts";

const systemError = (code: string) => Object.assign(new Error(code), { code });

describe("an error of the file system", () => {
  it.each([
    ["ENOSPC", "disk_full"],
    ["EDQUOT", "disk_full"],
    ["EFBIG", "disk_full"],
    ["EIO", "unavailable"],
  ])("%s becomes %s", (code, expected) => {
    expect(diskError("write a file", systemError(code))).toMatchObject({
      code: expected,
      message: `cannot write a file: file system error ${code}`,
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
