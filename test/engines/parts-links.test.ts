import { readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { hashOfFile, leaveAfter, mediumOf, sha256, startPartsHarness } from "./parts-harness.ts";
import { makeFolder } from "../folder.ts";

const medium = mediumOf(100_000);
const refusal = {
  name: "ServiceError",
  code: "unavailable",
  message: expect.stringMatching(/a symbolic link is in its place \(ELOOP\)$/),
};

async function plant() {
  const outside = makeFolder();
  const secret = join(outside, "secret");
  writeFileSync(secret, "secret");
  const harness = await startPartsHarness();
  harness.server.serve("/medium", medium, { stallAfter: 50_000 });
  return { harness, secret, isUntouched: () => readFileSync(secret, "utf8") === "secret" };
}

describe.skipIf(process.platform === "win32")("a symbolic link in the folder of the parts", () => {
  it("in place of a new part is refused, and not written through", async () => {
    const { harness, secret, isUntouched } = await plant();
    harness.server.serve("/medium", medium);
    const parts = await harness.open();
    symlinkSync(secret, join(harness.folder, "file"));
    await expect(harness.fetch(parts)).rejects.toMatchObject(refusal);
    expect(isUntouched()).toBe(true);
  });

  it("in place of a part of an earlier run is removed, and the part is fetched again", async () => {
    const { harness, secret, isUntouched } = await plant();
    await leaveAfter(harness, 50_000);
    harness.server.serve("/medium", medium);
    const file = join(harness.folder, "file");
    rmSync(file);
    symlinkSync(secret, file);
    const { path } = await harness.fetch(await harness.open());
    expect(await hashOfFile(path)).toBe(sha256(medium));
    expect(isUntouched()).toBe(true);
  });

  it("in place of the folder itself is refused, and nothing in it is removed", async () => {
    const { harness, secret, isUntouched } = await plant();
    const folder = join(harness.folder, "link");
    symlinkSync(dirname(secret), folder);
    await expect(harness.open({ folder })).rejects.toMatchObject({
      code: "unavailable",
      message: "link must be a folder, and is a symbolic link",
    });
    expect(readdirSync(dirname(secret))).toEqual(["secret"]);
    expect(isUntouched()).toBe(true);
  });

  it("in place of the journal is refused", async () => {
    const { harness, secret, isUntouched } = await plant();
    symlinkSync(secret, join(harness.folder, "journal.ndjson"));
    await expect(harness.open()).rejects.toMatchObject(refusal);
    expect(isUntouched()).toBe(true);
  });
});
