import { afterAll, describe, expect, it } from "vitest";
import { remux } from "../../src/engines/native/remux.ts";
import { type MediaChunk, readFileChunks } from "../../src/engines/native/source-stream.ts";
import type { Container } from "../../src/remux/sniff.ts";
import { createNativeEngine } from "../../src/engines/native.ts";
import { showEntry } from "../contracts/engine/harness.ts";
import { type Laid, layEncrypted, layFiles, mediaPlaylist } from "../media/hls.ts";
import { probe } from "../media/probe.ts";
import { readRendition } from "../media/rendition.ts";
import { hls, merge, resource, type Resources } from "../media/resources.ts";

const engine = createNativeEngine({ allowNetworks: "127.0.0.1/32", idleTimeoutMs: 500 });
afterAll(() => engine.close());
const open = () => engine;

const stream = () => layFiles("ts", readRendition("high.m2t"), "ts");
const whole = { streams: [{ frames: 150 }, { frames: 283 }] };

const listed = ({ resources, lines }: Laid, ...more: Resources[]): Resources =>
  merge(resources, ...more, new Map([["index.m3u8", hls(mediaPlaylist(lines))]]));

describe.concurrent("HLS is read to its end", () => {
  it("where the first segment is empty", async () => {
    const { resources, lines } = stream();
    const empty: Resources = new Map([["ts/none.ts", resource("video/mp2t", "")]]);
    const laid = { resources, lines: ["#EXTINF:1,", "ts/none.ts", ...lines] };
    await using trial = await showEntry(open, listed(laid, empty), "index.m3u8");
    expect(await probe((await trial.download()).path)).toMatchObject(whole);
  });

  it("where the server of its key is out of order for a moment", async () => {
    const options = { ext: "ts", hasIv: true, rotation: 10 };
    const laid = layEncrypted("crypt", readRendition("high.m2t"), options);
    await using trial = await showEntry(open, listed(laid), "index.m3u8");
    let isFirst = true;
    trial.site.answer("crypt/0.key", (response, serve) => {
      if (!isFirst) return serve();
      isFirst = false;
      return response.writeHead(503).end();
    });
    expect(await probe((await trial.download()).path)).toMatchObject(whole);
  });
});

it("an MP4 file is left to the demuxer to read, also without an init section", async () => {
  const { pieces } = readRendition("muxed.m4s");
  await using trial = await showEntry(open, new Map(), "none.m3u8");
  const path = await trial.keep("part", Buffer.concat(pieces.map(({ data }) => data)));
  const read: unknown[] = [];
  for await (const { media } of readFileChunks(path)) read.push(media);
  expect(read).toEqual([{ path }]);
});

describe("a segment that is read from its file", () => {
  /** Remuxes a stream of `head` and then the MP4 file of all fragments. */
  async function remuxFragments(container: Container, head: Uint8Array | null) {
    const { init, pieces } = readRendition("muxed.m4s");
    const trial = await showEntry(open, new Map(), "none.m3u8");
    const path = await trial.keep("part", Buffer.concat(pieces.map(({ data }) => data)));
    const place = { timeline: 0, offsetS: null };
    async function* chunks(): AsyncGenerator<MediaChunk> {
      yield { media: head ?? init!, place };
      yield { media: { path }, place };
    }
    const main = { name: "main", container, path: null, chunks: chunks() } as const;
    const target = `${trial.job.folder}/result`;
    const options = { audio: null, openAudio: null, audioOnly: false, expectedS: 6, maxBytes: 1e6 };
    const { signal } = new AbortController();
    const done = remux({ main, target, signal, ...options });
    return { done, target, [Symbol.asyncDispose]: () => trial[Symbol.asyncDispose]() };
  }

  it("is demuxed with the init section before it", async () => {
    await using trial = await remuxFragments("mp4", null);
    await trial.done;
    expect(await probe(trial.target)).toMatchObject(whole);
  });

  it("is refused if the segments before it are of another container", async () => {
    await using trial = await remuxFragments("mpeg-ts", readRendition("high.m2t").pieces[0]!.data);
    await expect(trial.done).rejects.toMatchObject({ code: "upstream_invalid" });
  });
});

describe.concurrent("live HLS", () => {
  it("ends in time also where its segments state no length", async () => {
    const { resources, lines } = stream();
    const timeless = lines.map((line) => (line.startsWith("#EXTINF") ? "#EXTINF:0," : line));
    await using trial = await showEntry(open, resources, "index.m3u8");
    trial.site.resources.set("index.m3u8", hls(mediaPlaylist(timeless, false)));
    const { path } = await trial.download({ maxLiveS: 3 });
    expect((await probe(path)).streams).toMatchObject([{ frames: 75 }, {}]);
  });

  it("goes on behind a segment that is no medium", async () => {
    const { resources, lines } = stream();
    resources.set("ts/0.ts", resource("text/html", "<!doctype html><p>Bad gateway"));
    resources.set("ts/3.ts", resource("video/mp2t", ""));
    await using trial = await showEntry(open, resources, "index.m3u8");
    trial.site.resources.set("index.m3u8", hls(mediaPlaylist(lines, false)));
    const { path } = await trial.download({ maxLiveS: 6 });
    expect((await probe(path)).streams[0]?.frames).toBe(100);
  });

  it("tells no total of what is recorded", async () => {
    const { resources, lines } = stream();
    await using trial = await showEntry(open, resources, "index.m3u8");
    trial.site.resources.set("index.m3u8", hls(mediaPlaylist(lines, false)));
    await trial.download({ maxLiveS: 6 });
    const downloading = trial.progress.filter(({ stage }) => stage === "downloading");
    expect(new Set(downloading.map(({ total_bytes }) => total_bytes))).toEqual(new Set([null]));
  });
});
