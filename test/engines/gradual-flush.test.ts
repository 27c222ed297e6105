import { writeFileSync } from "node:fs";
import { afterAll, expect, it } from "vitest";
import { createGradualFlush } from "../../src/engines/native/output/gradual-flush.ts";
import { openFolder } from "../remux/mp4-media.ts";

const folder = openFolder();
afterAll(folder.remove);
const MiB = 1024 * 1024;

it("fails at the end if a flush failed while the file was written", async () => {
  const path = folder.path("failed");
  const flush = createGradualFlush();
  flush.onWritten(path, 64 * MiB);
  await expect(flush.finish(path)).rejects.toMatchObject({ code: "ENOENT" });
  writeFileSync(path, "written again");
  await expect(flush.finish(path)).rejects.toMatchObject({ code: "ENOENT" });
});

it("begins when 64 MiB have been written", async () => {
  const path = folder.path("short");
  const flush = createGradualFlush();
  flush.onWritten(path, 63 * MiB);
  writeFileSync(path, "complete");
  await flush.finish(path);
});
