import { afterAll, describe, expect, it } from "vitest";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { openEntry } from "../contracts/engine/harness.ts";
import { layOneFile, mediaPlaylist } from "../media/hls.ts";
import { probe } from "../media/probe.ts";
import { readRendition } from "../media/rendition.ts";
import { hls, merge } from "../media/resources.ts";
import type { Answer } from "../media/site.ts";

const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
afterAll(() => engine.close());
const open = () => engine;

/** Byte ranges of one file: of MPEG-TS, or of MP4 behind its init section. */
const kinds = {
  "media.ts": { rendition: readRendition("high.m2t"), frames: [150, 283] },
  "media.mp4": { rendition: readRendition("muxed.m4s"), frames: [150, 283] },
} as const;
type Path = keyof typeof kinds;
const paths = Object.keys(kinds) as Path[];

async function openRanges(path: Path, answer: Answer) {
  const { resources, lines } = layOneFile(path, kinds[path].rendition);
  const harness = await openEntry(open, merge(resources, new Map([["i.m3u8", hls(mediaPlaylist(lines))]])), "i.m3u8");
  harness.site.answer(path, answer);
  const wholeRequests = () => harness.site.asked.filter((asked) => asked.path === path && asked.range === undefined);
  return { harness, wholeRequests, file: resources.get(path)!.body };
}

async function framesOf(path: string): Promise<(number | null | undefined)[]> {
  return (await probe(path)).streams.map(({ frames }) => frames);
}

/** Answers a request for a range with a status, and any other well. */
const refuse =
  (status: number): Answer =>
  (response, serve, { headers }) =>
    headers.range === undefined ? serve() : response.writeHead(status).end();

describe.concurrent("segments that are ranges of one file are cut from it, fetched once,", () => {
  for (const path of paths) {
    it.each([400, 403, 406, 416, 501])(`if its server refuses ranges of ${path} with %i`, async (status) => {
      const { harness, wholeRequests, file } = await openRanges(path, refuse(status));
      await using _ = harness;
      const made = await harness.download();
      expect(made.warnings).toEqual([]);
      expect(await framesOf(made.path)).toEqual(kinds[path].frames);
      expect(wholeRequests()).toHaveLength(1);
      expect(harness.progress.at(-1)?.downloaded_bytes).toBe(file.length);
    });

    it(`if its server ignores ranges of ${path}`, async () => {
      const { harness, wholeRequests, file } = await openRanges(path, (response, _, request) => {
        response.writeHead(200, { "content-length": file.length });
        // What nobody reads is not sent.
        return request.headers.range === undefined ? response.end(file) : response.flushHeaders();
      });
      await using _ = harness;
      const made = await harness.download({ maxBytes: file.length });
      expect(made.warnings).toEqual([]);
      expect(await framesOf(made.path)).toEqual(kinds[path].frames);
      expect(wholeRequests()).toHaveLength(1);
    });
  }

  it("which a later run goes on with", async () => {
    const { harness, wholeRequests, file } = await openRanges("media.ts", (response, serve, request) => {
      if (request.headers.range !== undefined) return response.writeHead(403).end();
      if (wholeRequests().length > 1) return serve();
      response.writeHead(200, { "content-length": file.length, etag: '"1"' }).write(file.subarray(0, 40_000));
      return response.flushHeaders();
    });
    await using _ = harness;
    const stop = new AbortController();
    const stopped = harness.download({}, stop.signal);
    await harness.whenDownloaded(40_000);
    stop.abort();
    await expect(stopped).rejects.toBe(stop.signal.reason);
    const made = await harness.download();
    expect([made.warnings, await framesOf(made.path)]).toEqual([[], kinds["media.ts"].frames]);
  });
});

it("a server that sends other ranges than asked for is asked again, and refused if it always does so", async () => {
  const download = async (faults: number) => {
    let left = faults;
    const { harness, wholeRequests, file } = await openRanges("media.ts", (response, serve) => {
      if ((left -= 1) < 0) return serve();
      return response.writeHead(206, { "content-range": `bytes 188-375/${file.length}` }).end(file.subarray(188, 376));
    });
    await using _ = harness;
    const made = await harness.download();
    expect(wholeRequests()).toEqual([]);
    return [made.warnings, await framesOf(made.path)];
  };
  expect(await download(2)).toEqual([[], kinds["media.ts"].frames]);
  const rule = /bytes=0-\d+ was requested, the response is bytes 188-375/;
  await expect(download(Infinity)).rejects.toMatchObject({
    code: "upstream_invalid",
    message: expect.stringMatching(rule),
  });
});

it("each redundant place of a file is fetched once, also by a later run", async () => {
  const { resources, lines } = layOneFile("media.ts", kinds["media.ts"].rendition);
  const variants = ["one", "two"].flatMap((place) => ["#EXT-X-STREAM-INF:BANDWIDTH=1000000", `${place}.m3u8`]);
  const listOf = (place: string) => hls(mediaPlaylist(lines.map((line) => line.replace(/^media/, `${place}/media`))));
  const lists = new Map([
    ["i.m3u8", hls(["#EXTM3U", ...variants, ""].join("\n"))],
    ["one.m3u8", listOf("one")],
    ["two.m3u8", listOf("two")],
  ]);
  await using harness = await openEntry(open, lists, "i.m3u8");
  const file = resources.get("media.ts")!.body;
  for (const [place, size] of [
    ["one", Number(/@(\d+)$/.exec(lines.findLast((line) => line.includes("@"))!)![1])],
    ["two", file.length],
  ] as const) {
    harness.site.answer(`${place}/media.ts`, (response, _, { headers }) => {
      if (headers.range !== undefined) return response.writeHead(403).end();
      return response.writeHead(200, { "content-length": size, etag: '"1"' }).end(file.subarray(0, size));
    });
  }
  for (let run = 0; run < 2; run += 1) {
    const made = await harness.download();
    expect([made.warnings, await framesOf(made.path)]).toEqual([[], kinds["media.ts"].frames]);
  }
  const whole = harness.site.asked.filter(({ path, range }) => path.endsWith(".ts") && range === undefined);
  expect(whole.map(({ path }) => path)).toEqual(["one/media.ts", "two/media.ts"]);
});

describe.concurrent("a server's refusal stays an error", () => {
  it("if it refuses all of the file, too", async () => {
    const { harness, wholeRequests } = await openRanges("media.ts", (response) => response.writeHead(403).end());
    await using _ = harness;
    await expect(harness.download()).rejects.toMatchObject({ code: "upstream_status", upstreamStatus: 403 });
    expect(wholeRequests()).toHaveLength(1);
  });

  it("unless all of the file breaks off, of which a later run may get more", async () => {
    const { harness, file } = await openRanges("media.ts", (response, _, { headers }) => {
      if (headers.range !== undefined) return response.writeHead(403).end();
      response.writeHead(200, { "content-length": file.length });
      return response.write(file.subarray(0, 40_000), () => response.destroy());
    });
    await using _ = harness;
    await expect(harness.download()).rejects.toMatchObject({ code: "upstream_unreachable", retryable: true });
  });

  it("if the file is as short as it says", async () => {
    const { harness, file } = await openRanges("media.ts", (response, _, { headers }) => {
      const short = file.subarray(0, 188 * 100);
      const body = headers.range === undefined ? short : "";
      return response.writeHead(headers.range === undefined ? 200 : 501).end(body);
    });
    await using _ = harness;
    await expect(harness.download()).rejects.toThrow(/the resource has only 18800 bytes/);
  });
});
