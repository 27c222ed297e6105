import { writeFileSync } from "node:fs";
import { expect, it } from "vitest";
import { createGradualFlush } from "../../src/engines/native/parts/disk-writes.ts";
import { openFolder } from "../remux/mp4-media.ts";

const folder = openFolder();
const MiB = 1024 * 1024;

it("fails at the end if a flush failed while the file was written", async () => {
  const path = folder.path("failed");
  const flush = createGradualFlush();
  flush.onWritten(path, 64 * MiB);
  await expect(flush.finish(path)).rejects.toMatchObject({ code: "ENOENT" });
  writeFileSync(path, "written again");
  await expect(flush.finish(path)).rejects.toMatchObject({ code: "ENOENT" });
});

it("begins after each 64 MiB that were written", async () => {
  // A flush of the first file fails.
  const [missing, written] = [folder.path("missing"), folder.path("written")];
  writeFileSync(written, "complete");
  const flush = createGradualFlush();
  flush.onWritten(missing, 63 * MiB);
  await expect(flush.finish(written)).resolves.toBeUndefined();
  flush.onWritten(written, 64 * MiB);
  await expect(flush.finish(written)).resolves.toBeUndefined();
  flush.onWritten(missing, 127 * MiB);
  await expect(flush.finish(written)).resolves.toBeUndefined();
  flush.onWritten(missing, 128 * MiB);
  await expect(flush.finish(written)).rejects.toMatchObject({ code: "ENOENT" });
});
