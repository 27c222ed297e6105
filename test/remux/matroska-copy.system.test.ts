import { deflateSync } from "node:zlib";
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { noAdditions } from "../../src/remux/additions.ts";
import { type ChosenTracks, selectTracks } from "../../src/remux/matroska/blocks.ts";
import { copyMatroska, type CopyTarget, isCopiable } from "../../src/remux/matroska/copy.ts";
import { findElement, ids, readBytes } from "../../src/remux/matroska/elements.ts";
import { compression, writeChanged } from "./matroska-changes.ts";
import { audioInput, createMediaFolder, hasFfmpeg, probeStreams, videoInput } from "./ts-media.ts";
import { readMediaSync } from "../media/read-media.ts";

const media = createMediaFolder();
const opened: number[] = [];
afterAll(() => opened.forEach((fd) => closeSync(fd)));

/** Opens tracks of a file in the folder. */
function open(name: string, numbers: readonly number[]): ChosenTracks {
  const fd = openSync(media.path(name), "r");
  opened.push(fd);
  return selectTracks(fd, numbers)!;
}

/** Copies tracks into `copy.webm`, and returns its path. */
const copy = (...files: readonly ChosenTracks[]): string => copyTo({}, ...files);

function copyTo(how: Partial<CopyTarget>, ...files: readonly ChosenTracks[]): string {
  const path = media.path("copy.webm");
  const fd = openSync(path, "w");
  try {
    for (const _ of copyMatroska(files, { fd, docType: "webm", additions: noAdditions, ...how }));
  } finally {
    closeSync(fd);
  }
  return path;
}

/** Returns the UIDs of the tracks, as bytes. */
function uidsOf({ fd, source, tracks }: ChosenTracks): string[] {
  return tracks.map(({ entry }) => readBytes(fd, findElement(source, entry, ids.trackUid)!).join(" "));
}

/** Returns the samples that a player hears. */
function heard(path: string): string {
  return readMediaSync("ffmpeg", "-v", "error", "-i", path, "-map", "0:a", "-f", "md5", "-");
}

/** Returns the times of all packets of a stream, in milliseconds. */
function times(path: string, stream: "v" | "a"): number[] {
  const entries = ["-select_streams", stream, "-show_entries", "packet=pts", "-of", "csv=p=0"];
  return readMediaSync("ffprobe", "-v", "error", ...entries, path)
    .trim()
    .split(/\s+/)
    .map(Number);
}

describe.skipIf(!hasFfmpeg)("a copy of Matroska tracks", () => {
  const opus = "-c:a libopus -b:a 32k".split(" ");
  const vp9 = "-c:v libvpx-vp9 -deadline realtime -cpu-used 8".split(" ");
  beforeAll(() => {
    const tags = ["-metadata:s:a", "language=ger", "-metadata:s:a", "title=Ton", "-color_range", "pc"];
    const colours = "-colorspace bt2020nc -color_primaries bt2020 -color_trc smpte2084".split(" ");
    const input = [...videoInput(), ...audioInput(2.005, 48_000)];
    media.make("both.webm", ...input, ...vp9, "-g", "10", ...opus, ...tags, ...colours);
  });

  it("is heard as its source is, whose last frame is padded and whose codec has a delay", () => {
    expect(heard(copy(open("both.webm", [2])))).toBe(heard(media.path("both.webm")));
  });

  it("has all that its source says of the tracks, in the same order of times", () => {
    const path = copy(open("both.webm", [1, 2]));
    const source = media.path("both.webm");
    const fields = "codec_name,color_range,color_space,color_transfer,color_primaries:stream_tags=language,title";
    expect(probeStreams(path, fields)).toEqual(probeStreams(source, fields));
    expect(probeStreams(path, fields)).toEqual(expect.arrayContaining(["smpte2084", "ger", "Ton"]));
    for (const stream of ["v", "a"] as const) expect(times(path, stream)).toEqual(times(source, stream));
    expect(heard(path)).toBe(heard(source));
  });

  it("has the UIDs of its source, by which tags name tracks; of several files, each track has its own", () => {
    const source = () => open("both.webm", [1, 2]);
    copy(source());
    expect(uidsOf(source())).toHaveLength(2);
    expect(uidsOf(open("copy.webm", [1, 2]))).toEqual(uidsOf(source()));
    copy(source(), source());
    expect(new Set(uidsOf(open("copy.webm", [1, 2, 3, 4]))).size).toBe(4);
  });

  it("lasts as long as its source says, whose last frame is shorter, and to its last frame if that is later", () => {
    const durationOf = (path: string) =>
      Number(readMediaSync("ffprobe", "-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", path));
    const bytes = media.make("short.mka", ...audioInput(2.005, 48_000), "-c:a", "flac");
    const stated = durationOf(media.path("short.mka"));
    expect(durationOf(copy(open("short.mka", [1])))).toBeCloseTo(stated, 3);
    bytes.writeDoubleBE(500, bytes.indexOf("448988", 0, "hex") + 3);
    writeFileSync(media.path("short.mka"), bytes);
    expect(Math.abs(durationOf(copy(open("short.mka", [1]))) - stated)).toBeLessThan(0.1);
  });

  it("joins tracks of two files, and keeps their distance", () => {
    media.make("video.webm", ...videoInput(1), ...vp9, "-output_ts_offset", "100");
    media.make("audio.webm", ...audioInput(1), ...opus, "-output_ts_offset", "100.5");
    const path = copy(open("video.webm", [1]), open("audio.webm", [1]));
    expect(times(path, "v")[0]).toBe(0);
    const start = (file: string, stream: "v" | "a") => times(file, stream)[0]!;
    const distance = start(media.path("audio.webm"), "a") - start(media.path("video.webm"), "v");
    expect(start(path, "a") - start(path, "v")).toBe(distance);
  });

  it("can be sought: it lists its clusters", () => {
    const path = copy(open("both.webm", [1, 2]));
    const seek = ["-ss", "1.5", "-i", path, "-map", "0:v", "-c", "copy", "-copyts", "-f", "framecrc", "-"];
    expect(readMediaSync("ffmpeg", "-v", "error", ...seek)).toMatch(/^0,\s+1207,/m);
  });

  it("keeps the frames of a lace together, and their times those of the source", () => {
    const vorbis = "-c:a libvorbis -ac 2".split(" ");
    media.make("plain.mka", ...audioInput(3), ...vorbis);
    writeChanged(media.path("plain.mka"), media.path("laced.mka"), { numbers: [1], laced: 4 });
    const path = copy(open("laced.mka", [1]));
    expect(heard(path)).toBe(heard(media.path("plain.mka")));
    expect(times(path, "a")).toEqual(times(media.path("laced.mka"), "a"));
  });

  it("is refused of a file that is cut or damaged anywhere, or ends with what is left", () => {
    const whole = readFileSync(media.path("both.webm"));
    for (let i = 1; i < 60; i++) {
      const at = Math.floor((whole.length * i) / 60);
      const damaged = i % 2 === 0 ? whole.subarray(0, at) : Buffer.from(whole).fill(i * 37, at, at + 20);
      writeFileSync(media.path("damaged.webm"), damaged);
      try {
        copy(open("damaged.webm", [1, 2]));
      } catch (error) {
        expect(error).toMatchObject({ code: "upstream_invalid" });
      }
    }
  });

  const others = { numbers: [1], entry: compression(0), change: deflateSync };
  type Packing = Omit<Parameters<typeof writeChanged>[2], "numbers">;
  /** Copies a file without the compression of its frames. */
  const unpack = (path: string, changes: Parameters<typeof writeChanged>[2]) => {
    writeChanged(path, media.path("packed.mkv"), changes);
    return copyTo({ isPlain: true }, open("packed.mkv", changes.numbers));
  };

  it.each([
    ["zlib", { entry: compression(0), change: deflateSync }],
    [
      "a start that is left out",
      { entry: compression(3, Uint8Array.of(0xff)), change: (frame: Uint8Array) => frame.subarray(1) },
    ],
    ["zlib, in laces", { entry: compression(0), change: deflateSync, laced: 4 }],
  ])("has the frames that were compressed, at the times that they had: %s", (_, { laced = 1, ...changes }: Packing) => {
    media.make("late.mka", ...audioInput(2, 48_000), "-c:a", "flac", "-output_ts_offset", "3");
    const [late, plain] = [media.path("late.mka"), media.path("plain.mka")];
    writeChanged(late, plain, { numbers: [1], laced });
    const path = unpack(late, { numbers: [1], laced, ...changes });
    expect([heard(path), times(path, "a")]).toEqual([heard(plain), times(plain, "a")]);
    expect(open("copy.webm", [1]).tracks[0]?.isEncoded).toBe(false);
  });

  const longFrame = deflateSync(Buffer.alloc(20 << 20));
  const firstLong = (count: number) => {
    let left = count;
    return (frame: Uint8Array) => ((left -= 1) >= 0 ? longFrame : deflateSync(frame));
  };

  it.each([
    ["compressed in another way", { ...others, entry: compression(1) }],
    ["damaged", { ...others, change: (frame: Uint8Array) => deflateSync(frame).subarray(0, -9) }],
    ["longer than the frames of any media", { ...others, change: () => longFrame }],
    ["together longer than those of a block may be", { ...others, laced: 2, change: firstLong(2) }],
    ["longer than those of any media in all tracks together", { ...others, numbers: [1, 2], change: firstLong(4) }],
  ])("is refused of compressed frames that are %s", (_, changes) => {
    expect(() => unpack(media.path("both.webm"), changes)).toThrow(
      expect.objectContaining({ code: "upstream_invalid" }),
    );
  });

  it("is not made of compressed tracks", () => {
    const plain = open("both.webm", [2]);
    const tracks = plain.tracks.map((track) => ({ ...track, isEncoded: true }));
    expect(isCopiable([plain])).toBe(true);
    expect(isCopiable([{ ...plain, tracks }])).toBe(false);
  });
});
