import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { DownloadJob, OtherFile } from "../../src/engines/engine.ts";
import type { PageInfo } from "../../src/model/page-info.ts";
import type { TaskOptions } from "../../src/model/task.ts";
import { writeMedium } from "./engine.ts";
import { createRunnerHarness } from "./harness.ts";
import { createTestResolver, pageOf } from "./resolver.ts";

const thumbnails = [{ url: "https://video.example.com/poster.jpg", width: null, height: null }];

/** Runs a task; returns the codes of its file's warnings. `hasCover`: a picture of the page could be had. */
async function warningsOf(page: Partial<PageInfo>, options: TaskOptions, { hasCover }: { hasCover: boolean }) {
  const { runner, add, until } = createRunnerHarness({
    resolver: createTestResolver(async (url) => pageOf(url, page)),
    downloads: async (job) => ({ ...(await writeMedium(job)), others: hasCover ? [await writeCover(job)] : [] }),
  });
  runner.start();
  const { id } = await add(undefined, options);
  const { file } = await until(id, "succeeded");
  return file?.warnings?.map(({ code }) => code);
}

async function writeCover({ folder }: DownloadJob): Promise<OtherFile> {
  const path = join(folder, "cover.jpg");
  await writeFile(path, "x");
  return { kind: "cover", path, ext: "jpg", mime_type: "image/jpeg", size: 1, sha256: "00" };
}

it("a file that was to get its page's picture has a warning if none could be had", async () => {
  expect(await warningsOf({ thumbnails }, { embed: true }, { hasCover: false })).toEqual(["not_embedded"]);
});

it.each<[string, Partial<PageInfo>, TaskOptions, { hasCover: boolean }]>([
  ["could be had", { thumbnails }, { embed: true }, { hasCover: true }],
  ["was not asked for", { thumbnails }, {}, { hasCover: false }],
  ["was not wanted", { thumbnails }, { embed: false }, { hasCover: false }],
  ["is not there, as the page has none", {}, { embed: true }, { hasCover: false }],
])("a file has no such warning if the picture %s", async (_why, page, options, cover) => {
  expect(await warningsOf(page, options, cover)).toEqual([]);
});
