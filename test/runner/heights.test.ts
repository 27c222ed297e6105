import { expect, it } from "vitest";
import type { TaskOptions } from "../../src/model/task.ts";
import { createPageResolver } from "../resolvers/page/local-reader.ts";
import { readMedium } from "../media/rendition.ts";
import { createSavedClient } from "../resolvers/page/saved-client.ts";
import { formatOf } from "../formats.ts";
import { writeMedium } from "./engine.ts";
import { createRunnerHarness } from "./harness.ts";
import { createTestResolver, pageOf } from "./resolver.ts";

it.each([
  [54, "failed"],
  [90, "succeeded"],
])("a task that allows %d lines of a page whose only file has 90 has %s", async (max_height, state) => {
  const pageUrl = "https://video.example.com/watch";
  const client = createSavedClient({
    [pageUrl]: { body: `<video src="/1.mp4"></video>` },
    "https://video.example.com/1.mp4": { type: "video/mp4", body: readMedium("index-first.mp4") },
  });
  const resolver = createPageResolver({ client, pageMaxBytes: 1e6 });
  const { runner, add, until } = createRunnerHarness({ resolver });
  runner.start();
  const { id } = await add(pageUrl, { max_height });
  const { error } = await until(id, ({ state: now }) => now === "failed" || now === "succeeded");
  expect(error?.code).toBe(state === "failed" ? "format_unavailable" : undefined);
});

it.each([
  [["vp9"], "/360.webm"],
  [["h264"], "/720.mp4"],
] as const)("a task that prefers %j gets it from a page that states no codecs", async (preferred_codecs, path) => {
  const pageUrl = "https://video.example.com/watch";
  const sources = ["/720.mp4", "/360.webm"].map((name) => `<source src="${name}" label="${parseInt(name.slice(1))}p">`);
  const client = createSavedClient({
    [pageUrl]: { body: `<video>${sources.join("")}</video>` },
    "https://video.example.com/720.mp4": { type: "video/mp4", body: readMedium("index-first.mp4") },
    "https://video.example.com/360.webm": { type: "video/webm", body: readMedium("vp9-opus.webm") },
  });
  const jobs: string[] = [];
  const { runner, add, until } = createRunnerHarness({
    resolver: createPageResolver({ client, pageMaxBytes: 1e6 }),
    downloads: async (job) => {
      jobs.push(job.format.url);
      return await writeMedium(job);
    },
  });
  runner.start();
  const { id } = await add(pageUrl, { preferred_codecs: [...preferred_codecs] });
  await until(id, "succeeded");
  expect(jobs).toEqual([`https://video.example.com${path}`]);
});

it.each<[TaskOptions, TaskOptions]>([
  [{}, {}],
  [{ max_height: 720 }, { max_height: 720 }],
  [{ preferred_codecs: ["h264"], subtitles: true }, { preferred_codecs: ["h264"] }],
  [{ preferred_codecs: ["h264"], max_height: 720, audio_only: true }, {}],
])("a task with %j has a format chosen within a manifest that was not read by %j", async (options, preference) => {
  const jobs: unknown[] = [];
  const { runner, add, until } = createRunnerHarness({
    resolver: createTestResolver(async (url) => pageOf(url, { formats: [formatOf("a", { url: url.href })] })),
    downloads: async (job) => {
      jobs.push(job.preference);
      return await writeMedium(job);
    },
  });
  runner.start();
  const { id } = await add(undefined, options);
  await until(id, "succeeded");
  expect(jobs).toEqual([preference]);
});

it.each([
  [{}, ["format_left"]],
  [{ max_height: 90 }, []],
  [{ max_height: 120 }, ["format_left"]],
  [{ format_id: "a" }, []],
  [{ audio_only: true }, []],
])("a file has a warning if it is lower than what a manifest lists that cannot be read: %o", async (options, codes) => {
  const warning = { code: "formats_missing", message: "2 formats are not listed", height: 1080 } as const;
  const resolver = createTestResolver(async (url) =>
    pageOf(url, { formats: [formatOf("a", { url: url.href, height: 90 })], warnings: [warning] }),
  );
  const downloads = async (job: Parameters<typeof writeMedium>[0]) => ({ ...(await writeMedium(job)), height: 90 });
  const { runner, add, until } = createRunnerHarness({ resolver, downloads });
  runner.start();
  const { id } = await add(undefined, options);
  const { file, info } = await until(id, "succeeded");
  expect(file?.warnings?.map(({ code }) => code)).toEqual(codes);
  expect(info).toMatchObject({ warnings: [warning] });
});

it.each([
  [{ max_height: 54 }, ["too_high"]],
  [{ max_height: 90 }, []],
  [{ max_height: 54, format_id: "a" }, []],
])(
  "a file whose height was not known has a warning if it is higher than the task allows: %o",
  async (options, codes) => {
    const resolver = createTestResolver(async (url) =>
      pageOf(url, { formats: [formatOf("a", { url: url.href, height: null })] }),
    );
    const { runner, add, until } = createRunnerHarness({
      resolver,
      downloads: async (job) => ({ ...(await writeMedium(job)), height: 90 }),
    });
    runner.start();
    const { id } = await add(undefined, options);
    const { file } = await until(id, "succeeded");
    expect(file?.warnings?.map(({ code }) => code)).toEqual(codes);
  },
);
