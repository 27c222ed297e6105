import { readFileSync, rmSync, writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { afterAll, describe, expect, it, vi } from "vitest";
import type { MediaRange } from "../../src/remux/samples.ts";
import { firstAudio } from "../../src/remux/audio-choice.ts";
import { nothingToAdd, packetHashes } from "../remux/additions.ts";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { mergeFiles } from "../../src/engines/native/output/merge.ts";
import { openEntry } from "../contracts/engine/harness.ts";
import { layNumbered, mpd, numberTemplate, rangeList, timelineTemplate, type Representation } from "../media/dash.ts";
import { decode, hasFfmpeg, probe } from "../media/probe.ts";
import { makeFile, readMediaSync } from "../media/read-media.ts";
import { readMedium, readRendition, readWebmRendition } from "../media/rendition.ts";
import { dash, merge, resource, type Resources } from "../media/resources.ts";
import { writeChanged } from "../remux/matroska-changes.ts";
import { audioInput, inspectFile, ffmpeg, openFolder, videoInput } from "../remux/mp4-media.ts";

/** Returns which edits of the first track of an MP4 have no media. */
function emptyEdits(bytes: Buffer): number[] {
  const list = bytes.indexOf("elst") + 8;
  const edits = Array.from({ length: bytes.readUInt32BE(list) }, (_, i) => i);
  return edits.filter((i) => bytes.readBigInt64BE(list + 12 + 20 * i) === -1n);
}

const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
const folder = openFolder();
afterAll(() => engine.close());
const open = () => engine;

const numbered: Resources = merge(
  layNumbered("v", readRendition("video.m4s"), "m4s"),
  layNumbered("low", readRendition("video-low.m4s"), "m4s"),
  layNumbered("a", readRendition("audio-en.m4s"), "m4s"),
  layNumbered("w", readWebmRendition("video.webm"), "webm"),
);
const perSecond = numberTemplate("m4s", 1, 1);
const repeated = '><SegmentTimeline><S t="0" d="100" r="-1"/></SegmentTimeline></SegmentTemplate>';
const video: Representation = {
  id: "v",
  mimeType: "video/mp4",
  codecs: "avc1.64000c",
  addressing: perSecond,
};
const low: Representation = { ...video, id: "low", codecs: "avc1.42c00b" };
const vp9: Representation = {
  ...video,
  id: "w",
  mimeType: "video/webm",
  codecs: "vp09.00.10.08",
  addressing: numberTemplate("webm", 1, 1),
};
const sound: Representation = {
  id: "a",
  mimeType: "audio/mp4",
  codecs: "mp4a.40.2",
  addressing: perSecond,
};

describe("separate files of one manifest that does not say whether the video has audio", () => {
  const names = ["single-video.mp4", "single-audio.mp4", "index-first.mp4"];
  const files: Resources = new Map(names.map((name) => [name, resource("video/mp4", readMedium(name))]));
  const downloadBoth = async (name: string) => {
    await using harness = await openEntry(() => engine, files, name);
    const { site, job } = harness;
    const format = { ...job.format, manifest_url: site.url("main.mpd"), vcodec: null, acodec: null };
    const audio = { ...format, url: site.url("single-audio.mp4"), vcodec: "none" };
    const { path, warnings } = await harness.download({ format, audio });
    const sources = await Promise.all(
      names.map(async (each) => packetHashes(await harness.keep(each, readMedium(each)))),
    );
    return { packets: packetHashes(path), warnings, sources };
  };

  it.skipIf(!hasFfmpeg)("become one file if it has none", async () => {
    const { packets, warnings, sources } = await downloadBoth("single-video.mp4");
    expect(packets).toEqual([...sources[1]!, ...sources[0]!]);
    expect(warnings).toEqual([]);
  });

  it.skipIf(!hasFfmpeg)("are the video alone if it has some", async () => {
    const { packets, sources } = await downloadBoth("index-first.mp4");
    expect(packets).toEqual(sources[2]);
  });
});

const withMpd = (resources: Resources, periods: Representation[][], periodS: number): Resources =>
  merge(resources, new Map([["main.mpd", dash(mpd(periods, periodS))]]));

const audioOf = (url: string) => ({
  format_id: "dash-a",
  url,
  manifest_url: url,
  vcodec: "none",
  acodec: "mp4a.40.2",
});

describe("video of WebM with separate audio", () => {
  const download = async (name: string) => {
    const [film, tones] = [readWebmRendition("video.webm"), readWebmRendition(name)];
    const webm = merge(layNumbered("w", film, "webm"), layNumbered("o", tones, "webm"));
    const addressing = numberTemplate("webm", 1, Math.ceil(4 / tones.pieces.length));
    const opus: Representation = { id: "o", mimeType: "audio/webm", codecs: "opus", addressing };
    await using harness = await openEntry(open, withMpd(webm, [[vp9, opus]], 4), "main.mpd");
    const audio = {
      ...harness.job.format,
      ...audioOf(harness.site.url("main.mpd")),
      format_id: "dash-o",
      acodec: "opus",
    };
    const { warnings } = await harness.download({ audio });
    return warnings.filter(({ code }) => code === "track_missing").map(({ message }) => message);
  };

  it("has a warning if that is video instead", async () => {
    expect(await download("audio.webm")).toEqual([]);
    expect(await download("video.webm")).toEqual(["the format has audio, the file has none"]);
  });
});

it("a set that is stated to be video, without codecs, has a warning if it has audio alone", async () => {
  const messagesOf = async (codecs: string, set: Representation) => {
    await using harness = await openEntry(open, withMpd(numbered, [[{ ...set, codecs }]], 6.5), "main.mpd");
    const { warnings } = await harness.download({});
    return warnings.filter(({ code }) => code === "track_missing").map(({ message }) => message);
  };
  const lie = { ...sound, mimeType: "video/mp4" };
  expect(await messagesOf("", lie)).toEqual(["the format has video, the file has none"]);
  expect(await messagesOf("", video)).toEqual([]);
  expect(await messagesOf("mp4a.40.2", lie)).toEqual([]);
});

describe("Periods", () => {
  it("that differ in size and codec parameters are one video with all the sound", async () => {
    const periods = [
      [video, sound],
      [low, sound],
      [video, sound],
    ];
    await using harness = await openEntry(open, withMpd(numbered, periods, 6.5), "main.mpd");
    const audio = { ...harness.job.format, ...audioOf(harness.site.url("main.mpd")) };
    const { path } = await harness.download({ audio });
    const result = await probe(path);
    const frames = async (name: string) =>
      (await probe(await harness.keep("one", readMedium(name)))).streams[0]!.frames;
    expect(result.streams[0]?.frames).toBe(2 * (await frames("video.m4s")) + (await frames("video-low.m4s")));
    expect(result.durationS).toBeCloseTo(13 + 6, 0);
    if (hasFfmpeg) expect((await decode(path)).faults).toBe("");
  });

  it("that have the audio in another language have a warning", async () => {
    const warningsOf = async (languages: string[], ...ranges: MediaRange[]) => {
      const periods = languages.map((language) => [{ ...sound, language }]);
      // A cut counts from the start of the first Period.
      const text = mpd(periods, 6.5).replaceAll(/start="PT([\d.]+)S"/g, (_, s) => `start="PT${3_600 + Number(s)}S"`);
      await using harness = await openEntry(open, merge(numbered, new Map([["main.mpd", dash(text)]])), "main.mpd");
      const format = { ...harness.job.format, ...audioOf(harness.site.url("main.mpd")) };
      const { warnings } = await harness.download({ format, ranges });
      return warnings;
    };
    expect(await warningsOf(["en", "en-GB"])).toEqual([]);
    const french = [{ code: "audio_missing", message: 'Period 2 has this track only as "fr"' }];
    expect(await warningsOf(["en", "fr"])).toEqual(french);
    expect(await warningsOf(["en", "fr"], { startS: 0.5, endS: 1.5 })).toEqual([]);
    expect(await warningsOf(["en", "fr"], { startS: 7, endS: 8 })).toEqual(french);
  });

  it("with one codec in one Period and another in the next are refused", async () => {
    const periods = [[video], [{ ...video, codecs: "hvc1.1.6.L93.B0" }]];
    await using harness = await openEntry(open, withMpd(numbered, periods, 6), "main.mpd");
    await expect(harness.download()).rejects.toMatchObject({ code: "format_unavailable" });
  });

  it("of WebM are refused, not cut after the first", async () => {
    const webm = layNumbered("v", readWebmRendition("video.webm"), "webm");
    const addressing = numberTemplate("webm", 1, 1);
    const film = { id: "v", mimeType: "video/webm", codecs: "vp9", addressing };
    await using harness = await openEntry(open, withMpd(webm, [[film], [film]], 2), "main.mpd");
    await expect(harness.download()).rejects.toMatchObject({
      code: "format_unavailable",
      message: expect.stringMatching(/several Periods/),
    });
  });

  it.each([
    ["up to 0.1 s of sound", 0.08, 0],
    ["no more of it", 0.2, 10],
  ])("present %s before their start if the one before has none there", async (_what, earlyS, lostFrames) => {
    const { pieces } = readRendition("audio-en.m4s");
    const ticksOf = (seconds: number) => Math.round(seconds * 48_000);
    const startsS = pieces.map((_, i) => pieces.slice(0, i).reduce((sum, { durationS }) => sum + durationS, 0));
    const periodS = startsS[3]! + earlyS;
    const listing = (from: number, to: number): Representation => {
      const entries = pieces.slice(from, to).map(({ durationS }, i) => {
        const time = i === 0 ? ` t="${ticksOf(startsS[from]!)}"` : "";
        return `<S${time} d="${ticksOf(durationS)}"/>`;
      });
      const offset = from === 0 ? 0 : ticksOf(periodS);
      const names = `initialization="a/init.m4s" media="a/$Number$.m4s" startNumber="${from + 1}"`;
      const head = `<SegmentTemplate ${names} timescale="48000" presentationTimeOffset="${offset}">`;
      const addressing = `${head}<SegmentTimeline>${entries.join("")}</SegmentTimeline></SegmentTemplate>`;
      return { ...sound, addressing };
    };
    const periods = [[listing(0, 3)], [listing(3, pieces.length)]];
    await using harness = await openEntry(open, withMpd(numbered, periods, periodS), "main.mpd");
    const { path } = await harness.download({ format: { ...harness.job.format, format_id: "dash-a" } });
    const all = await probe(await harness.keep("all", readMedium("audio-en.m4s")));
    expect((await probe(path)).streams).toMatchObject([{ kind: "audio", frames: all.streams[0]!.frames - lostFrames }]);
  });

  it.skipIf(!hasFfmpeg)("present no picture of what their media have after their end", async () => {
    const whole: Representation = {
      ...video,
      addressing: rangeList("video.m4s", readRendition("video.m4s")),
    };
    const film: Resources = new Map([["video.m4s", resource("video/mp4", readMedium("video.m4s"))]]);
    await using harness = await openEntry(open, withMpd(film, [[whole], [whole]], 4), "main.mpd");
    const { path } = await harness.download();
    const source = await harness.keep("source", readMedium("video.m4s"));
    const { pictures } = await decode(source);
    const result = await decode(path);
    // The source begins at 0.08 s: the first Period shows 3.92 s of it.
    const shown = 98;
    expect(result.pictures).toEqual([...pictures.slice(0, shown), ...pictures]);
    expect(result.faults).toBe("");
    expect(result.durationS).toBeCloseTo(10, 1);
  });

  it.skipIf(!hasFfmpeg)(
    "show their last picture until the first one of the next Period, whatever pictures both need",
    async () => {
      const name = folder.path("b-frames.mp4");
      ffmpeg(`${videoInput(6)} -c:v libx264 -bf 2 -b_strategy 0 -g 50 -movflags frag_keyframe+empty_moov ${name}`);
      const film: Resources = new Map([["film.mp4", resource("video/mp4", readFileSync(name))]]);
      const whole: Representation = { ...video, addressing: "<BaseURL>film.mp4</BaseURL>" };
      await using harness = await openEntry(open, withMpd(film, [[whole], [whole]], 4), "main.mpd");
      const { path } = await harness.download();
      const { pictures } = await decode(name);
      const result = await decode(path);
      // It begins at 0.08 s, and the picture that is decoded before the last two of the first Period comes after its end.
      expect(result.pictures).toEqual([...pictures.slice(0, 98), ...pictures]);
      expect(result.durationS).toBeCloseTo(10, 1);
      // Readers take one between others for the start of the track.
      expect(emptyEdits(readFileSync(path))).toEqual([]);
    },
  );

  it("whose timelines list what is before and after them last as long as they say", async () => {
    const whole = timelineTemplate("m4s", readRendition("audio-en.m4s"), 48_000, 1024);
    const later = whole.replace('startNumber="1"', 'startNumber="1" presentationTimeOffset="144000"');
    const periods = [[{ ...sound, addressing: whole }], [{ ...sound, addressing: later }]];
    await using harness = await openEntry(open, withMpd(numbered, periods, 3), "main.mpd");
    const { path, warnings } = await harness.download();
    expect(warnings).toEqual([]);
    expect((await probe(path)).durationS).toBeCloseTo(6, 1);
  });

  it.skipIf(!hasFfmpeg)("may begin within a segment", async () => {
    const quarters = numberTemplate("m4s", 4, 4);
    const later = quarters.replace("/>", ' presentationTimeOffset="13" startNumber="4"/>');
    const parts = [quarters, later].map((addressing) => [{ ...video, addressing }]);
    await using harness = await openEntry(open, withMpd(numbered, parts, 3.25), "main.mpd");
    const { path } = await harness.download();
    const source = await harness.keep("source", readMedium("video.m4s"));
    const { pictures } = await decode(source);
    const result = await decode(path);
    expect(result.pictures).toEqual(pictures);
    expect(result.durationS).toBeCloseTo(6, 1);
  });
});

describe("the last segment that is computed from the duration of a Period", () => {
  const substitutes: [string, (response: ServerResponse) => unknown][] = [
    ["refused (403)", (response) => response.writeHead(403).end()],
    ["replaced by a page", (response) => response.end("<!DOCTYPE html><p>Not found")],
  ];

  it.each(substitutes)("is left out if it is %s and the media reach the end", async (_, answer) => {
    await using harness = await openEntry(open, withMpd(numbered, [[video]], 6.05), "main.mpd");
    harness.site.answer("v/7.m4s", answer);
    const { path, warnings } = await harness.download();
    expect((await probe(path)).streams[0]?.frames).toBe(150);
    expect(warnings).toEqual([]);
  });

  it.each([
    ["empty", Buffer.alloc(0)],
    ["damaged", Buffer.alloc(1000)],
  ])("is missed if it is %s: it may have had frames", async (_, body) => {
    await using harness = await openEntry(open, withMpd(numbered, [[video]], 6.05), "main.mpd");
    harness.site.answer("v/7.m4s", (response) => response.end(body));
    const { warnings } = await harness.download();
    expect(warnings.map(({ code }) => code)).toEqual(["frames_missing"]);
  });

  it.each(substitutes)("fails the download if a whole segment is %s", async (_, answer) => {
    await using harness = await openEntry(open, withMpd(numbered, [[video]], 6), "main.mpd");
    harness.site.answer("v/6.m4s", answer);
    await expect(harness.download()).rejects.toMatchObject({ code: expect.stringMatching(/^upstream_/) });
  });

  const kinds: [string, Representation][] = [
    ["has a constant length", video],
    [
      "is repeated by a timeline",
      { ...video, addressing: numberTemplate("m4s", 100, 100).replace(/ duration="100"\/>/, repeated) },
    ],
  ];

  it.each(kinds)("is left out if it %s, does not exist, and the media reach the end", async (_, representation) => {
    const resources = withMpd(numbered, [[representation]], 6.05);
    await using harness = await openEntry(open, resources, "main.mpd");
    const { path, warnings } = await harness.download();
    expect((await probe(path)).streams[0]?.frames).toBe(150);
    expect(warnings).toEqual([]);
  });

  for (const [container, representation] of [
    ["MP4", video],
    ["WebM", vp9],
  ] as const) {
    it(`is left out with a warning if the media end before it: ${container}`, async () => {
      const resources = withMpd(numbered, [[representation]], 6.7);
      await using harness = await openEntry(open, resources, "main.mpd");
      const { path, warnings } = await harness.download();
      expect((await probe(path)).durationS).toBeCloseTo(6, 1);
      const message = "the media last 6.0 s, their manifest says 6.7 s, and the last segment does not exist";
      expect(warnings).toEqual([{ code: "duration_differs", message }]);
    });
  }

  it.each(kinds)("fails the download if it %s and is missing as a whole", async (_, representation) => {
    const resources = withMpd(numbered, [[representation]], 6);
    resources.delete("v/6.m4s");
    await using harness = await openEntry(open, resources, "main.mpd");
    await expect(harness.download()).rejects.toMatchObject({ code: "upstream_status" });
  });

  it("is followed by one more if the sound goes on there", async () => {
    const pieces = readRendition("audio-en.m4s").pieces;
    const shorter = numberTemplate("m4s", 10, 15);
    const resources = withMpd(numbered, [[{ ...sound, id: "a", addressing: shorter }]], 6);
    await using harness = await openEntry(open, resources, "main.mpd");
    const audio = { ...harness.job.format, ...audioOf(harness.site.url("main.mpd")) };
    const { path } = await harness.download({ format: audio, audioOnly: true });
    const { durationS } = await probe(path);
    const fiveS = pieces.slice(0, 5).reduce((sum, piece) => sum + piece.durationS, 0);
    expect(durationS).toBeCloseTo(fiveS, 1);
  });

  it.each([
    ["with what is there if that ends by a tenth of a second later than the Period, which may be rounded", 5.93, 282],
    ["cut at the end of the Period if there is more", 5.8, 272],
  ])("is followed by one more, %s", async (_, periodS, frames) => {
    const addressing = numberTemplate("m4s", 100, 125);
    const resources = withMpd(numbered, [[{ ...sound, id: "a", addressing }]], periodS);
    await using harness = await openEntry(open, resources, "main.mpd");
    const audio = { ...harness.job.format, ...audioOf(harness.site.url("main.mpd")) };
    const { path } = await harness.download({ format: audio, audioOnly: true });
    expect((await probe(path)).streams[0]?.frames).toBe(frames);
  });
});

describe("Vorbis in Ogg", () => {
  it("has its first packet, which lasts no time, beside video in WebM", async () => {
    const files = ["video.webm", "vorbis.ogg"].map((name): [string, ReturnType<typeof resource>] => [
      name,
      resource("application/octet-stream", readMedium(name)),
    ]);
    await using harness = await openEntry(open, new Map(files), "video.webm");
    const format = { ...harness.job.format, ext: "webm", acodec: "none" };
    const audio = { ...format, url: harness.site.url("vorbis.ogg"), ext: "ogg", vcodec: "none", acodec: "vorbis" };
    const { path } = await harness.download({ format, audio });
    const source = await harness.keep("source.ogg", readMedium("vorbis.ogg"));
    const [merged, single] = [await probe(path), await probe(source)];
    expect(merged.streams[1]).toMatchObject({ codec: "vorbis", frames: single.streams[0]?.frames });
  });
});

const options = {
  isMp4Wanted: false,
  audioOnly: false,
  audioChoice: firstAudio,
  additions: nothingToAdd,
  signal: new AbortController().signal,
};

const filesOf = (main: string, ...audio: string[]) => [
  { role: "main" as const, path: main, label: { language: null } },
  ...audio.map((path) => ({ role: "audio" as const, path, label: { language: null } })),
];

it("logs nothing if tracks cannot be merged", async () => {
  const warn = vi.spyOn(console, "warn");
  const [main, audio, target] = [folder.path("damaged.webm"), folder.path("whole.webm"), folder.path("none.webm")];
  const bytes = Buffer.from(readMedium("video.webm"));
  const cluster = bytes.lastIndexOf(Buffer.from("1f43b675", "hex"));
  // A block of it says that it has several frames.
  bytes[bytes.indexOf(0xa3, cluster) + 6] = 0x02;
  writeFileSync(main, bytes);
  writeFileSync(audio, readMedium("audio.webm"));
  await expect(mergeFiles({ files: filesOf(main, audio), target, ...options })).rejects.toThrow("cannot be put into");
  expect(warn).not.toHaveBeenCalled();
});

it.skipIf(!hasFfmpeg)("gives the frames of Vorbis in laces of Matroska the times that they have without", async () => {
  ffmpeg(`-f lavfi -i aevalsrc=random(0)*lt(mod(t\\,0.4)\\,0.1):d=3 -c:a libvorbis ${folder.path("plain.mka")}`);
  ffmpeg(`-f lavfi -i testsrc=d=3 -c:v libx264 -bf 0 ${folder.path("film.mp4")}`);
  writeChanged(folder.path("plain.mka"), folder.path("laced.mka"), { numbers: [1], laced: 8 });
  const timesOf = async (name: string) => {
    const target = folder.path("merged.mp4");
    const files = filesOf(folder.path("film.mp4"), folder.path(name));
    const { warnings } = await mergeFiles({ files, target, ...options, isMp4Wanted: true });
    expect(warnings).toEqual([]);
    const packets = "-v error -select_streams a -show_entries packet=pts_time -of csv=p=0".split(" ");
    return readMediaSync("ffprobe", ...packets, target)
      .trim()
      .split(/\s+/)
      .map(Number);
  };
  const [laced, plain] = [await timesOf("laced.mka"), await timesOf("plain.mka")];
  expect(laced).toHaveLength(plain.length);
  // Matroska has milliseconds.
  for (const [i, time] of laced.entries()) expect(Math.abs(time - plain[i]!)).toBeLessThan(0.0025);
});

it.skipIf(!hasFfmpeg)("warns of video of Ogg that cannot be merged, not of Ogg without video", async () => {
  const warningsOf = async (name: string, args: string) => {
    ffmpeg(`${args} -c:a libvorbis ${folder.path(name)}`);
    const target = folder.path(`merged-${name}.webm`);
    return (await mergeFiles({ files: filesOf(folder.path(name)), target, ...options })).warnings;
  };
  const [pictures, tone] = ["testsrc=d=1", "sine=d=1"].map((source) => `-f lavfi -i ${source}`);
  for (const [codec, encoder] of [
    ["Theora", "libtheora"],
    ["VP8", "libvpx"],
  ] as const) {
    const message = `the video of the source cannot be read: its codec is ${codec}`;
    const warnings = await warningsOf(`${encoder}.ogv`, `${pictures} ${tone} -c:v ${encoder}`);
    expect(warnings).toContainEqual({ code: "track_missing", message });
  }
  // Beside video, neither can be read.
  ffmpeg(`${pictures} ${tone} -c:v libtheora -c:a libspeex ${folder.path("speech.ogv")}`);
  const speech = { files: filesOf(folder.path("speech.ogv")), target: folder.path("speech.mp4"), ...options };
  const [noVideo, noAudio] = [
    "the video of the source cannot be read: its codec is Theora",
    "the audio of the source cannot be read: its codec is Speex",
  ];
  await expect(mergeFiles({ ...speech, audioOnly: true })).rejects.toThrow(noAudio);
  await expect(mergeFiles(speech)).rejects.toThrow(`${noVideo}; ${noAudio}`);
  expect((await warningsOf("song.ogg", tone!)).map(({ code }) => code)).not.toContain("track_missing");
});

it.skipIf(!hasFfmpeg)("warns of the transparency of WebM that becomes an MP4, and keeps it in WebM", async () => {
  const path = folder.path("alpha.webm");
  ffmpeg(`-f lavfi -i color=red@0.5:d=1,format=yuva420p -c:v libvpx-vp9 -auto-alt-ref 0 ${path}`);
  const warningsOf = async (isMp4Wanted: boolean) => {
    const target = folder.path("alpha.merged");
    return (await mergeFiles({ files: filesOf(path), target, ...options, isMp4Wanted })).warnings;
  };
  const message = "the transparency of the video is left out: an MP4 cannot have it";
  expect(await warningsOf(true)).toEqual([{ code: "tracks_left", message }]);
  expect(await warningsOf(false)).toEqual([]);
});

describe.skipIf(!hasFfmpeg)("WebM tracks that start at different times", () => {
  const late = (name: string, startS: number): string => {
    const source = folder.path(`source-${name}`);
    const path = folder.path(name);
    makeFile(["-i", join(import.meta.dirname, "../media/files", name), "-c", "copy"], source);
    ffmpeg(`-i ${source} -c copy -output_ts_offset ${startS} ${path}`);
    return path;
  };

  for (const [videoS, audioS] of [
    [0, 0.7],
    [1, 0],
    [3, 3.5],
  ] as const) {
    it(`keep their distance (${videoS} s and ${audioS} s)`, async () => {
      const [main, audio] = [late("video.webm", videoS), late("audio.webm", audioS)];
      const target = folder.path("merged.webm");
      rmSync(target, { force: true });
      await mergeFiles({ files: filesOf(main, audio), target, ...options });
      const start = async (path: string, codec: string) =>
        (await inspectFile(path)).streams.find((stream) => stream.codec === codec)!.startS;
      const before = (await start(audio, "opus")) - (await start(main, "vp9"));
      const after = (await start(target, "opus")) - (await start(target, "vp9"));
      expect(Math.abs(after - before)).toBeLessThan(0.003);
    });
  }
});

describe("an encrypted file", () => {
  const element = (id: string, ...parts: readonly Buffer[]): Buffer => {
    const body = Buffer.concat(parts);
    return Buffer.concat([Buffer.from(id, "hex"), Buffer.from([0x40, body.length]), body]);
  };
  const encryption = element("6d80", element("6240", element("5035", Buffer.alloc(3))));
  const clear = readMedium("index-first.mp4");
  const encrypted = Buffer.from(clear);
  encrypted.write("encv", clear.indexOf("avc1", clear.indexOf("stsd")), "latin1");
  const files: readonly (readonly [string, Buffer])[] = [
    ["MP4", encrypted],
    [
      "WebM",
      Buffer.concat([
        element("1a45dfa3", element("4282", Buffer.from("webm"))),
        element("18538067", element("1654ae6b", element("ae", element("83", Buffer.of(1)), encryption))),
      ]),
    ],
  ];
  for (const [container, body] of files) {
    it(`is refused: ${container}`, async () => {
      const file: Resources = new Map([["film", resource("application/octet-stream", body)]]);
      await using harness = await openEntry(open, file, "film");
      for (const audioOnly of [false, true]) {
        await expect(harness.download({ audioOnly })).rejects.toMatchObject({
          code: "drm_protected",
          retryable: false,
        });
      }
    });
  }

  it.each([
    ["text", 0x11, []],
    ["second audio", 2, [{ code: "tracks_left", message: "1 audio track of the file is encrypted" }]],
  ])("is kept if only a %s track of it is encrypted", async (_, type, warnings) => {
    const webm = readMedium("vp9-opus.webm");
    const [segmentSize, tracksSize] = [
      webm.indexOf("18538067", "hex") + 4,
      webm.lastIndexOf("1654ae6b", -1, "hex") + 4,
    ];
    const text = element("ae", element("d7", Buffer.of(9)), element("83", Buffer.of(type)), encryption);
    const end = tracksSize + 2 + (webm.readUInt16BE(tracksSize) & 0x3fff);
    const body = Buffer.concat([webm.subarray(0, end), text, webm.subarray(end)]);
    body.writeUIntBE(webm.readUIntBE(segmentSize + 2, 6) + text.length, segmentSize + 2, 6);
    body.writeUInt16BE(webm.readUInt16BE(tracksSize) + text.length, tracksSize);
    await using harness = await openEntry(open, new Map([["film", resource("video/webm", body)]]), "film");
    expect(await harness.download()).toMatchObject({ size: body.length, width: 160, warnings });
    const cut = await harness.download({ ranges: [{ startS: 0.5, endS: 1 }], folder: await harness.newFolder() });
    const left = { code: "tracks_left", message: "1 further audio track of the source is left out" };
    expect(cut.warnings).toEqual(warnings.map(() => left));
  });

  it.skipIf(!hasFfmpeg).each([
    ["first", "mp4a", "ac3"],
    ["second", "ac-3", "aac"],
  ])("is taken without the %s of two audio tracks if that is encrypted: MP4", async (_, locked, codec) => {
    const path = openFolder().path("two.mp4");
    const tracks = "-map 0:v -map 1:a -map 2:a -c:v libx264 -c:a:0 aac -c:a:1 ac3 -metadata:s:a language=deu";
    ffmpeg(`${videoInput(1)} ${audioInput(1)} ${audioInput(1)} ${tracks} ${path}`);
    const body = readFileSync(path);
    body.write("enca", body.indexOf(locked, body.indexOf("moov")), "latin1");
    await using harness = await openEntry(open, new Map([["film", resource("video/mp4", body)]]), "film");
    const ofFile = { code: "tracks_left", message: "1 audio track of the file is encrypted" };
    const ofSource = { ...ofFile, message: "1 further audio track of the source is left out" };
    expect(await harness.download()).toMatchObject({ size: body.length, warnings: [ofFile] });
    const asked = { ranges: [{ startS: 0, endS: 0.5 }], audioLanguages: ["de"] };
    for (const [change, warning] of [[asked, ofFile] as const, [{ audioOnly: true }, ofSource] as const]) {
      const made = await harness.download({ ...change, folder: await harness.newFolder() });
      expect(made.warnings).toEqual([warning]);
      expect((await probe(made.path)).streams.filter(({ kind }) => kind === "audio")).toMatchObject([{ codec }]);
    }
  });
});
