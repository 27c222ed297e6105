import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Download } from "../../src/engines/engine.ts";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import type { MediaRange } from "../../src/remux/samples.ts";
import { type EngineHarness, formatAt, openMedia } from "../contracts/engine/harness.ts";
import { makeMedia } from "../media/long-media.ts";
import { hasFfmpeg } from "../media/probe.ts";
import { dash, merge, resource, type Resources } from "../media/resources.ts";
import { audioFaults, expectedCut, presentAll, type Presented, randomRanges } from "../remux/mp4-cuts.ts";

/** Of all media, and of a group of pictures, seconds. */
const [lengthS, groupS] = [60, 2];
/** Random draws of ranges for each kind of media, beside those that are always fetched. */
const draws = Number(process.env["RANGE_DRAWS"] ?? 1);

const video = `-f lavfi -i testsrc2=size=96x54:rate=25:duration=${lengthS}`;
const audio = `-f lavfi -i anoisesrc=duration=${lengthS}:sample_rate=48000:amplitude=0.3:seed=7`;
const x264 = "-c:v libx264 -preset veryfast -bf 3 -g 50 -sc_threshold 0 -b:v 200k";
const vp9 = "-c:v libvpx-vp9 -cpu-used 8 -deadline realtime -g 50 -b:v 150k";

/** What is encoded; all other media are copies of it in other containers. */
const sources = {
  "h264.mp4": `${video} ${audio} ${x264} -c:a aac`,
  "open.mp4": `${video} ${audio} ${x264} -x264-params open-gop=1 -c:a libmp3lame`,
  "vp9.webm": `${video} ${audio} ${vp9} -c:a libopus`,
  "vorbis.webm": `${audio} -c:a libvorbis`,
} as const;

const fragmented = "-movflags +frag_keyframe+empty_moov+default_base_moof+global_sidx";
const [h264, open, webm] = ["-i h264.mp4 -c copy", "-i open.mp4 -c copy", "-i vp9.webm -c copy"];

const kinds = {
  "WebM with its Cues at the end": `${webm} index.webm`,
  "WebM with its Cues in front": `${webm} -cues_to_front 1 index.webm`,
  "WebM with small Clusters": `${webm} -cluster_time_limit 300 index.webm`,
  "WebM without audio": `${webm} -an index.webm`,
  "WebM with Vorbis": "-i vp9.webm -i vorbis.webm -map 0:v -map 1:a -c copy index.webm",
  "Matroska with B-frames": `${h264} index.mkv`,
  "Matroska with open GOPs": `${open} index.mkv`,
  "a fragmented MP4": `${h264} ${fragmented} index.mp4`,
  "a progressive MP4 with open GOPs": `${open} index.mp4`,
  "Matroska whose audio starts late": `-i h264.mp4 -itsoffset 1 -i h264.mp4 -map 0:v -map 1:a -t ${lengthS} -c copy index.mkv`,
} as const;

const cache = new Map<string, ReturnType<typeof makeMedia>>();

/** Makes media once for all tests, which must not change them. */
function mediaOf(line: string, entry: string): ReturnType<typeof makeMedia> {
  const make = async () => {
    const inputs = Object.entries(sources).filter(([name]) => entry !== name && line.includes(name));
    const read = await Promise.all(
      inputs.map(async ([name, input]) => (await mediaOf(`${input} ${name}`, name)).resources),
    );
    return makeMedia(line, entry, merge(...read));
  };
  const media = cache.get(line) ?? make();
  cache.set(line, media);
  return media;
}

const kindOf = (name: keyof typeof kinds) => mediaOf(kinds[name], kinds[name].split(" ").at(-1)!);

const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
afterAll(() => engine.close());
const openEngine = () => engine;

/** A file that was made of ranges of the media. */
interface Part {
  made: Download;
  ranges: readonly MediaRange[];
}

/** Checks that files present their ranges exactly; `whole` is all of the media. */
async function expectRanges(whole: Download, parts: readonly Part[]): Promise<void> {
  const [source, ...shown] = await presentAll(whole.path, ...parts.map(({ made }) => made.path));
  for (const [i, part] of parts.entries()) expectRange(part, shown[i]!, source!);
}

function expectRange({ made, ranges }: Part, { frames: shown, packets: heard }: Presented, source: Presented): void {
  const { frames, packets } = source;
  const note = JSON.stringify(ranges);
  const expected = expectedCut(frames, ranges, frames.at(-1)!.timeS + 0.04);
  expect([made.ext, made.warnings], note).toEqual(["mp4", []]);
  expect(made.duration, note).toBeCloseTo(expected.durationS, 1);
  expect(
    shown.map(({ hash }) => hash),
    note,
  ).toEqual(expected.frames.map(({ hash }) => hash));
  const offS = shown.map(({ timeS }, i) => Math.abs(timeS - shown[0]!.timeS - expected.frames[i]!.timeS));
  expect(Math.max(...offS), note).toBeLessThan(0.002);
  if (packets.length === 0) return;
  expect(audioFaults(heard, packets, expected), note).toEqual([]);
}

/** Downloads the whole, and each list of ranges of it, and checks these. */
async function expectCuts(harness: EngineHarness, lists: readonly MediaRange[][]): Promise<void> {
  const whole = await harness.download({ folder: await harness.newFolder() });
  const parts: Part[] = [];
  for (const ranges of lists) {
    parts.push({ ranges, made: await harness.download({ ranges, folder: await harness.newFolder() }) });
  }
  await expectRanges(whole, parts);
}

/** The largest share of the media that the ranges may need, with two groups of pictures each and the first one. */
function largestShare(ranges: readonly MediaRange[]): number {
  const neededS = ranges.reduce((sum, { startS, endS }) => sum + endS - startS + 2 * groupS, groupS);
  return (1.25 * neededS) / lengthS;
}

/** Head and index of a file. */
const indexBytes = 3 * 65_536;

describe.skipIf(!hasFfmpeg)("fetches what ranges need of one file", () => {
  it.each(Object.keys(kinds) as (keyof typeof kinds)[])("that is %s", async (name) => {
    const media = await kindOf(name);
    await using harness = await openMedia(openEngine, media);
    await expectParts(harness, media.resources.get(media.entry)!.body.length);
  });

  describe("and another one, with the audio,", () => {
    const apart = {
      "a fragmented MP4": `${h264} -map 0:v ${fragmented} v.mp4 -map 0:a -c copy -frag_duration 2000000 ${fragmented} a.mp4`,
      "a progressive MP4": `${h264} -map 0:v v.mp4 -map 0:a -c copy -movflags +faststart a.mp4`,
      "a progressive MP4 with open GOPs": `${open} -map 0:v v.mp4 -map 0:a -c copy a.mp4`,
      WebM: `${webm} -map 0:v -dash 1 v.webm -map 0:a -c copy -dash 1 a.webm`,
    };
    const extOf = (name: string) => (name === "WebM" ? "webm" : "mp4");
    const listed = Object.entries(apart).filter(([name]) => !name.includes("progressive"));

    it.each(Object.entries(apart))("that is %s", async (name, line) => {
      const ext = extOf(name);
      const media = await mediaOf(line, `v.${ext}`);
      await using harness = await openMedia(openEngine, media);
      const format = { ...harness.job.format, acodec: "none" };
      const sound = { ...format, ...formatAt(harness.site.url(`a.${ext}`)), vcodec: "none" };
      Object.assign(harness.job, { format, audio: sound });
      await expectParts(harness, bytesOf(media.resources));
    });

    it.each(listed)("that an MPD lists as %s", async (name, line) => {
      const ext = extOf(name);
      const { resources } = await mediaOf(line, `v.${ext}`);
      const sets = (["video", "audio"] as const).map((kind) => {
        const codecs = { mp4: { video: "avc1.64000a", audio: "mp4a.40.2" }, webm: { video: "vp9", audio: "opus" } };
        const attributes = `id="${kind}" mimeType="${kind}/${ext}" codecs="${codecs[ext][kind]}" bandwidth="200000"`;
        const base = `<BaseURL>${kind[0]}.${ext}</BaseURL><SegmentBase indexRange="300-400"/>`;
        return `<AdaptationSet contentType="${kind}"><Representation ${attributes}>${base}</Representation></AdaptationSet>`;
      });
      const mpd = `<MPD type="static" mediaPresentationDuration="PT${lengthS}S"><Period>${sets.join("")}</Period></MPD>`;
      await using harness = await openMedia(openEngine, {
        resources: merge(resources, new Map([["index.mpd", dash(mpd)]])),
        entry: "index.mpd",
      });
      await expectParts(harness, bytesOf(resources));
    });
  });

  const listedAs = (type: string) => `-f hls -hls_time 2 -hls_playlist_type vod -hls_segment_type ${type} index.m3u8`;
  const dashed = `${webm} -f dash -dash_segment_type webm -seg_duration 2 index.mpd`;

  it("or many that are segments of WebM", async () => {
    const media = await mediaOf(dashed, "index.mpd");
    await using harness = await openMedia(openEngine, media);
    await expectParts(harness, bytesOf(media.resources));
  });

  it("and all segments of WebM if Cues come before them", async () => {
    const media = await mediaOf(dashed, "index.mpd");
    const [path, { type, body }] = [...media.resources].find(([name]) => name.startsWith("init-stream0"))!;
    const init = Buffer.from(body);
    // An empty element in place of the one that fills up.
    init.write("1c53bb6b80ec0100000000000063", init.indexOf(Buffer.from("ec0100000000000068", "hex")), "hex");
    const resources = merge(media.resources, new Map([[path, { type, body: init }]]));
    await using harness = await openMedia(openEngine, { ...media, resources });
    const whole = await harness.download({ folder: await harness.newFolder() });
    const before = harness.site.sent;
    const ranges = [{ startS: 30, endS: 32 }];
    const made = await harness.download({ ranges, folder: await harness.newFolder() });
    await expectRanges(whole, [{ made, ranges }]);
    expect(harness.site.sent - before).toBeGreaterThan(0.9 * bytesOf(media.resources));
  });

  it.each([
    ["shorter than they are, of WebM", 0.85, dashed, "index.mpd"],
    ["shorter than they are, of fragmented MP4", 0.85, `${h264} ${listedAs("fmp4")}`, "index.m3u8"],
    ["shorter than they are, of MPEG-TS", 0.85, `${h264} ${listedAs("mpegts")}`, "index.m3u8"],
    ["longer than they are, of MPEG-TS", 1.2, `${h264} ${listedAs("mpegts")}`, "index.m3u8"],
  ])("or all segments, where their list says that they are %s", async (_, factor, line, entry) => {
    const media = await mediaOf(line, entry);
    const { type, body } = media.resources.get(entry)!;
    const list = body
      .toString()
      .replace(/(?<= d=")\d+/g, (ticks) => String(Math.round(Number(ticks) * factor)))
      .replace(/(?<=EXTINF:)[\d.]+/g, (seconds) => String(Number(seconds) * factor));
    const resources = merge(media.resources, new Map([[entry, { type, body: Buffer.from(list) }]]));
    await using harness = await openMedia(openEngine, { resources, entry });
    await expectCuts(harness, [
      [{ startS: 13.03, endS: 14.71 }],
      [
        { startS: 7.35, endS: 7.87 },
        { startS: 38.23, endS: 41.31 },
      ],
    ]);
  });

  it("or all segments, where a range begins with the last pictures of one whose list says that it ends before", async () => {
    const media = await mediaOf(`${h264} ${listedAs("fmp4")}`, "index.m3u8");
    const { type, body } = media.resources.get("index.m3u8")!;
    const durations = Array.from(body.toString().matchAll(/(?<=EXTINF:)[\d.]+/g), ([seconds]) => Number(seconds));
    const boundaryS = durations.slice(0, 4).reduce((sum, seconds) => sum + seconds, 0);
    let index = 0;
    const moved = (seconds: string) => String(Number(seconds) + ([0, 0, 0, -0.5, 0.5][index++] ?? 0));
    const list = body.toString().replace(/(?<=EXTINF:)[\d.]+/g, moved);
    const resources = merge(media.resources, new Map([["index.m3u8", { type, body: Buffer.from(list) }]]));
    await using harness = await openMedia(openEngine, { resources, entry: "index.m3u8" });
    await expectCuts(harness, [[{ startS: boundaryS - 0.05, endS: boundaryS + 1.13 }]]);
  });

  it.each([["h264.mp4"], ["vp9.webm"]])(
    "or the later segments of separate audio that a range needs, where the video of %s begins later than its list says",
    async (name) => {
      const lists = `-f dash -dash_segment_type auto -use_template 0 -use_timeline 0 -seg_duration 2 index.mpd`;
      const late = `-itsoffset 0.9 -i ${name} -i ${name} -map 0:v -map 1:a -t ${lengthS} -c copy ${lists}`;
      const { resources } = await mediaOf(late, "index.mpd");
      await using harness = await openMedia(openEngine, { resources, entry: "index.mpd" });
      await expectCuts(harness, [
        [{ startS: 4.81, endS: 5.73 }],
        [
          { startS: 8.2, endS: 9.48 },
          { startS: 20.6, endS: 21.88 },
        ],
      ]);
    },
  );

  const bytesOf = (resources: Resources) => [...resources.values()].reduce((sum, { body }) => sum + body.length, 0);

  /** Downloads ranges, and checks what comes of them and how much was sent for it. */
  async function expectParts(harness: EngineHarness, fileBytes: number): Promise<void> {
    const whole = await harness.download({ folder: await harness.newFolder() });
    const parts: Part[] = [];
    const all: readonly MediaRange[][] = [
      [
        { startS: 11.3, endS: 11.9 },
        { startS: 33.97, endS: 34 },
        { startS: 58.41, endS: 500 },
      ],
      ...Array.from({ length: draws }, (_, i) => i + 1).map((seed) =>
        randomRanges(seed, 1 + (seed % 3), lengthS).map(({ startS, endS }) => ({
          startS,
          endS: Math.min(endS, startS + 5),
        })),
      ),
    ];
    for (const ranges of all) {
      const before = harness.site.sent;
      const made = await harness.download({ ranges, folder: await harness.newFolder() });
      const sent = harness.site.sent - before;
      parts.push({ made, ranges });
      const ends = ranges.map(({ startS, endS }) => ({ startS, endS: Math.min(endS, lengthS) }));
      expect(sent, JSON.stringify(ranges)).toBeLessThan(largestShare(ends) * fileBytes + indexBytes);
    }
    await expectRanges(whole, parts);
  }

  describe("or all of a fragmented MP4, and makes the same file,", () => {
    const ranges = [
      { startS: 15.2, endS: 16 },
      { startS: 45, endS: 47.6 },
    ];
    const entryBytes = 12;

    /** Returns where the entries of the first segment index begin, and how many it has. */
    function entriesIn(body: Buffer): { at: number; count: number } {
      const type = body.indexOf("sidx");
      return { at: type + 36, count: body.readUInt16BE(type + 34) };
    }

    it.each<[string, (body: Buffer) => void]>([
      [
        "its index is absent",
        (body) => body.write("free", body.indexOf("sidx")) && body.write("free", body.indexOf("sidx")),
      ],
      [
        "the index has other sizes",
        (body) => {
          const { at } = entriesIn(body);
          for (const [entry, by] of [
            [6, 100],
            [7, -100],
          ] as const) {
            const place = at + entry * entryBytes;
            body.writeUInt32BE(body.readUInt32BE(place) + by, place);
          }
        },
      ],
      [
        "the index has other times",
        (body) => {
          const { at, count } = entriesIn(body);
          for (let entry = 0; entry < count; entry++) {
            const place = at + entry * entryBytes + 4;
            body.writeUInt32BE(Math.round(body.readUInt32BE(place) * 1.2), place);
          }
        },
      ],
      [
        "a fragment does not say when it is presented",
        (body) => {
          const { at } = entriesIn(body);
          const sizes = Array.from({ length: 22 }, (_, entry) => body.readUInt32BE(at + entry * entryBytes));
          const start = body.indexOf("moof") - 4 + sizes.reduce((sum, size) => sum + size, 0);
          body.write("free", body.indexOf("tfdt", start));
        },
      ],
    ])("if %s", async (_why, change) => {
      const media = await kindOf("a fragmented MP4");
      await using harness = await openMedia(openEngine, media);
      const right = await harness.download({ ranges, folder: await harness.newFolder() });
      const { type, body } = media.resources.get("index.mp4")!;
      const changed = Buffer.from(body);
      change(changed);
      expect(changed.equals(body)).toBe(false);
      harness.site.resources.set("index.mp4", { type, body: changed });
      const before = harness.site.sent;
      const made = await harness.download({ ranges, folder: await harness.newFolder() });
      expect([made.sha256, made.warnings]).toEqual([right.sha256, []]);
      expect(harness.site.sent - before).toBeGreaterThan(body.length);
    });
  });

  it("if three copies of it can be kept, and two of a whole file", async () => {
    await using harness = await openMedia(openEngine, await kindOf("WebM without audio"));
    const small = createNativeEngine({ allowNetworks: ["127.0.0.1/32"], minFreeBytes: 2 ** 50 });
    const { job, site } = harness;
    const headBytes = 65_536;
    const refusal = (change: Partial<typeof job>) =>
      small.download({ ...job, ...change }, { signal: new AbortController().signal, onProgress: () => {} });
    const needs = (bytes: number) => ({
      code: "disk_full",
      message: expect.stringContaining(` needs ${bytes} more bytes`),
    });
    await expect(refusal({ ranges: [{ startS: 1, endS: 2 }] })).rejects.toMatchObject(needs(3 * headBytes));
    const whole = site.resources.get("index.webm")!.body.length;
    await expect(refusal({ embed: "all" })).rejects.toMatchObject(needs(2 * whole));
    await small.close();
  });

  it.each([
    ["WebM in WebM", "index.webm", `${webm} -vn index.webm`, false],
    ["WebM in a file of its own kind", "index.webm", `${webm} -vn index.webm`, true],
    ["a progressive MP4 with video", "index.mp4", `${h264} index.mp4`, false],
  ])("whose audio alone is wanted, of %s", async (_, entry, line, isAudioFile) => {
    const media = await mediaOf(line, entry);
    await using harness = await openMedia(openEngine, media);
    const { body } = media.resources.get(entry)!;
    const wanted = { ranges: [{ startS: 31.03, endS: 33.4 }], audioOnly: true, isAudioFile };
    const before = harness.site.sent;
    const made = await harness.download({ ...wanted, folder: await harness.newFolder() });
    // Clusters last 5 s.
    expect(harness.site.sent - before).toBeLessThan((20 / lengthS) * body.length + indexBytes);
    harness.site.answer(entry, (response) => response.writeHead(200).end(body));
    const right = await harness.download({ ...wanted, folder: await harness.newFolder() });
    expect([made.ext, made.duration, made.sha256]).toEqual([right.ext, right.duration, right.sha256]);
  });

  it.each([
    ["a progressive MP4, with the audio in WebM", `${h264} -map 0:v v.mp4 -map 1:a`, "v.mp4", "a.webm"],
    ["a fragmented MP4, with the audio in WebM", `${h264} -map 0:v ${fragmented} v.mp4 -map 1:a`, "v.mp4", "a.webm"],
    ["WebM, with the audio in a progressive MP4", "-i vp9.webm -c copy -map 0:v v.webm -map 1:a", "v.webm", "a.mp4"],
  ])("that is %s", async (_, line, entry, apart) => {
    const second = apart === "a.webm" ? "vp9.webm" : "h264.mp4";
    const { resources } = await mediaOf(line.replace(" -c copy", ` -i ${second} -c copy`) + ` -c copy ${apart}`, entry);
    await using harness = await openMedia(openEngine, { resources, entry });
    const format = { ...harness.job.format, acodec: "none" };
    const sound = { ...format, ...formatAt(harness.site.url(apart)), vcodec: "none" };
    Object.assign(harness.job, { format, audio: sound });
    await expectParts(harness, bytesOf(resources));
  });

  it("with the text that is a track of a fragmented MP4, also where it began some groups of pictures earlier", async () => {
    const cue = (from: number, to: number) => `1\n00:00:${from},000 --> 00:00:${to},000\n${from}\n\n`;
    const texts = resource("text/plain", Buffer.from(cue(10, 12) + cue(21, 28) + cue(28, 29) + cue(40, 45)));
    const inputs = merge(
      (await mediaOf(`${sources["h264.mp4"]} h264.mp4`, "h264.mp4")).resources,
      new Map([["a.srt", texts]]),
    );
    const line = `-i h264.mp4 -i a.srt -map 0 -map 1 -c copy -c:s mov_text ${fragmented} index.mp4`;
    await using harness = await openMedia(openEngine, await makeMedia(line, "index.mp4", inputs));
    const ranges = [
      { startS: 26, endS: 29 },
      { startS: 41, endS: 42 },
    ];
    const before = harness.site.sent;
    const { others } = await harness.download({ ranges, ownSubtitles: "all" });
    expect(harness.site.sent - before).toBeLessThan(0.7 * harness.site.resources.get("index.mp4")!.body.length);
    const times = [
      ["00.000", "02.000", 21],
      ["02.000", "03.000", 28],
      ["03.000", "04.000", 40],
    ];
    const listed = times.map(([from, to, text]) => `00:00:${from} --> 00:00:${to}\n${text}\n`);
    const vtt = others.find(({ ext }) => ext === "vtt");
    expect(readFileSync(vtt!.path, "utf8")).toBe(`WEBVTT\n\n${listed.join("\n")}`);
  });

  it("or all of it, and does not count twice what it has of it", async () => {
    await using harness = await openMedia(openEngine, await kindOf("a fragmented MP4"));
    const { type, body: right } = harness.site.resources.get("index.mp4")!;
    const body = Buffer.from(right);
    harness.site.resources.set("index.mp4", { type, body });
    // The index says that the second half comes later.
    const [at, count] = [body.indexOf("sidx") + 36, body.readUInt16BE(body.indexOf("sidx") + 34)];
    for (let entry = count / 2; entry < count; entry++) {
      body.writeUInt32BE(body.readUInt32BE(at + 12 * entry + 4) * 2, at + 12 * entry + 4);
    }
    const before = harness.site.sent;
    const ranges = [{ startS: 10, endS: 40 }];
    const made = await harness.download({ ranges, maxBytes: Math.round(1.1 * body.length) });
    expect(made.duration).toBeCloseTo(30, 1);
    expect(harness.site.sent - before).toBeGreaterThan(1.3 * body.length);
  });

  describe("or all of it, and makes the same file,", () => {
    const ranges = [
      { startS: 15.2, endS: 16 },
      { startS: 45, endS: 47.6 },
    ];
    let media: Awaited<ReturnType<typeof makeMedia>>;
    let right: Download;
    beforeAll(async () => {
      media = await kindOf("WebM with its Cues at the end");
      await using harness = await openMedia(openEngine, media);
      right = await harness.download({ ranges });
      await expectRanges(await harness.download({ folder: await harness.newFolder() }), [{ made: right, ranges }]);
    });

    /** Downloads the ranges of a changed file, or from a server that is not as usual. */
    async function download(prepare: (harness: EngineHarness, body: Buffer) => unknown): Promise<number> {
      const body = Buffer.from(media.resources.get("index.webm")!.body);
      await using harness = await openMedia(openEngine, media);
      const type = "video/webm";
      const changed = prepare(harness, body);
      harness.site.resources.set("index.webm", { type, body: Buffer.isBuffer(changed) ? changed : body });
      const before = harness.site.sent;
      const made = await harness.download({ ranges, folder: await harness.newFolder() });
      expect([made.sha256, made.warnings]).toEqual([right.sha256, []]);
      return (harness.site.sent - before) / body.length;
    }

    /** Returns where an element of four bytes for its id is, and where its content begins; its size has eight bytes or one. */
    function find(body: Buffer, id: number, from = 0): { at: number; body: number } {
      const bytes = Buffer.alloc(4);
      bytes.writeUInt32BE(id);
      const at = body.indexOf(bytes, from);
      return { at, body: at + 4 + Math.clz32(body[at + 4]!) - 23 };
    }
    const cuesId = 0x1c53bb6b;

    /** Changes the positions of Clusters that the Cues state. */
    function movePositions(body: Buffer, move: (position: number, index: number, all: number[]) => number): void {
      const cues = find(body, cuesId, body.length - 65_536);
      const places: { at: number; length: number }[] = [];
      // Each CuePoint (0xbb) has a CueTrackPositions (0xb7) with a CueClusterPosition (0xf1).
      for (let at = cues.body; body[at] === 0xbb; at += 2 + (body[at + 1]! & 0x7f)) {
        const found = body.indexOf(0xf1, body.indexOf(0xf7, at) + 3);
        places.push({ at: found + 2, length: body[found + 1]! & 0x7f });
      }
      const all = places.map(({ at, length }) => body.readUIntBE(at, length));
      for (const [i, { at, length }] of places.entries()) body.writeUIntBE(move(all[i]!, i, all), at, length);
    }

    /** Makes the Cues an element without a meaning. */
    function hideCues(body: Buffer): void {
      const { at, body: content } = find(body, cuesId, body.length - 65_536);
      const length = content - at - 1;
      body[at] = 0xec;
      body.fill(0, at + 1, content);
      body.writeUInt32BE(body.length - content, content - 4);
      body[at + 1] = 0x100 >> length;
    }

    it("if the server ignores Range", async () => {
      const share = await download(({ site }, body) => {
        site.answer("index.webm", (response) => response.writeHead(200, { etag: '"1"' }).end(body));
      });
      expect(share).toBe(0);
    });

    it("if it leads to another place for each request", async () => {
      const share = await download(({ site }, body) => {
        for (const path of ["a.webm", "b.webm"]) site.resources.set(path, { type: "video/webm", body });
        let count = 0;
        site.answer("index.webm", (response) => {
          response.writeHead(302, { location: site.url(count++ % 2 === 0 ? "a.webm" : "b.webm") }).end();
        });
      });
      expect(share).toBeGreaterThan(1);
    });

    it("if it encodes what it sends", async () => {
      await download(({ site }, body) => {
        site.answer("index.webm", (response, serve, { headers }) => {
          if (headers.range === undefined) return serve();
          const encoded = { "content-encoding": "gzip", "content-range": `bytes 0-99/${body.length}`, etag: '"1"' };
          return response.writeHead(206, encoded).end(body.subarray(0, 100));
        });
      });
    });

    it("if the file changes meanwhile", async () => {
      await using harness = await openMedia(openEngine, await kindOf("Matroska with B-frames"));
      const { site } = harness;
      const [, old] = [...site.resources][0]!;
      const { body } = media.resources.get("index.webm")!;
      let count = 0;
      site.answer("index.mkv", (_response, serve) => {
        count += 1;
        site.resources.set("index.mkv", count < 3 ? old : { ...old, body });
        return serve();
      });
      const made = await harness.download({ ranges });
      expect([made.sha256, made.warnings]).toEqual([right.sha256, []]);
    });

    it("but all of it no more than once, from a server to which another one leads", async () => {
      const share = await download(({ site }, body) => {
        site.resources.set("a.webm", { type: "video/webm", body });
        site.answer("index.webm", (response) => response.writeHead(302, { location: site.url("a.webm") }).end());
      });
      expect(share).toBeLessThan(0.5);
    });

    it.each<[string, (body: Buffer) => Buffer | void]>([
      ["there are no Cues", (body) => hideCues(body)],
      ["they are far away, and nothing leads to them", (body) => void body.writeUInt32BE(0, find(body, cuesId).at)],
      ["they lead into Clusters", (body) => movePositions(body, (position, i) => position + (i > 0 ? 100 : 0))],
      ["they lead to no bytes", (body) => movePositions(body, (position, i) => position + (i > 20 ? 2 ** 23 : 0))],
      [
        "their times are those of Clusters far away",
        (body) => movePositions(body, (_at, i, all) => all[Math.max(0, i - 9)]!),
      ],
      ["they are in no order", (body) => movePositions(body, (at, i, all) => (i < 20 ? at : (all[i ^ 1] ?? at)))],
      [
        "they have too many bytes",
        (body) => {
          // The SeekHead leads to other Cues after all.
          const { body: segmentBody } = find(body, 0x18538067);
          const seek = body.indexOf(Buffer.from("53ab841c53bb6b53ac", "hex"));
          const length = body[seek + 9]! & 0x7f;
          body.writeUIntBE(body.length - segmentBody, seek + 10, length);
          const size = Buffer.alloc(12);
          size.writeUInt32BE(cuesId);
          size.writeUInt32BE(0x01000000, 4);
          size.writeUInt32BE(17 << 20, 8);
          body.writeBigUInt64BE(0x01ffffffffffffffn, segmentBody - 8);
          return Buffer.concat([body, size, Buffer.from([0xec, 0x01, 0, 0, 0]), Buffer.alloc((17 << 20) - 5)]);
        },
      ],
    ])("if %s", async (_why, change) => {
      const share = await download((_harness, body) => change(body));
      expect(share).toBeGreaterThan(1);
    });
  });
});
