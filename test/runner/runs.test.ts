import { createHash } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { noAdditions } from "../../src/remux/additions.ts";
import { ServiceError } from "../../src/model/errors.ts";
import { createStubResolver } from "../../src/resolvers/stub.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { times } from "../contracts/task-store/harness.ts";
import { neverEnd, writeMedium } from "./engine.ts";
import { formatOf } from "../formats.ts";
import type { Format } from "../../src/model/page-info.ts";
import { createTestResolver, pageOf } from "./resolver.ts";
import { createRunnerHarness } from "./harness.ts";

describe("a task that is queued", () => {
  // No polls: the runner depends on events alone.
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval"] }));
  afterEach(() => void vi.useRealTimers());

  test("before the start runs at the start", async () => {
    const { runner, add, until } = createRunnerHarness();
    const { id } = await add();
    runner.start();
    runner.start();
    await until(id, "succeeded");
  });

  test("later runs at once", async () => {
    const { runner, add, until } = createRunnerHarness();
    runner.start();
    for (const _ of times(3, String)) await until((await add()).id, "succeeded");
  });

  test("again after it was canceled runs again", async () => {
    const { runner, store, add, until, untilLoading, states } = createRunnerHarness({
      downloads: async (job, context, count) => (count === 1 ? neverEnd(job, context) : writeMedium(job)),
    });
    runner.start();
    const { id } = await add();
    await untilLoading(id);
    await store.update(id, { state: "canceled" });
    await store.update(id, { state: "queued" });
    await until(id, "succeeded");
    expect(states(id)).toEqual(["queued", "running", "canceled", "queued", "running", "succeeded"]);
  });

  test("while all slots are taken runs as soon as a run ends", async () => {
    const gate = Promise.withResolvers<void>();
    const { runner, add, until } = createRunnerHarness({
      concurrency: 1,
      downloads: async (job) => gate.promise.then(() => writeMedium(job)),
    });
    runner.start();
    const [first, second] = [await add(), await add()];
    await until(first.id, (task) => task.info !== null);
    gate.resolve();
    await until(second.id, "succeeded");
  });
});

for (const [stated, live_status, message] of [
  [60, null, "the file lasts 12.5 s, its page says 60.0 s"],
  [15, null, null],
  [null, null, null],
  [60, "is_live", null],
] as const) {
  const warns = message === null ? "has no warning" : "has a warning";
  test(`a file of 12.5 s ${warns} if its page says ${stated} s, ${live_status}`, async () => {
    const { runner, add, until } = createRunnerHarness({
      resolver: createTestResolver(async (url) => pageOf(url, { duration: stated, live_status })),
    });
    runner.start();
    const { file } = await until((await add()).id, "succeeded");
    const expected = message === null ? [] : [{ code: "duration_differs", message }];
    expect(file?.warnings).toEqual(expected);
  });
}

test("a run reports its stages, stores the page information, and ends with the file", async () => {
  const title = 'What: "a" film?';
  const { runner, files, add, until, changes } = createRunnerHarness({
    resolver: createTestResolver(async (url) => pageOf(url, { title })),
    downloads: async (job, { onProgress }) => {
      onProgress({ stage: "downloading", downloaded_bytes: 10, total_bytes: 40 });
      return writeMedium(job);
    },
  });
  const url = "https://video.example.com/watch/7";
  const { id } = await add(url);
  runner.start();
  const task = await until(id, "succeeded");
  expect(task).toMatchObject({ attempts: 1, error: null, progress: null, info: { title, url } });
  expect(task.file).toEqual({
    name: "What_ _a_ film_.mp4",
    mime_type: "video/mp4",
    size: url.length,
    sha256: createHash("sha256").update(url).digest("hex"),
    duration: 12.5,
    width: 640,
    height: 360,
    url: `/tasks/${id}/file`,
    warnings: [],
  });
  expect(files.text(id)).toBe(url);
  expect(files.parts()).toEqual([]);
  const seen = changes.map(({ progress }) => progress);
  expect(seen.filter((progress) => progress !== null)).toEqual([
    { stage: "resolving", ...unknown },
    { stage: "downloading", ...unknown },
    { stage: "downloading", ...unknown, downloaded_bytes: 10, total_bytes: 40 },
  ]);
});

test("audio that the page lists beside video of the same media is taken alone", async () => {
  const manifest_url = "https://video.example.com/main.m3u8";
  const of = (id: string, url: string, about: Partial<Format>) => formatOf(id, { url, manifest_url, ...about });
  const formats = [
    of("video", "https://video.example.com/v.m3u8", { acodec: "none" }),
    of("within", "https://video.example.com/v.m3u8", { vcodec: "none" }),
    of("separate", "https://video.example.com/a.m3u8", { vcodec: "none" }),
    of("segments", manifest_url, { acodec: "none" }),
    of("more segments", manifest_url, { vcodec: "none" }),
  ];
  const taken: [string | undefined, boolean][] = [];
  const { runner, add, until } = createRunnerHarness({
    resolver: createTestResolver(async (url) => pageOf(url, { formats })),
    downloads: async (job) => {
      taken.push([job.format.format_id, job.audioOnly]);
      return writeMedium(job);
    },
  });
  runner.start();
  for (const format_id of ["within", "separate", "more segments"]) {
    const { id } = await add(undefined, { format_id });
    await until(id, "succeeded");
  }
  expect(taken).toEqual([
    ["within", true],
    ["separate", false],
    ["more segments", false],
  ]);
});

test("the engine gets the chosen formats, the folder and the limits", async () => {
  const formats = [
    formatOf("low", { height: 240 }),
    formatOf("high", { height: 1080, acodec: "none", vcodec: "avc1" }),
    formatOf("sound", { vcodec: "none", acodec: "mp4a" }),
  ];
  const poster = { url: "https://video.example.com/poster.jpg", width: null, height: null };
  const described = {
    uploader: "Someone",
    uploaded_at: "2024-05-01",
    description: "What it shows",
    chapters: [
      { start_time: 0, end_time: 5, title: "One" },
      { start_time: 5, end_time: null, title: "" },
    ],
    thumbnails: [poster, { ...poster, url: "nowhere" }],
  };
  const jobs: unknown[] = [];
  const { run } = createRunnerHarness({
    resolver: createTestResolver(async (url) => pageOf(url, { formats, ...described })),
    maxFileBytes: 1234,
    maxLiveS: 56,
    downloads: async (job) => {
      jobs.push(job);
      return writeMedium(job);
    },
  });
  const { id } = await run("succeeded");
  expect(jobs).toEqual([
    {
      format: formats[1],
      audio: formats[2],
      preference: {},
      otherAudio: [],
      audioLanguages: ["original"],
      ranges: [],
      audioOnly: false,
      pageUrl: "https://video.example.com/watch",
      description: {
        tags: {
          ...noAdditions.tags,
          title: "A film",
          artist: "Someone",
          date: "2024-05-01",
          description: "What it shows",
          url: "https://video.example.com/watch",
        },
        chapters: [
          { startS: 0, endS: 5, title: "One" },
          { startS: 5, endS: Infinity, title: "Chapter 2" },
        ],
        name: "A film",
        covers: ["https://video.example.com/poster.jpg"],
      },
      embed: "made",
      isAudioFile: false,
      subtitles: [],
      ownSubtitles: [],
      folder: expect.stringContaining(id),
      maxBytes: 1234,
      maxLiveS: 56,
    },
  ]);
});

test("no more tasks run at a time than allowed, in all and of one host; the oldest go first", async () => {
  const started: string[] = [];
  const gate = Promise.withResolvers<void>();
  const { runner, add, until } = createRunnerHarness({
    concurrency: 3,
    perHost: 2,
    downloads: async (job) => {
      started.push(job.format.url);
      if (started.length === 3) setTimeout(gate.resolve, 50);
      await gate.promise;
      return writeMedium(job);
    },
  });
  const urls = ["https://a.test/1", "https://a.test/2", "https://a.test/3", "https://b.test/4"];
  urls.push("https://c.test/5");
  const tasks = await Promise.all(urls.map((url) => add(url)));
  runner.start();
  await gate.promise;
  expect(started.toSorted()).toEqual(["https://a.test/1", "https://a.test/2", "https://b.test/4"]);
  for (const { id } of tasks) await until(id, "succeeded");
});

describe("an owner that has nothing running", () => {
  /** Starts a runner whose tasks never end. `""`: a task of nobody. */
  function startEndless(limits: { concurrency: number; perHost: number }) {
    const { runner, store, until, states } = createRunnerHarness({ ...limits, downloads: neverEnd });
    const create = async (owner: string, host: string) => {
      const task = newTask(`https://${host}/`, {}, new Date(), owner === "" ? undefined : owner);
      return (await store.create(task)).id;
    };
    const waiting: string[] = [];
    runner.start();
    return {
      begins: async (owner: string, host: string) => void (await until(await create(owner, host), "running")),
      waits: async (owner: string, host: string) => void waiting.push(await create(owner, host)),
      /** The states that those had that should wait. */
      async statesOfWaiting() {
        await runner.stop();
        return new Set(waiting.flatMap(states));
      },
    };
  }

  test("gets one place more than the limit while another has several; a third one waits", async () => {
    const { begins, waits, statesOfWaiting } = startEndless({ concurrency: 2, perHost: 2 });
    await begins("eve", "a.test");
    await begins("eve", "b.test");
    await waits("eve", "c.test");
    await begins("bob", "d.test");
    await waits("bob", "d.test");
    await waits("cora", "e.test");
    expect(await statesOfWaiting()).toEqual(new Set(["queued"]));
  });

  test("gets one at a host, too; an owner that has one there waits", async () => {
    const { begins, waits, statesOfWaiting } = startEndless({ concurrency: 9, perHost: 2 });
    await begins("eve", "a.test");
    await begins("eve", "a.test");
    await waits("eve", "a.test");
    await begins("bob", "b.test");
    await begins("bob", "a.test");
    await waits("bob", "a.test");
    await waits("cora", "a.test");
    expect(await statesOfWaiting()).toEqual(new Set(["queued"]));
  });

  test("gets one at a host that is full while all places are taken", async () => {
    const { begins, waits, statesOfWaiting } = startEndless({ concurrency: 3, perHost: 2 });
    for (const host of ["a.test", "a.test", "b.test"]) await begins("eve", host);
    await begins("bob", "a.test");
    await waits("cora", "a.test");
    expect(await statesOfWaiting()).toEqual(new Set(["queued"]));
  });

  test("waits while each of the others has one place", async () => {
    const { begins, waits, statesOfWaiting } = startEndless({ concurrency: 2, perHost: 2 });
    await begins("eve", "a.test");
    await begins("bob", "a.test");
    await waits("cora", "a.test");
    await waits("cora", "b.test");
    expect(await statesOfWaiting()).toEqual(new Set(["queued"]));
  });

  test("waits if there are no owners but nobody", async () => {
    const { begins, waits, statesOfWaiting } = startEndless({ concurrency: 2, perHost: 2 });
    await begins("", "a.test");
    await begins("", "b.test");
    await waits("", "c.test");
    expect(await statesOfWaiting()).toEqual(new Set(["queued"]));
  });
});

test("a concurrency of 0 runs nothing", async () => {
  const { runner, store, add, changes } = createRunnerHarness({ concurrency: 0 });
  const before = await add();
  runner.start();
  const after = await add();
  await store.update(before.id, { state: "canceled" });
  await runner.stop();
  expect(changes.map(({ id, state }) => [id, state])).toEqual([
    [before.id, "queued"],
    [after.id, "queued"],
    [before.id, "canceled"],
  ]);
});

test("a resolver without formats fails the task with no_media", async () => {
  const { run } = createRunnerHarness({ resolver: createStubResolver() });
  const { error, attempts } = await run("failed");
  expect(error).toMatchObject({ code: "no_media", retryable: false });
  expect(error?.message).toContain("resolver stub");
  expect(attempts).toBe(1);
});

test("the log lines of a run have the trace in which its task was created", async () => {
  const { runner, store, until, log } = createRunnerHarness();
  const trace = "4bf92f3577b34da6a3ce929d0e0e4736";
  const traceparent = `00-${trace}-00f067aa0ba902b7-01`;
  const task = newTask("https://video.example.com/watch", {}, new Date(), undefined, { traceparent });
  await store.create(task);
  runner.start();
  await until(task.id, "succeeded");
  await vi.waitFor(() => expect(log.map(({ trace_id }) => trace_id)).toEqual([trace, trace]), 60_000);
});

test("start and end of a run are one log line each, with task, host, attempt, bytes, time and code", async () => {
  const { runner, log, add, until } = createRunnerHarness({
    resolver: createTestResolver(async (url) => pageOf(url, url.pathname === "/bad" ? { formats: [] } : {})),
  });
  runner.start();
  const good = await add("https://a.test:8443/good");
  await until(good.id, "succeeded");
  await vi.waitUntil(() => log.length === 2, 60_000);
  const bad = await add("https://b.test/bad");
  await until(bad.id, "failed");
  await runner.stop();
  const [bytes, ms] = [24, expect.any(Number)];
  const goodRun = { task: good.id, host: "a.test:8443", attempt: 1 };
  const badRun = { task: bad.id, host: "b.test", attempt: 1 };
  expect(log).toEqual([
    { level: "info", ...goodRun, msg: "run started" },
    { level: "info", ...goodRun, bytes, ms, msg: "run succeeded" },
    { level: "info", ...badRun, msg: "run started" },
    expect.objectContaining({ level: "warn", ...badRun, bytes: null, ms, code: "no_media", msg: "run failed" }),
  ]);
});

test.each([
  ["info", "the site's", "upstream_timeout"],
  ["warn", "this machine's, such as a process that was killed", "unavailable"],
] as const)("a run that will be retried is logged at %s if the fault is %s", async (level, _whose, code) => {
  const { runner, log, add, until } = createRunnerHarness({
    backoffMs: 1,
    downloads: async (job) => {
      if (log.some(({ code: failed }) => failed === code)) return writeMedium(job);
      throw new ServiceError(code, "it failed");
    },
  });
  runner.start();
  await until((await add()).id, "succeeded");
  const lines = log.filter(({ msg }) => msg === "run failed; will retry");
  expect(lines).toEqual([expect.objectContaining({ level, code, reason: "it failed" })]);
});

const unknown = { downloaded_bytes: null, total_bytes: null, speed: null, eta: null };

test.each([
  ["the one asked for", "http://example.com/a", "https://example.com/b", "http://example.com/a"],
  [
    "the canonical one, if that is on another host",
    "https://sho.rt/1",
    "https://example.com/b",
    "https://example.com/b",
  ],
])("the engine gets the page's URL: %s", async (_case, url, webpage_url, expected) => {
  const pages: string[] = [];
  const { run } = createRunnerHarness({
    resolver: createTestResolver(async (asked) => pageOf(asked, { webpage_url })),
    downloads: async (job) => {
      pages.push(job.pageUrl);
      return writeMedium(job);
    },
  });
  await run("succeeded", url);
  expect(pages).toEqual([expected]);
});
