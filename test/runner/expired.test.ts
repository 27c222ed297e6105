import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { afterAll, describe, expect, test } from "vitest";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { ServiceError } from "../../src/model/errors.ts";
import type { Format } from "../../src/model/page-info.ts";
import { formatOf } from "../formats.ts";
import { layFiles, mediaPlaylist } from "../media/hls.ts";
import { readMedium, readRendition } from "../media/rendition.ts";
import { hls, merge, resource, type Resources } from "../media/resources.ts";
import type { Site } from "../media/site.ts";
import { startTestSite } from "../media/test-site.ts";
import { writeMedium } from "./engine.ts";
import { createRunnerHarness } from "./harness.ts";
import { createTestResolver, pageOf } from "./resolver.ts";

const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
afterAll(() => engine.close());

const film = resource("video/mp4", readMedium("index-first.mp4"));
const half = film.body.length >> 1;
const tokenOf = ({ url = "" }: Pick<IncomingMessage, "url">) => Number(/token=(\d+)/.exec(url)?.[1] ?? 0);

async function openSite(resources: Resources): Promise<Site> {
  const site = await startTestSite(new Map(resources));
  return site;
}

/** Runs a task whose page lists what `formats` returns for the number of this reading, from 1. */
async function runWith(formats: (reading: number) => Format[]) {
  let readings = 0;
  const resolver = createTestResolver(async (url) => {
    readings += 1;
    return pageOf(url, { formats: formats(readings) });
  });
  const harness = createRunnerHarness({ resolver, engine });
  const task = await harness.run(({ state }) => state === "succeeded" || state === "failed");
  return { task, readings };
}

describe("a URL that has expired", () => {
  test("in the middle of a file: the page is resolved again and the file resumed", async () => {
    const site = await openSite(new Map([["film.mp4", film]]));
    let hasExpired = false;
    site.answer("film.mp4", (response, serve, request) => {
      if (tokenOf(request) > 1) return serve();
      if (hasExpired) return void response.writeHead(403).end();
      hasExpired = true;
      return void response
        .writeHead(200, {
          "content-type": film.type,
          "content-length": film.body.length,
          etag: `"${createHash("sha1").update(film.body).digest("hex")}"`,
        })
        .write(film.body.subarray(0, half), () => response.destroy());
    });
    const { task, readings } = await runWith((reading) => [
      formatOf("only", { url: site.url(`film.mp4?token=${reading}`) }),
    ]);
    expect(task).toMatchObject({
      state: "succeeded",
      attempts: 1,
      file: { sha256: createHash("sha256").update(film.body).digest("hex") },
      info: { formats: [{ url: site.url("film.mp4?token=2") }] },
    });
    expect(readings).toBe(2);
    expect(site.asked.map(({ range }) => range)).toEqual([undefined, `bytes=${half}-`, `bytes=${half}-`]);
  });

  test("again and again among segments: none is fetched twice", async () => {
    const stream = layFiles("ts", readRendition("high.m2t"), "ts");
    const site = await openSite(stream.resources);
    const served = new Map<number, number>();
    site.accepts = (request) => {
      const token = tokenOf(request);
      const count = (served.get(token) ?? 0) + 1;
      served.set(token, count);
      return count <= 3;
    };
    const { task, readings } = await runWith((reading) => {
      const lines = stream.lines.map((line) => (line.endsWith(".ts") ? `${line}?token=${reading}` : line));
      const path = `index-${reading}.m3u8`;
      site.resources = merge(site.resources, new Map([[path, hls(mediaPlaylist(lines))]]));
      // Without a token of its own.
      return [formatOf("only", { url: site.url(path), protocol: "m3u8", height: 54 })];
    });
    expect(task).toMatchObject({ state: "succeeded", attempts: 1 });
    expect(readings).toBeGreaterThan(1);
    const whole = [...stream.resources.values()].reduce((sum, { body }) => sum + body.length, 0);
    const lists = site.asked.filter(({ path }) => path.endsWith(".m3u8"));
    const listBytes = lists.reduce((sum, { path }) => sum + (site.resources.get(path)?.body.length ?? 0), 0);
    // A response in progress when another is refused may be cut.
    expect(site.sent - listBytes).toBeLessThan(2 * whole);
  });

  test("before the first byte: the page is resolved once more", async () => {
    const site = await openSite(new Map([["film.mp4", film]]));
    site.accepts = (request) => tokenOf(request) === 2;
    const { task, readings } = await runWith((reading) => [
      formatOf("only", { url: site.url(`film.mp4?token=${reading}`) }),
    ]);
    expect(task).toMatchObject({ state: "succeeded", attempts: 1 });
    expect(readings).toBe(2);
  });

  test("and so has the next: the task fails", async () => {
    const site = await openSite(new Map([["film.mp4", film]]));
    site.accepts = () => false;
    const { task, readings } = await runWith((reading) => [
      formatOf("only", { url: site.url(`film.mp4?token=${reading}`) }),
    ]);
    expect(task).toMatchObject({ state: "failed", error: { code: "upstream_status" } });
    expect([readings, site.asked.length]).toEqual([2, 2]);
  });

  test("but is the same again: the task fails without another request", async () => {
    const site = await openSite(new Map());
    const { task, readings } = await runWith(() => [formatOf("only", { url: site.url("film.mp4") })]);
    expect(task).toMatchObject({
      state: "failed",
      error: { code: "upstream_status", retryable: false },
    });
    expect([readings, site.asked.length]).toEqual([2, 1]);
  });

  test("again and again, each time after more bytes: the page is resolved 20 times again", async () => {
    let readings = 0;
    const { run } = createRunnerHarness({
      resolver: createTestResolver(async (url) => {
        readings += 1;
        return pageOf(url);
      }),
      downloads: async (job, { onProgress }) => {
        onProgress({ stage: "downloading", downloaded_bytes: readings, total_bytes: 100 });
        if (readings === 30) return writeMedium(job);
        throw new ServiceError("upstream_status", "status 403", { upstreamStatus: 403 });
      },
    });
    await run(({ state }) => state === "failed" || state === "succeeded");
    expect(readings).toBe(21);
  });
});

describe("the format that is downloaded again", () => {
  const low = formatOf("1", { height: 360, tbr: 800, vcodec: "avc1", acodec: "mp4a" });
  const high = formatOf("2", { height: 720, tbr: 2_000, vcodec: "avc1", acodec: "mp4a" });
  const best = formatOf("3", { height: 1080, tbr: 4_000, vcodec: "avc1", acodec: "mp4a" });
  const cases: readonly (readonly [string, Format[], Format[], string])[] = [
    ["is that of the same id, though there is a better one", [low, high], [best, low, high], "2"],
    [
      "is that of the same height, codecs and nearly the same bit rate, if the ids have changed",
      [low, high],
      [
        { ...best, format_id: "1" },
        { ...high, format_id: "6", tbr: 1_500 },
        { ...high, format_id: "4", tbr: 2_050 },
        { ...low, format_id: "5" },
      ],
      "4",
    ],
    [
      "is not that of the same id if it is another quality",
      [low, high],
      [
        { ...low, format_id: "2" },
        { ...high, format_id: "1" },
      ],
      "1",
    ],
    ["is the best of the page if it is not there any more", [low, high], [low], "1"],
  ];
  const failures = {
    "after a refusal": new ServiceError("upstream_status", "status 403", { upstreamStatus: 403 }),
    "at a retry": new ServiceError("upstream_timeout", "no bytes"),
  };
  for (const [when, failure] of Object.entries(failures)) {
    test.each(cases)(`${when} %s`, async (_case, before, after, expected) => {
      const ids: string[] = [];
      let readings = 0;
      const { run } = createRunnerHarness({
        resolver: createTestResolver(async (url) => {
          readings += 1;
          const formats = readings === 1 ? before : after;
          const page = `?reading=${readings}`;
          return pageOf(url, {
            formats: formats.map((each) => ({ ...each, url: each.url + page })),
          });
        }),
        downloads: async (job) => {
          ids.push(job.format.format_id);
          if (ids.length === 1) throw failure;
          return writeMedium(job);
        },
      });
      expect(await run("succeeded")).toMatchObject({ attempts: when === "at a retry" ? 2 : 1 });
      expect(ids).toEqual(["2", expected]);
    });
  }

  test("has the same separate audio", async () => {
    const picture = { ...high, acodec: "none" };
    const sounds = ["a", "b"].map((format_id) => {
      return formatOf(format_id, { vcodec: "none", acodec: "mp4a", tbr: 128 });
    });
    const ids: (string | undefined)[] = [];
    const { run } = createRunnerHarness({
      resolver: createTestResolver(async (url) => {
        const isFirst = ids.length === 0;
        return pageOf(url, { formats: [picture, ...(isFirst ? sounds : sounds.toReversed())] });
      }),
      downloads: async (job) => {
        ids.push(job.audio?.format_id);
        if (ids.length === 1) throw failures["at a retry"];
        return writeMedium(job);
      },
    });
    await run("succeeded");
    expect(ids).toEqual(["a", "a"]);
  });

  test("is found by its exact id alone if the task names it", async () => {
    let asked = 0;
    const { run } = createRunnerHarness({
      resolver: createTestResolver(async (url) => {
        return pageOf(url, { formats: [asked === 0 ? high : { ...high, format_id: "9" }] });
      }),
      downloads: async () => {
        asked += 1;
        throw failures["after a refusal"];
      },
    });
    expect(await run("failed", "https://video.example.com/watch", { format_id: "2" })).toMatchObject({
      error: { code: "format_unavailable" },
    });
    expect(asked).toBe(1);
  });
});
