import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { countPackets, hasAllPackets, hasCopied, lostSamples } from "../../src/engines/native/output/count-packets.ts";
import type { WrittenTrack } from "../../src/engines/native/output/demux-session.ts";
import { openFileStream } from "../../src/engines/native/sources/source-stream.ts";
import { readBlocks } from "../../src/remux/matroska/blocks.ts";
import { noAdditions } from "../../src/remux/additions.ts";
import { extractAudio } from "../../src/remux/audio-files/extract.ts";
import { cut } from "../remux/mp4-cuts.ts";
import { readHeader } from "../../src/remux/matroska/tracks.ts";
import { numbersIn } from "../../src/remux/mp4/read/number-source.ts";
import { openFile } from "../../src/remux/open-file.ts";
import { assembleFile } from "./assemble-file.ts";
import { writeChanged } from "../remux/matroska-changes.ts";
import { audioInput, createMediaFolder, hasFfmpeg, run, videoInput, x264 } from "../remux/ts-media.ts";

const media = createMediaFolder();

/** Returns how many packets ffprobe finds in each track, in order. */
function probeCounts(path: string): number[] {
  const found = run(
    "ffprobe",
    "-v",
    "error",
    "-count_packets",
    "-show_entries",
    "stream=nb_read_packets",
    "-of",
    "csv=p=0",
    path,
  );
  return found.trim().split("\n").map(Number);
}

function packetsOf(path: string) {
  using file = openFile(path);
  return [...countPackets(file).values()].map(({ packets }) => packets);
}

/** Makes the time of a packet of audio earlier than that of the one before; it is within its Cluster. */
function setBack(path: string): void {
  const bytes = readFileSync(path);
  const source = numbersIn(bytes);
  const blocks = [...readBlocks(source, readHeader(source)!)].filter(({ track }) => track === 2);
  const { body } = blocks[blocks.length - 10]!;
  bytes.writeInt16BE(bytes.readInt16BE(body - 3) - 30, body - 3);
  writeFileSync(path, bytes);
}

/** Flags the first block of a Matroska file's first track as a key picture. */
function flagFirst(path: string): void {
  const bytes = readFileSync(path);
  const source = numbersIn(bytes);
  const first = readBlocks(source, readHeader(source)!).find(({ track }) => track === 1);
  bytes[first!.body - 1]! |= 0x80;
  writeFileSync(path, bytes);
}

describe.skipIf(!hasFfmpeg)("the packets of a file", () => {
  const kinds: readonly [string, readonly string[]][] = [
    ["mkv", [...videoInput(1), ...audioInput(1), ...x264, "-c:a", "aac"]],
    ["webm", [...videoInput(1), ...audioInput(1), "-c:v", "libvpx", "-c:a", "libvorbis"]],
    ["mp4", [...videoInput(1), ...audioInput(1), ...x264, "-c:a", "aac"]],
    ["fragmented.mp4", [...videoInput(1), ...audioInput(1), ...x264, "-movflags", "frag_keyframe+empty_moov"]],
    ["opus", audioInput(1, 48_000)],
    ["ogg", [...audioInput(1), "-c:a", "libvorbis"]],
    ["flac", audioInput(1)],
    ["mp3", audioInput(1)],
    ["aac", audioInput(1)],
    ["ac3", audioInput(1)],
  ];
  for (const [ext, options] of kinds) {
    it(`are as many as ffprobe finds: ${ext}`, () => {
      media.make(`counted.${ext}`, ...options);
      const path = media.path(`counted.${ext}`);
      expect(packetsOf(path)).toEqual(probeCounts(path));
    });
  }

  it("are not counted in a file that has none", () => {
    writeFileSync(media.path("none.bin"), Buffer.alloc(5000, "no media "));
    expect(packetsOf(media.path("none.bin"))).toEqual([]);
  });

  it("are bytes without the sizes of laces in Matroska with PCM", () => {
    media.make("pcm.mka", ...audioInput(1, 48_000), "-c:a", "pcm_s16le", "-ac", "1");
    writeChanged(media.path("pcm.mka"), media.path("laced.mka"), { numbers: [1], laced: 8 });
    using file = openFile(media.path("laced.mka"));
    expect(countPackets(file).get(1)?.bytes).toBe(96_000);
  });

  it("are bytes in MP4 and QuickTime with PCM, and the packets of QuickTime that has samples of one byte", () => {
    const counts = (codec: string) => {
      media.make(`${codec}.mov`, ...audioInput(1, 48_000), "-c:a", codec, "-ac", "1");
      using file = openFile(media.path(`${codec}.mov`));
      return [...countPackets(file).values()];
    };
    expect(counts("pcm_s16le")).toEqual([{ bytes: 96_000 }]);
    expect(counts("pcm_s24be")).toEqual([{ bytes: 144_000 }]);
    // Packets of 1024 bytes, of which four are a header with the first sample.
    const packets = Math.ceil(48_000 / (2 * (1024 - 4) + 1));
    expect(counts("adpcm_ima_wav")).toEqual([{ packets, bytes: 1024 * packets }]);
  });

  it("are bytes in a WAV file", () => {
    media.make("counted.wav", ...audioInput(1, 48_000), "-ac", "1");
    using file = openFile(media.path("counted.wav"));
    expect(countPackets(file).get(1)).toEqual({ bytes: 96_000 });
  });
});

describe.skipIf(!hasFfmpeg)("a copy", () => {
  for (const ext of ["mkv", "mp4", "ogg"]) {
    it(`lacks a packet that its source has: ${ext}`, () => {
      media.make(`whole.${ext}`, ...audioInput(1), "-c:a", "libopus");
      media.make(`short.${ext}`, "-i", media.path(`whole.${ext}`), "-c", "copy", "-frames:a", "40");
      const [whole, short] = [media.path(`whole.${ext}`), media.path(`short.${ext}`)];
      expect(hasAllPackets(short, whole)).toBe(false);
      expect(hasAllPackets(whole, whole)).toBe(true);
      const packets = packetsOf(whole)[0]!;
      expect(hasCopied(short, { packets, tables: 0 }, whole, false)).toBe(false);
      expect(hasCopied(whole, { packets: 40, tables: 0 }, whole, false)).toBe(false);
      expect(hasCopied(whole, { packets, tables: 0 }, whole, false)).toBe(true);
    });
  }

  it("lacks a packet that a cut MP4 presents", async () => {
    media.make("long.mp4", ...audioInput(3), "-c:a", "flac", "-strict", "-2");
    const [source, part, target] = ["long.mp4", "part.mp4", "part.flac"].map((name) => media.path(name)) as [
      string,
      string,
      string,
    ];
    const ranges = [0.5, 2].map((startS) => ({ startS, endS: startS + 0.5 }));
    await cut(source, part, ranges);
    const options = { durationS: 1, isCut: true, signal: new AbortController().signal };
    const copied = (await extractAudio(part, target, noAdditions, options))!;
    expect(copied.packets).toBeGreaterThanOrEqual((1 * 44_100) / 4608);
    expect(hasCopied(target, copied, part, true)).toBe(true);
    expect(hasCopied(target, { ...copied, packets: copied.packets - 1 }, part, true)).toBe(false);
  });

  it("has a warning if a sample of its source was not read", () => {
    media.make("read.mp4", ...videoInput(1), ...audioInput(1), ...x264);
    const stream = openFileStream("main", media.path("read.mp4"));
    const [video, audio] = packetsOf(media.path("read.mp4")) as [number, number];
    const tracks = (...samples: number[]) =>
      samples.map(
        (count, i) => ({ kind: i === 0 ? "video" : "audio", samples: count, source: "main" }) as WrittenTrack,
      );
    expect(lostSamples(stream, tracks(video, audio - 1))).toEqual([
      { code: "frames_missing", message: `the audio has ${audio - 1} packets, that of its source ${audio}` },
    ]);
    expect(lostSamples(stream, tracks(video, audio))).toEqual([]);
    expect(lostSamples(stream, tracks(video))).toEqual([]);
  });
});

describe.skipIf(!hasFfmpeg)("what is made of a Matroska file", () => {
  const make = (name: string) => assembleFile({ path: media.path(name), folder: media.path(".") });

  it("has a warning if a packet is lost, as its time is before that of the one before", async () => {
    media.make("back.mkv", ...videoInput(1), ...audioInput(1), ...x264, "-c:a", "aac", "-write_crc32", "0");
    setBack(media.path("back.mkv"));
    const [, audio] = packetsOf(media.path("back.mkv")) as [number, number];
    expect((await make("back.mkv")).warnings).toEqual([
      { code: "frames_missing", message: `the audio has ${audio - 1} packets, that of its source ${audio}` },
    ]);
  });

  it("has none if its packets were in laces", async () => {
    media.make("plain.mka", ...audioInput(1), "-c:a", "aac");
    writeChanged(media.path("plain.mka"), media.path("laced.mka"), { numbers: [1], laced: 4 });
    expect(packetsOf(media.path("laced.mka"))).toEqual(packetsOf(media.path("plain.mka")));
    const { path, warnings } = await make("laced.mka");
    expect(packetsOf(path)).toEqual(packetsOf(media.path("plain.mka")));
    expect(warnings).toEqual([]);
  });

  it("has none if the samples of separate PCM are written in packets", async () => {
    media.make("alone.mkv", ...videoInput(1), ...x264);
    media.make("pcm.mov", ...audioInput(1), "-c:a", "pcm_s16le");
    const folder = media.path(".");
    const { warnings } = await assembleFile({ path: media.path("alone.mkv"), audio: media.path("pcm.mov"), folder });
    expect(warnings).toEqual([]);
  });

  it("has none if its video begins with the first key frame", async () => {
    media.make("keys.mkv", ...videoInput(2), ...x264, "-g", "10");
    media.make("middle.mkv", "-i", media.path("keys.mkv"), "-c", "copy", "-bsf:v", "noise=drop=lt(n\\,3)");
    const [counted] = packetsOf(media.path("middle.mkv"));
    expect(probeCounts(media.path("middle.mkv"))).toEqual([counted! + 7]);
    expect((await make("middle.mkv")).warnings).toEqual([]);
  });

  const codecs: readonly [string, readonly string[]][] = [
    ["H.264", x264],
    ["HEVC", ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=error:bframes=2:open-gop=0"]],
  ];
  for (const [name, encoder] of codecs) {
    it(`has none if its first picture is flagged as a key picture and is none: ${name}`, async () => {
      media.make("group.mkv", ...videoInput(3), ...audioInput(3), ...encoder, "-g", "25", "-c:a", "aac");
      media.make(
        "tail.mkv",
        "-i",
        media.path("group.mkv"),
        "-c",
        "copy",
        "-bsf:v",
        "noise=drop=lt(n\\,7)",
        "-write_crc32",
        "0",
      );
      flagFirst(media.path("tail.mkv"));
      const [counted] = packetsOf(media.path("tail.mkv"));
      expect(probeCounts(media.path("tail.mkv"))[0]).toBe(counted! + 18);
      expect((await make("tail.mkv")).warnings).toEqual([]);
    });
  }
});
