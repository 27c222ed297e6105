import { expect, it } from "vitest";
import { makeFolder } from "../folder.ts";
import { createRandom } from "../random.ts";
import { crashDownload, crashMedia } from "./crash-download.ts";
import { downloadMany } from "./download-many.ts";

it.each(crashMedia())("completes $name as if the service had never been killed", async (medium) => {
  const report = await crashDownload({ dataDir: makeFolder(), medium, kills: 2, random: createRandom(3) });
  expect(report).toMatchObject({ kills: 2, isRight: true, halfFiles: 0 });
});

it("completes 40 tasks, each run once, and keeps nothing of deleted ones", async () => {
  const report = await downloadMany({ dataDir: makeFolder(), tasks: 40 });
  const none = { lost: 0, runTwice: 0, orphans: 0, undeleted: 0 };
  expect(report).toMatchObject({ succeeded: 36, ...none });
});
