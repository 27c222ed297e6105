import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import type { DownloadJob } from "../../src/engines/engine.ts";
import type { Format } from "../../src/model/page-info.ts";
import type { TaskOptions } from "../../src/model/task.ts";
import { createHttpClient } from "../../src/net/http/http-client.ts";
import { createSponsorBlock } from "../../src/resolvers/sponsor-block.ts";
import { formatOf } from "../formats.ts";
import { createTestResolver, pageOf } from "./resolver.ts";
import { createRunnerHarness } from "./harness.ts";
import { writeMedium } from "./engine.ts";
import { listen } from "../net/listen.ts";

const id = "dQw4w9WgXcQ";
const prefix = createHash("sha256").update(id).digest("hex").slice(0, 4);
const chapters = [
  { start_time: 0, end_time: 50, title: "One" },
  { start_time: 50, end_time: null, title: "Two" },
];

interface Segment {
  category: string;
  segment: number[];
  [name: string]: unknown;
}

/** Starts a SponsorBlock service that has these segments; returns its URL and the URLs that it was asked for. */
async function startSponsorBlock(answer: readonly Segment[] | number | string) {
  const asked: string[] = [];
  const server = createServer(({ url = "" }, response) => {
    asked.push(url);
    if (typeof answer === "number") response.writeHead(answer).end();
    else if (typeof answer === "string") response.end(answer);
    else {
      const other = { videoID: "AnotherVideo", segments: [{ category: "sponsor", segment: [0, 100] }] };
      response.end(JSON.stringify([other, { videoID: id, segments: answer }]));
    }
  });
  const port = await listen(server);
  onTestFinished(() => void server.close());
  return { url: `http://127.0.0.1:${port}/`, asked };
}

/** Runs a task with these options on a page of YouTube; returns the job that its engine got, and the task. */
async function run(
  url: string,
  options: TaskOptions,
  extractor = "Youtube",
  format: Partial<Format> = {},
  duration = 100,
) {
  const client = createHttpClient({ allowNetworks: ["127.0.0.1/32"] });
  onTestFinished(() => client.close());
  const jobs: DownloadJob[] = [];
  const about = { extractor, video_id: id, duration: 100, chapters, title: "Film" };
  const { runner, add, until } = createRunnerHarness({
    resolver: createTestResolver(async (page) => pageOf(page, { formats: [formatOf("one", format)], ...about })),
    findSkips: createSponsorBlock(client, url),
    downloads: async (job) => {
      jobs.push(job);
      return { ...(await writeMedium(job)), duration };
    },
  });
  const { id: taskId } = await add("https://www.youtube.com/watch?v=x", options);
  runner.start();
  const task = await until(taskId, ({ state }) => state === "succeeded" || state === "failed");
  return { task, job: jobs[0] };
}

const segments = [
  { category: "sponsor", segment: [10, 20.5], votes: 3, actionType: "skip", videoDuration: 100.4 },
  { category: "sponsor", segment: [20, 30], votes: -2, actionType: "skip", videoDuration: 0 },
  { category: "outro", segment: [95, 100] },
  { category: "intro", segment: [0, 5] },
  { category: "sponsor", segment: [40, 41], votes: -3 },
  { category: "sponsor", segment: [42, 43], actionType: "mute" },
  { category: "sponsor", segment: [44, 45], videoDuration: 90 },
  { category: "sponsor", segment: [47, 46] },
];

test("segments of the categories are cut out, and only four digits of a hash are sent", async () => {
  const { url, asked } = await startSponsorBlock(segments);
  const { task, job } = await run(url, { skip: ["sponsor", "outro"] });
  expect(job?.ranges).toEqual([
    { startS: 0, endS: 10 },
    { startS: 30, endS: 95 },
  ]);
  expect(task.file?.warnings).toEqual([]);
  expect(asked.map((path) => path.split("?")[0])).toEqual([`/api/skipSegments/${prefix}`]);
  expect(asked.join()).not.toContain(id);
});

test("ranges are what is wanted of the rest", async () => {
  const { url } = await startSponsorBlock(segments);
  const ranges = [
    { start: 2, end: 12 },
    { start: 15, end: 25 },
    { start: 60, end: null },
  ];
  const { job } = await run(url, { skip: ["sponsor"], ranges });
  expect(job?.ranges).toEqual([
    { startS: 2, endS: 10 },
    { startS: 60, endS: Infinity },
  ]);
});

test("what would flash beside segments is left out, but no short range that is wanted", async () => {
  const marked = [
    [0.03, 1],
    [2, 4],
    [4.05, 6],
    [6.2, 8],
  ].map((segment) => ({ category: "sponsor", segment }));
  const { url } = await startSponsorBlock(marked);
  const { job } = await run(url, { skip: ["sponsor"] });
  expect(job?.ranges).toEqual([
    { startS: 1, endS: 2 },
    { startS: 6, endS: 6.2 },
    { startS: 8, endS: Infinity },
  ]);
  const short = await run(url, { skip: ["sponsor"], ranges: [{ start: 10, end: 10.04 }] });
  expect(short.job?.ranges).toEqual([{ startS: 10, endS: 10.04 }]);
});

test("what a task wants of the last second is left out only by a segment that lasts to the end", async () => {
  const ranges = [{ start: 99.4, end: null }];
  const early = await startSponsorBlock([{ category: "sponsor", segment: [10, 20] }]);
  const { job } = await run(early.url, { skip: ["sponsor"], ranges });
  expect(job?.ranges).toEqual([{ startS: 99.4, endS: Infinity }]);
  const late = await startSponsorBlock([{ category: "sponsor", segment: [90, 99.2] }]);
  const { task } = await run(late.url, { skip: ["sponsor"], ranges });
  expect(task.error).toMatchObject({ code: "format_unavailable" });
});

test.each([
  ["audio alone", { vcodec: "none" }, {}],
  ["video", { vcodec: "avc1" }, {}],
  ["media of which the page says nothing", { vcodec: null }, {}],
  ["video whose audio alone is wanted", { vcodec: "avc1" }, { audio_only: true }],
])("ranges of %s become a file of its kind if that is audio", async (_, format, options) => {
  const { url } = await startSponsorBlock(404);
  const of = (own: TaskOptions) => run(url, { ...options, ...own }, "Vimeo", format);
  expect((await of({ ranges: [{ start: 1, end: 2 }] })).job?.isAudioFile).toBe(true);
  expect((await of({})).job?.isAudioFile).toBe("audio_only" in options);
});

test.each([{ vcodec: "none" }, { vcodec: "avc1" }, { vcodec: null }])(
  "audio alone is taken if it is asked for, whatever the page says of the media: %j",
  async (format) => {
    const { url } = await startSponsorBlock(404);
    for (const audio_only of [true, false]) {
      expect((await run(url, { audio_only }, "Vimeo", format)).job?.audioOnly).toBe(audio_only);
    }
  },
);

test("segments become chapters if that is asked for, and are written into files as published", async () => {
  const { url } = await startSponsorBlock(segments);
  const { job } = await run(url, { skip: ["sponsor"], skip_mode: "chapters" });
  expect([job?.ranges, job?.embed]).toEqual([[], "all"]);
  expect(job?.description.chapters.map(({ startS, title }) => [startS, title])).toEqual([
    [0, "One"],
    [10, "[SponsorBlock]: Sponsor"],
    [20, "[SponsorBlock]: Sponsor"],
    [30, "One"],
    [50, "Two"],
  ]);
});

test("a segment within another one becomes a chapter, after which that one goes on", async () => {
  const nested = [
    { category: "filler", segment: [10, 60] },
    { category: "sponsor", segment: [20, 30] },
    { category: "sponsor", segment: [20, 25] },
  ];
  const { url } = await startSponsorBlock(nested);
  const { job } = await run(url, { skip: ["sponsor", "filler"], skip_mode: "chapters" });
  expect(job?.description.chapters.map(({ startS, endS, title }) => [startS, endS, title])).toEqual([
    [0, 10, "One"],
    [10, 20, "[SponsorBlock]: Filler"],
    [20, 25, "[SponsorBlock]: Sponsor"],
    [25, 30, "[SponsorBlock]: Sponsor"],
    [30, 60, "[SponsorBlock]: Filler"],
    [60, Infinity, "Two"],
  ]);
});

test.each([
  ["begins shortly after a chapter", [0.3, 10], [0, 10, 50]],
  ["begins a second after a chapter", [1, 10], [0, 1, 10, 50]],
  ["ends shortly before a chapter ends", [10, 49.2], [0, 10, 50]],
  ["ends a second before a chapter ends", [10, 49], [0, 10, 49, 50]],
  ["ends shortly before the film", [90, 99.6], [0, 50, 90]],
  ["ends a second before the film", [90, 99], [0, 50, 90, 99]],
  ["is on both sides of where a chapter begins", [49.6, 50.4], [0, 49.6, 50.4]],
])("no chapter of less than a second is left by a segment that %s", async (_, segment, starts) => {
  const { url } = await startSponsorBlock([{ category: "sponsor", segment }]);
  const { job } = await run(url, { skip: ["sponsor"], skip_mode: "chapters" });
  expect(job?.description.chapters.map(({ startS }) => startS)).toEqual(starts);
});

test.each<[string, string[], TaskOptions]>([
  ["has a warning if segments only become chapters", ["duration_differs"], { skip_mode: "chapters" }],
  ["has a warning if it has no such segment", ["duration_differs"], { skip: ["hook"] }],
  ["has none if segments were cut out", [], {}],
])("a file that lasts much less than its page says %s", async (_, codes, options) => {
  const { url } = await startSponsorBlock(segments);
  const { task } = await run(url, { skip: ["sponsor"], ...options }, "Youtube", {}, 12.5);
  expect(task.file?.warnings?.map(({ code }) => code)).toEqual(codes);
});

test("nothing is cut if there are more segments than anybody marks", async () => {
  const many = Array.from({ length: 301 }, (_, i) => ({ category: "sponsor", segment: [i / 4, i / 4 + 0.1] }));
  const { url } = await startSponsorBlock(many);
  const { task, job } = await run(url, { skip: ["sponsor"] });
  expect(job?.ranges).toEqual([]);
  expect(task.file?.warnings).toMatchObject([
    { code: "skip_unavailable", message: expect.stringContaining("301 segments of the video, the limit is 300") },
  ]);
});

test("nothing is cut of a video without segments, and of other sites, which are not asked for", async () => {
  const { url, asked } = await startSponsorBlock(404);
  const without = await run(url, { skip: ["sponsor"] });
  expect([without.job?.ranges, without.task.file?.warnings]).toEqual([[], []]);
  expect(asked).toHaveLength(1);
  const other = await run(url, { skip: ["sponsor"] }, "Vimeo");
  expect([other.job?.ranges, other.task.file?.warnings]).toEqual([[], []]);
  expect(asked).toHaveLength(1);
});

test.each([
  ["fails", 503],
  ["sends no JSON", "<html>"],
  ["sends something else", '{"segments":[]}'],
  ["sends more than 512 KiB", "[".repeat(513 << 10)],
])("nothing is cut, with a warning, if the service %s", async (_, answer) => {
  const { url } = await startSponsorBlock(answer);
  const { job, task } = await run(url, { skip: ["sponsor"] });
  expect(job?.ranges).toEqual([]);
  expect(task.file?.warnings?.map(({ code }) => code)).toEqual(["skip_unavailable"]);
});

test("nothing is cut, with a warning, if there is no such service", async () => {
  const { task } = await run("", { skip: ["sponsor"] });
  expect(task.file?.warnings).toEqual([
    {
      code: "skip_unavailable",
      message: "nothing was left out, as SponsorBlock did not say what to leave out: SPONSORBLOCK_URL is empty",
    },
  ]);
});

test.each(["cut", "chapters"] as const)(
  "a segment that begins after the video changes nothing of it: %s",
  async (mode) => {
    const { url } = await startSponsorBlock([{ category: "sponsor", segment: [100.5, 101.5] }]);
    const { job } = await run(url, { skip: ["sponsor"], skip_mode: mode });
    expect([job?.ranges, job?.embed, job?.description.chapters.length]).toEqual([[], "made", 2]);
  },
);

test("a video of which nothing is left fails", async () => {
  const { url } = await startSponsorBlock([{ category: "sponsor", segment: [0, 1e9] }]);
  const { task } = await run(url, { skip: ["sponsor"] });
  expect(task.error).toMatchObject({ code: "format_unavailable" });
});
