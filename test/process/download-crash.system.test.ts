import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createRandom } from "../random.ts";
import { crashDownload, crashMedia } from "./crash-download.ts";
import { downloadMany } from "./download-many.ts";

let dataDir: string;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "unreel-crash-download-"));
});
afterEach(() => rmSync(dataDir, { recursive: true }));

it.each(crashMedia())("completes $name as if the service had never been killed", async (medium) => {
  const report = await crashDownload({ dataDir, medium, kills: 2, random: createRandom(3) });
  expect(report).toMatchObject({ kills: 2, isRight: true, halfFiles: 0 });
});

it("completes 40 tasks, each run once, and keeps nothing of deleted ones", async () => {
  const report = await downloadMany({ dataDir, tasks: 40 });
  const none = { lost: 0, runTwice: 0, orphans: 0, undeleted: 0 };
  expect(report).toMatchObject({ succeeded: 36, ...none });
});
