import { createCipheriv, createDecipheriv } from "node:crypto";
import { readFileSync } from "node:fs";
import { afterAll, describe, expect, it } from "vitest";
import { remux } from "../../src/engines/native/output/remux.ts";
import { type MediaChunk, readFileChunks } from "../../src/engines/native/sources/source-stream.ts";
import { firstAudio } from "../../src/remux/audio-choice.ts";
import { nothingToAdd } from "../remux/additions.ts";
import { encryptFrames, key as sampleKey } from "../remux/sample-encryptor.ts";
import { adtsFrames } from "../remux/ts-packet-maker.ts";
import type { Container } from "../../src/remux/sniff.ts";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { openEntry } from "../contracts/engine/harness.ts";
import { type Laid, layEncrypted, layFiles, mediaPlaylist } from "../media/hls.ts";
import { probe } from "../media/probe.ts";
import { readMedium, readRendition } from "../media/rendition.ts";
import { hls, merge, resource, type Resources } from "../media/resources.ts";

const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
afterAll(() => engine.close());
const open = () => engine;

const stream = () => layFiles("ts", readRendition("high.m2t"), "ts");
const whole = { streams: [{ frames: 150 }, { frames: 283 }] };

const listed = ({ resources, lines }: Laid, ...more: Resources[]): Resources =>
  merge(resources, ...more, new Map([["index.m3u8", hls(mediaPlaylist(lines))]]));

const secret = Buffer.from("0123456789abcdef");

/** Encrypts all segments with `secret`. Without padding, a short one ends with null packets. */
function encrypt({ resources, lines }: Laid, uri: string, hasPadding: boolean): Laid {
  const iv = Buffer.alloc(16);
  const nullPacket = Buffer.alloc(188, 0xff).fill(Buffer.from([0x47, 0x1f, 0xff, 0x10]), 0, 4);
  for (const [path, { body }] of resources) {
    const packets = hasPadding ? 0 : (4 - ((body.length / 188) % 4)) % 4;
    const plain = Buffer.concat([body, ...Array.from({ length: packets }, () => nullPacket)]);
    const cipher = createCipheriv("aes-128-cbc", secret, iv).setAutoPadding(hasPadding);
    const bytes = Buffer.concat([cipher.update(plain), cipher.final()]);
    resources.set(path, resource("video/mp2t", bytes));
  }
  const key = `#EXT-X-KEY:METHOD=AES-128,URI="${uri}",IV=0x${iv.toString("hex")}`;
  return { resources, lines: [key, ...lines] };
}

/** Encrypts each segment with the key of its number. Returns their paths. */
function encryptEach(resources: Laid["resources"], keyOf: (number: number) => Buffer): string[] {
  const segments = [...resources.keys()].filter((path) => path.endsWith(".ts"));
  for (const [number, path] of segments.entries()) {
    const cipher = createCipheriv("aes-128-cbc", keyOf(number), Buffer.alloc(16));
    const body = Buffer.concat([cipher.update(resources.get(path)!.body), cipher.final()]);
    resources.set(path, resource("video/mp2t", body));
  }
  return segments;
}

it("a segment that its key does not decrypt is refused", async () => {
  const { resources, lines } = encrypt(stream(), `data:,${"x".repeat(16)}`, false);
  await using harness = await openEntry(open, listed({ resources, lines }), "index.m3u8");
  await expect(harness.download()).rejects.toThrow(/cannot be decrypted with its key/);
});

const locked = () => encrypt(stream(), `data:,${secret.toString()}`, true);

describe.concurrent("HLS is downloaded completely", () => {
  it.each([
    ["AES-256", "aes-256-cbc"],
    ["AES-256-CTR", "aes-256-ctr"],
  ])("under %s", async (method, algorithm) => {
    const { resources, lines } = stream();
    const long = Buffer.alloc(32, secret);
    for (const [path, { body }] of resources) {
      const cipher = createCipheriv(algorithm, long, Buffer.alloc(16));
      resources.set(path, resource("video/mp2t", Buffer.concat([cipher.update(body), cipher.final()])));
    }
    resources.set("long.key", resource("application/octet-stream", long));
    const key = `#EXT-X-KEY:METHOD=${method},URI="long.key",IV=0x${"0".repeat(32)}`;
    await using harness = await openEntry(open, listed({ resources, lines: [key, ...lines] }), "index.m3u8");
    const { path, warnings } = await harness.download();
    expect(await probe(path)).toMatchObject(whole);
    expect(warnings).toEqual([]);
  });

  it("if its server sends another key for a moment", async () => {
    const laid = encrypt(stream(), "secret.key", true);
    laid.resources.set("secret.key", resource("application/octet-stream", secret));
    await using harness = await openEntry(open, listed(laid), "index.m3u8");
    let wrong = 1;
    harness.site.answer("secret.key", (response, serve) => {
      if ((wrong -= 1) < 0) return serve();
      return response.end(Buffer.alloc(16, "x"));
    });
    const { path, warnings } = await harness.download();
    expect(await probe(path)).toMatchObject(whole);
    expect([wrong, warnings]).toEqual([-1, []]);
  });

  it("if its server sends other keys for several moments", async () => {
    const laid = encrypt(stream(), "secret.key", true);
    laid.resources.set("secret.key", resource("application/octet-stream", secret));
    await using harness = await openEntry(open, listed(laid), "index.m3u8");
    const wrong = ["x", "y", "y"];
    harness.site.answer("secret.key", (response, serve) => {
      const other = wrong.shift();
      return other === undefined ? serve() : response.end(Buffer.alloc(16, other));
    });
    const { path, warnings } = await harness.download();
    expect(await probe(path)).toMatchObject(whole);
    expect([wrong, warnings]).toEqual([[], []]);
  });

  it("if its server changes the key under one URL, and back", async () => {
    const { resources, lines } = stream();
    const keyOf = (number: number) => Buffer.alloc(16, `key ${number % 3} of the stream`);
    const segments = encryptEach(resources, keyOf);
    let current = 0;
    const key = `#EXT-X-KEY:METHOD=AES-128,URI="live.key",IV=0x${"0".repeat(32)}`;
    await using harness = await openEntry(open, listed({ resources, lines }), "index.m3u8");
    harness.site.answer("live.key", (response) => response.end(keyOf(current)));
    let listings = 0;
    harness.site.answer("index.m3u8", (response) => {
      listings += 1;
      current = listings - 1;
      response.end(mediaPlaylist([key, ...lines.slice(0, 2 * listings)], listings === segments.length));
    });
    const { path, warnings } = await harness.download();
    expect(await probe(path)).toMatchObject(whole);
    expect(warnings).toEqual([]);
  });

  it("if the key of a live stream comes to its server later than the playlist that names it", async () => {
    const { resources, lines } = stream();
    encryptEach(resources, () => secret);
    const key = `#EXT-X-KEY:METHOD=AES-128,URI="late.key",IV=0x${"0".repeat(32)}`;
    await using harness = await openEntry(open, listed({ resources, lines }), "index.m3u8");
    let missing = 2;
    harness.site.answer("late.key", (response) => {
      if ((missing -= 1) >= 0) return response.writeHead(404).end();
      return response.end(secret);
    });
    let listings = 0;
    harness.site.answer("index.m3u8", (response) => {
      listings += 1;
      response.end(mediaPlaylist([key, ...lines.slice(0, 2 * listings)], 2 * listings >= lines.length));
    });
    const { path, warnings } = await harness.download();
    expect([missing < 0, warnings]).toEqual([true, []]);
    expect(await probe(path)).toMatchObject(whole);
  });

  it("if what another key gives looks as if it had padding", async () => {
    const laid = encrypt(stream(), "secret.key", true);
    laid.resources.set("secret.key", resource("application/octet-stream", secret));
    const others = Array.from({ length: 4_096 }, (_, n) => Buffer.alloc(16, `key ${n}`));
    const first = laid.resources.get("ts/0.ts")!.body;
    const padded = others.find((key) => {
      const decipher = createDecipheriv("aes-128-cbc", key, first.subarray(-32, -16)).setAutoPadding(false);
      return decipher.update(first.subarray(-16)).at(-1) === 1;
    })!;
    await using harness = await openEntry(open, listed(laid), "index.m3u8");
    let wrong = 1;
    harness.site.answer("secret.key", (response, serve) => ((wrong -= 1) < 0 ? serve() : response.end(padded)));
    const { path, warnings } = await harness.download();
    expect(await probe(path)).toMatchObject(whole);
    expect(warnings).toEqual([]);
  });

  it("if the first segment is empty", async () => {
    const { resources, lines } = stream();
    const empty: Resources = new Map([["ts/none.ts", resource("video/mp2t", "")]]);
    const laid = { resources, lines: ["#EXTINF:1,", "ts/none.ts", ...lines] };
    await using harness = await openEntry(open, listed(laid, empty), "index.m3u8");
    expect(await probe((await harness.download()).path)).toMatchObject(whole);
  });

  it("but for one of which the server has only a message, of which a warning tells", async () => {
    const { resources, lines } = stream();
    resources.set("ts/2.ts", resource("application/json", '{"error":"gone"}'));
    await using harness = await openEntry(open, listed({ resources, lines }), "index.m3u8");
    const { path, warnings } = await harness.download();
    expect((await probe(path)).streams[0]?.frames).toBeLessThan(150);
    expect(warnings).toContainEqual({
      code: "frames_missing",
      message: expect.stringMatching(/^1 of \d+ segments had no media$/),
    });
  });

  it("if its server leaves out of a live playlist what it has listed before", async () => {
    const { resources, lines } = stream();
    await using harness = await openEntry(open, listed({ resources, lines }), "index.m3u8");
    let listings = 0;
    harness.site.answer("index.m3u8", (response, _, { url }) => {
      const until = Math.min(6, 2 + 2 * listings);
      const isWhole = listings === 0 && url === "/index.m3u8?token=1";
      const skipped = isWhole ? 0 : until - 2;
      const skip = isWhole ? [] : [`#EXT-X-SKIP:SKIPPED-SEGMENTS=${skipped}`];
      response.end(mediaPlaylist([...skip, ...lines.slice(2 * skipped, 2 * until)], until === 6));
      listings += 1;
    });
    const address = harness.site.url("index.m3u8?_HLS_msn=2&token=1&_HLS_skip=YES");
    const format = { ...harness.job.format, url: address, manifest_url: address };
    const { path, warnings } = await harness.download({ format });
    expect(await probe(path)).toMatchObject(whole);
    expect([listings, warnings]).toEqual([3, []]);
  });

  it("but for those that a live stream begins with, unless they are more than five", async () => {
    const { resources, lines } = stream();
    const listing = (...messages: number[]): Laid => {
      const told = messages.map(
        (number) => [`ts/no${number}.ts`, resource("text/plain", "no such channel\n")] as const,
      );
      const first = told.flatMap(([path]) => ["#EXTINF:1,", path]);
      return { resources: merge(resources, new Map(told)), lines: [...first, ...lines] };
    };
    const openLive = async (laid: Laid) => {
      const harness = await openEntry(open, listed(laid), "index.m3u8");
      let readings = 0;
      harness.site.answer("index.m3u8", (response) => response.end(mediaPlaylist(laid.lines, (readings += 1) > 1)));
      return harness;
    };
    await using some = await openLive(listing(1, 2));
    const { path, warnings } = await some.download();
    expect(await probe(path)).toMatchObject(whole);
    expect(warnings).toMatchObject([{ code: "frames_missing", message: "2 of 8 segments had no media" }]);
    await using all = await openLive(listing(1, 2, 3, 4, 5, 6));
    const rule = /no\d\.ts: the response is text, not media$/;
    await expect(all.download()).rejects.toMatchObject({
      code: "upstream_invalid",
      message: expect.stringMatching(rule),
    });
  });

  it.each([
    ["packet", stream, "ts/2.ts", false],
    ["block", locked, "ts/2.ts", false],
    ["block", locked, "ts/2.ts", true],
    ["box", () => layFiles("fmp4", readRendition("muxed.m4s"), "m4s"), "fmp4/2.m4s", false],
  ])("if a server cut a segment off within a %s, and then has all of it", async (_, lay, path, isLengthStated) => {
    const laid = lay();
    await using harness = await openEntry(open, listed(laid), "index.m3u8");
    let cuts = 2;
    harness.site.answer(path, (response, serve) => {
      if ((cuts -= 1) < 0) return serve();
      const { body } = laid.resources.get(path)!;
      const cut = body.subarray(0, 1 + 188 * 3);
      if (isLengthStated) return response.end(cut);
      response.write(cut);
      return response.end();
    });
    const file = await harness.download();
    expect(await probe(file.path)).toMatchObject(whole);
    expect([cuts, file.warnings]).toEqual([-1, []]);
  });

  it.each([
    ["playlist", "index.m3u8", "<!doctype html><title>Busy</title>"],
    ["playlist", "index.m3u8", ""],
    ["key", "enc/0.key", `<!doctype html>${"busy ".repeat(1_000)}`],
    ["key", "enc/0.key", ""],
  ])("if a server has a message or nothing in place of its %s for a moment", async (_, path, message) => {
    const laid = layEncrypted("enc", readRendition("high.m2t"), { ext: "ts", hasIv: true, rotation: 100 });
    await using harness = await openEntry(open, listed(laid), "index.m3u8");
    let isBusy = true;
    harness.site.answer(path, (response, serve) => {
      if (!isBusy) return serve();
      isBusy = false;
      return response.end(message);
    });
    const file = await harness.download();
    expect(await probe(file.path)).toMatchObject(whole);
    expect(harness.site.asked.filter((asked) => asked.path === path)).toHaveLength(2);
  });

  it("but for segments that the playlist marks as gaps, of which a warning tells", async () => {
    const { resources, lines } = stream();
    const gap = lines.findIndex((line) => line.startsWith("#EXTINF"));
    const marked = lines.toSpliced(gap + 2, 0, "#EXT-X-GAP");
    await using harness = await openEntry(open, listed({ resources, lines: marked }), "index.m3u8");
    const { warnings } = await harness.download();
    expect(warnings[0]).toMatchObject({
      code: "frames_missing",
      message: expect.stringMatching(/^1 of \d+ segments had no media/),
    });
  });

  it.each([
    ["grows, of which a warning tells", ["length_unknown"]],
    ["is gone later, of which a warning tells", ["length_unknown"]],
    ["is the same when it would have grown", []],
    ["states it later", []],
  ])("from a playlist that does not state its end and %s", async (then, codes) => {
    const { resources, lines } = stream();
    const all = ["#EXT-X-PLAYLIST-TYPE:VOD", ...lines];
    await using harness = await openEntry(open, listed({ resources, lines }), "index.m3u8");
    let readings = 0;
    harness.site.answer("index.m3u8", (response) => {
      const isFirst = (readings += 1) === 1;
      if (!isFirst && then.startsWith("is gone")) return response.writeHead(404).end();
      const sent = isFirst && then.startsWith("grows") ? all.slice(0, -2) : all;
      return response.end(mediaPlaylist(sent, !isFirst && then.startsWith("states")));
    });
    expect((await harness.download()).warnings.map(({ code }) => code)).toEqual(codes);
    expect(readings).toBe(2);
    readings = 0;
    expect((await harness.download({ ranges: [{ startS: 0, endS: 1 }] })).warnings).toEqual([]);
    expect(readings).toBe(1);
  });

  it("but for what its playlist has no more after an earlier run, of which a warning tells", async () => {
    const { resources, lines } = stream();
    await using harness = await openEntry(open, listed({ resources, lines }), "index.m3u8");
    harness.site.answer("ts/1.ts", (response) => response.writeHead(404).end());
    await expect(harness.download()).rejects.toThrow(/404/);
    harness.site.answer("ts/1.ts", (_, serve) => serve());
    harness.site.resources.set("index.m3u8", hls(mediaPlaylist(lines.slice(0, -4))));
    const message = "the list of segments had 6.0 s in an earlier run, and has 4.0 s";
    expect((await harness.download()).warnings).toEqual([{ code: "length_unknown", message }]);
    expect((await harness.download({ ranges: [{ startS: 0, endS: 1 }] })).warnings).toEqual([]);
    harness.site.resources.set("index.m3u8", hls(mediaPlaylist(lines)));
    expect((await harness.download()).warnings).toEqual([]);
  });

  it("if its key is in the playlist", async () => {
    const uri = `data:text/plain;base64,${secret.toString("base64")}`;
    const laid = encrypt(stream(), uri, true);
    await using harness = await openEntry(open, listed(laid), "index.m3u8");
    expect(await probe((await harness.download()).path)).toMatchObject(whole);
  });

  it("if only its samples are encrypted", async () => {
    const frames = adtsFrames(50);
    const audio = resource("audio/aac", encryptFrames(Buffer.from(frames), 100));
    const uri = `data:text/plain;base64,${sampleKey.key.toString("base64")}`;
    const lines = [
      `#EXT-X-KEY:METHOD=SAMPLE-AES,URI="${uri}",IV=0x${sampleKey.iv.toString("hex")}`,
      "#EXTINF:1.07,",
      "a.aac",
    ];
    await using harness = await openEntry(
      open,
      listed({ resources: new Map([["a.aac", audio]]), lines }),
      "index.m3u8",
    );
    const { path, warnings } = await harness.download();
    expect(warnings).toEqual([]);
    expect(readFileSync(path).includes(frames.subarray(7, 100))).toBe(true);
  });

  it("if its segments are encrypted without padding", async () => {
    const uri = `data:,${secret.toString("latin1")}`;
    const laid = encrypt(stream(), uri, false);
    await using harness = await openEntry(open, listed(laid), "index.m3u8");
    expect(await probe((await harness.download()).path)).toMatchObject(whole);
  });

  it("if its key server fails once", async () => {
    const options = { ext: "ts", hasIv: true, rotation: 10 };
    const laid = layEncrypted("crypt", readRendition("high.m2t"), options);
    await using harness = await openEntry(open, listed(laid), "index.m3u8");
    let isFirst = true;
    harness.site.answer("crypt/0.key", (response, serve) => {
      if (!isFirst) return serve();
      isFirst = false;
      return response.writeHead(503).end();
    });
    expect(await probe((await harness.download()).path)).toMatchObject(whole);
  });
});

describe("an init section", () => {
  /** Downloads a stream whose init section ends with a box without content that makes it so large. */
  async function downloadWithInit(bytes: number) {
    const { init, pieces } = readRendition("muxed.m4s");
    const padding = Buffer.alloc(bytes - init!.length);
    padding.writeUInt32BE(padding.length);
    padding.write("free", 4);
    const laid = layFiles("mp4", { init: Buffer.concat([init!, padding]), pieces }, "m4s");
    const harness = await openEntry(open, listed(laid), "index.m3u8");
    return { done: harness.download(), [Symbol.asyncDispose]: () => harness[Symbol.asyncDispose]() };
  }

  it("may have 4 MiB", async () => {
    await using harness = await downloadWithInit(4 << 20);
    expect(await probe((await harness.done).path)).toMatchObject(whole);
  });

  it("is refused if it has more", async () => {
    await using harness = await downloadWithInit((4 << 20) + 1);
    const message = expect.stringMatching(/init\.mp4: it has 4194305 bytes or more, the limit is 4194304$/);
    await expect(harness.done).rejects.toMatchObject({ code: "upstream_invalid", message });
  });
});

it("an MP4 file is left to the demuxer, even without an init section", async () => {
  const { pieces } = readRendition("muxed.m4s");
  await using harness = await openEntry(open, new Map(), "none.m3u8");
  const path = await harness.keep("part", Buffer.concat(pieces.map(({ data }) => data)));
  const read: unknown[] = [];
  for await (const { media } of readFileChunks(path)) read.push(media);
  expect(read).toEqual([{ path }]);
});

describe("a segment that is read from its file", () => {
  /** Remuxes a stream of `head` and then the MP4 file of all fragments. */
  async function remuxFragments(container: Container, head: Uint8Array | null) {
    const { init, pieces } = readRendition("muxed.m4s");
    const harness = await openEntry(open, new Map(), "none.m3u8");
    const path = await harness.keep("part", Buffer.concat(pieces.map(({ data }) => data)));
    const timing = { timeline: 0, offsetS: null };
    async function* chunks(): AsyncGenerator<MediaChunk> {
      yield { media: head ?? init!, timing };
      yield { media: { path }, timing };
    }
    const source = { name: "main", role: "main", label: { language: null } } as const;
    const streams = [{ ...source, container, path: null, chunks: chunks() }] as const;
    const target = `${harness.job.folder}/result`;
    const options = { openFallback: null, audioChoice: firstAudio, audioOnly: false, expectedS: 6, maxBytes: 1e6 };
    const { signal } = new AbortController();
    const done = remux({ streams, target, onWritten: () => {}, additions: nothingToAdd, signal, ...options });
    return { done, target, [Symbol.asyncDispose]: () => harness[Symbol.asyncDispose]() };
  }

  it("is demuxed with the init section before it", async () => {
    await using harness = await remuxFragments("mp4", null);
    await harness.done;
    expect(await probe(harness.target)).toMatchObject(whole);
  });

  it("is refused if the segments before it are of another container", async () => {
    await using harness = await remuxFragments("mpeg-ts", readRendition("high.m2t").pieces[0]!.data);
    await expect(harness.done).rejects.toMatchObject({ code: "upstream_invalid" });
  });
});

it.each([
  ["MPEG-TS", "MP4", 0],
  ["MP4", "MPEG-TS", 1],
])("a playlist of %s and then %s is refused by name", async (_first, _second, from) => {
  const laid = [stream(), layFiles("mp4", readRendition("muxed.m4s"), "m4s")];
  const lines = [...laid[from]!.lines, "#EXT-X-DISCONTINUITY", ...laid[1 - from]!.lines];
  await using harness = await openEntry(
    open,
    listed({ resources: laid[0]!.resources, lines }, laid[1]!.resources),
    "index.m3u8",
  );
  const message = "a playlist of both MPEG-TS and MP4 segments cannot become one file";
  await expect(harness.download()).rejects.toMatchObject({ code: "upstream_invalid", message });
});

/** MP3 that is cut anywhere, first within a frame that has letters only, as LAME pads silence. */
function layCutMp3(): Laid & { frames: number } {
  const file = readMedium("tone.mp3");
  // The first frame has a table, and is none of the sound.
  const sound = file.subarray(file.indexOf("\xff\xfb", file.indexOf("Info") + 4, "latin1"));
  const bytes = Buffer.concat([Buffer.from(`LAME3.100${"U".repeat(150)}`), sound]);
  const pieces = Array.from({ length: 6 }, (_, i) => ({
    data: bytes.subarray(Math.round((i * bytes.length) / 6), Math.round(((i + 1) * bytes.length) / 6)),
    durationS: 1,
  }));
  return { ...layFiles("mp3", { init: null, pieces }, "mp3"), frames: 251 };
}

it.each([
  ["all", true],
  ["live", false],
])("segments of MP3 that begin within frames are joined without loss: %s", async (_which, isOver) => {
  const { resources, lines, frames } = layCutMp3();
  await using harness = await openEntry(open, resources, "index.m3u8");
  harness.site.resources.set("index.m3u8", hls(mediaPlaylist(lines, isOver)));
  const { path, warnings } = await harness.download(isOver ? {} : { maxLiveS: 6 });
  expect((await probe(path)).streams).toMatchObject([{ frames }]);
  expect(warnings).toEqual([]);
});

it("a page in place of a segment of such MP3 is missing, whatever characters it has", async () => {
  const { resources, lines } = layCutMp3();
  resources.set("mp3/3.mp3", resource("text/html", "<!doctype html><p>Bad gateway, no backend</p>\0"));
  await using harness = await openEntry(open, listed({ resources, lines }), "index.m3u8");
  const { warnings } = await harness.download();
  expect(warnings[0]).toMatchObject({ code: "frames_missing", message: "1 of 6 segments had no media" });
});

describe.concurrent("live HLS", () => {
  it("ends in time even if its segments state no duration", async () => {
    const { resources, lines } = stream();
    const timeless = lines.map((line) => (line.startsWith("#EXTINF") ? "#EXTINF:0," : line));
    await using harness = await openEntry(open, resources, "index.m3u8");
    harness.site.resources.set("index.m3u8", hls(mediaPlaylist(timeless, false)));
    const { path } = await harness.download({ maxLiveS: 3 });
    expect((await probe(path)).streams).toMatchObject([{ frames: 75 }, {}]);
  });

  it("continues after a segment without media", async () => {
    const { resources, lines } = stream();
    resources.set("ts/0.ts", resource("text/html", "<!doctype html><p>Bad gateway"));
    resources.set("ts/3.ts", resource("video/mp2t", ""));
    await using harness = await openEntry(open, resources, "index.m3u8");
    harness.site.resources.set("index.m3u8", hls(mediaPlaylist(lines, false)));
    const { path } = await harness.download({ maxLiveS: 6 });
    expect((await probe(path)).streams[0]?.frames).toBe(100);
  });

  it("goes on if the key that its first segments had is gone after a run that was killed", async () => {
    const { resources, lines } = stream();
    const keyOf = (number: number) => Buffer.alloc(16, number < 2 ? "a key that changes" : "another");
    const segments = encryptEach(resources, keyOf);
    const key = `#EXT-X-KEY:METHOD=AES-128,URI="live.key",IV=0x${"0".repeat(32)}`;
    await using harness = await openEntry(open, listed({ resources, lines }), "index.m3u8");
    let count = 2;
    harness.site.answer("live.key", (response) => response.end(keyOf(count - 1)));
    harness.site.answer("index.m3u8", (response) => {
      response.end(mediaPlaylist([key, ...lines.slice(0, 2 * count)], count === segments.length));
    });
    const stop = new AbortController();
    const killed = harness.download({}, stop.signal);
    await harness.whenDownloaded(resources.get(segments[0]!)!.body.length + resources.get(segments[1]!)!.body.length);
    stop.abort();
    await expect(killed).rejects.toBe(stop.signal.reason);
    count = segments.length;
    const { path, warnings } = await harness.download();
    const message = `2 of ${segments.length} segments had no media`;
    expect(warnings).toEqual([{ code: "frames_missing", message }]);
    const { streams } = await probe(path);
    expect(streams[0]?.frames).toBeGreaterThan(75);
  });

  it("reports no total bytes", async () => {
    const { resources, lines } = stream();
    await using harness = await openEntry(open, resources, "index.m3u8");
    harness.site.resources.set("index.m3u8", hls(mediaPlaylist(lines, false)));
    await harness.download({ maxLiveS: 6 });
    const downloading = harness.progress.filter(({ stage }) => stage === "downloading");
    expect(new Set(downloading.map(({ total_bytes }) => total_bytes))).toEqual(new Set([null]));
  });
});
