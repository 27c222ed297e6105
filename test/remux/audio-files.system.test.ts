import { writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Additions } from "../../src/remux/additions.ts";
import { extractAudio } from "../../src/remux/audio-files/extract.ts";
import { framesIn } from "../../src/remux/matroska/frames.ts";
import { albumTags, additions, mutagen, probeAll } from "./additions.ts";
import { cut } from "./mp4-cuts.ts";
import { readOutputs } from "../media/read-media.ts";
import { audioInput, createMediaFolder, hasFfmpeg } from "./ts-media.ts";

const media = createMediaFolder();

/** Returns the path of the file with the audio of another one; undefined if there is none. */
async function extract(
  name: string,
  ext: string,
  given: Additions = additions,
  isCut = false,
): Promise<string | undefined> {
  const path = media.path(`made.${ext}`);
  const options = { durationS: 4, isCut, signal: new AbortController().signal };
  return (await extractAudio(media.path(name), path, given, options)) ? path : undefined;
}

interface Listened {
  /** The hashes of all packets in their order. */
  packets: string[];
  /** What is played, as samples of 16 bits. */
  heard: Buffer;
  /** Bytes of a second of it. */
  bytesPerS: number;
}

/** How many channels a layout has, as ffmpeg calls it. */
const channelsOf: Readonly<Record<string, number>> = { mono: 1, stereo: 2, "5.1": 6 };

function listen(path: string): Listened {
  const outputs = "-map 0:a -c copy -copyinkf -copypriorss 1 -f framemd5 pipe:1 -map 0:a -f s16le pipe:3";
  const [listing, heard] = readOutputs("-i", path, ...outputs.split(" ")) as [Buffer, Buffer];
  const text = listing.toString();
  const lines = text.split("\n").filter((line) => /^\d/.test(line));
  const [, rate] = /^#sample_rate 0: (\d+)$/m.exec(text)!;
  const [, layout] = /^#channel_layout_name 0: (.+)$/m.exec(text)!;
  return {
    packets: lines.map((line) => line.split(/, */)[5]!),
    heard,
    bytesPerS: 2 * Number(rate) * channelsOf[layout!]!,
  };
}

const [opus, vorbis, mp3, flac] = ["libopus", "libvorbis", "libmp3lame", "flac"].map((codec) => ["-c:a", codec]);
/** In the middle of a second. */
const pause = ["-af", "asetpts=PTS+gt(T\\,0.5)*0.2/TB"];

describe.skipIf(!hasFfmpeg)("audio in its own container", () => {
  it.each([
    ["Opus in WebM", "webm", "opus", [...opus!, "-t", "2.3456"]],
    ["Opus in Matroska", "mkv", "opus", [...opus!, "-frame_duration", "60"]],
    ["Opus of several channels", "mkv", "opus", [...opus!, "-ac", "6"]],
    ["Opus of short packets", "webm", "opus", [...opus!, "-frame_duration", "2.5"]],
    ["Opus of long packets", "webm", "opus", [...opus!, "-b:a", "256k", "-vbr", "off", "-frame_duration", "60"]],
    ["Opus in MP4", "mp4", "opus", opus!],
    ["Opus in fragmented MP4", "mp4", "opus", [...opus!, "-movflags", "frag_keyframe+empty_moov"]],
    ["Opus of several channels in MP4", "mp4", "opus", [...opus!, "-ac", "6"]],
    ["Vorbis in WebM", "webm", "ogg", vorbis!],
    ["Vorbis in Matroska", "mkv", "ogg", [...vorbis!, "-ac", "6", "-q:a", "8"]],
    ["Vorbis of a low rate", "webm", "ogg", [...vorbis!, "-ar", "8000"]],
    ["Vorbis in MP4", "mp4", "ogg", vorbis!],
    ["MP3 in MP4", "mp4", "mp3", mp3!],
    ["MP3 of variable bit rate in MP4", "mp4", "mp3", [...mp3!, "-q:a", "4"]],
    ["MP3 of one channel in MP4", "mp4", "mp3", [...mp3!, "-ac", "1", "-b:a", "32k"]],
    ["MP3 of MPEG-2 in MP4", "mp4", "mp3", [...mp3!, "-ar", "22050", "-b:a", "32k"]],
    ["MP3 in QuickTime", "mov", "mp3", mp3!],
    ["FLAC in Matroska", "mkv", "flac", flac!],
    ["FLAC in MP4", "mp4", "flac", [...flac!, "-strict", "-2"]],
    ["FLAC in fragmented MP4", "mp4", "flac", [...flac!, "-strict", "-2", "-movflags", "frag_keyframe+empty_moov"]],
  ])("has the packets of its source, and what is heard is the same: %s", async (name, from, ext, args) => {
    const source = `source.${from}`;
    media.make(source, ...audioInput(4, 48_000), ...args);
    const path = (await extract(source, ext))!;
    const { packets, heard: made, bytesPerS } = listen(path);
    const { packets: given, heard: played } = listen(media.path(source));
    expect(packets).toEqual(given);
    expect(made).toEqual(played.subarray(0, made.length));
    // ffmpeg trims the end by the last page of Ogg, by DiscardPadding and by what LAME says, but not by an edit list.
    const isMp4 = from === "mp4" || from === "mov";
    const hasEnd = isMp4 && !name.startsWith("Vorbis");
    expect(made.length).toBe(hasEnd ? 4 * bytesPerS : played.length);
  });

  it.each([
    ["Opus", "opus", opus!, 0.02],
    ["Vorbis", "ogg", vorbis!, 0.1],
    ["MP3", "mp3", mp3!, 0.03],
    ["FLAC", "flac", [...flac!, "-strict", "-2"], 0.2],
  ] as const)(
    "has the packets of the parts of a cut, and what is heard is as long: %s",
    async (_, ext, args, packetS) => {
      media.make("whole.mp4", ...audioInput(4, 48_000), ...args);
      const ranges = [
        { startS: 0.7, endS: 1.51 },
        { startS: 2.22, endS: 3.3 },
      ];
      await cut(media.path("whole.mp4"), media.path("cut.mp4"), ranges);
      const path = (await extract("cut.mp4", ext, additions, true))!;
      const whole = listen(media.path("whole.mp4"));
      const { packets, heard: made, bytesPerS } = listen(path);
      const places = packets.map((hash) => whole.packets.indexOf(hash));
      // Frames of FLAC get other numbers.
      if (ext !== "flac") expect(places).not.toContain(-1);
      expect(Math.abs(made.length / bytesPerS - 1.89)).toBeLessThan(2 * packetS);
      if (ext !== "flac") return;
      for (const part of [made.subarray(0, bytesPerS / 2), made.subarray(-bytesPerS / 2)]) {
        expect(whole.heard.includes(part)).toBe(true);
      }
    },
  );

  it.each([
    ["MPEG-1", "44100", "128k"],
    ["MPEG-2", "22050", "32k"],
    ["MPEG-2.5", "11025", "16k"],
  ])(
    "begins with what is heard in its source, as frames of MP3 use bytes of those before them: %s",
    async (_, rate, bits) => {
      const noise = `anoisesrc=duration=4:sample_rate=${rate}:amplitude=0.3:seed=1,tremolo=f=5`;
      media.make("plain.mp3", "-f", "lavfi", "-i", noise, ...mp3!, "-b:a", bits);
      // FFmpeg puts low rates into QuickTime only.
      media.make("whole.mov", "-i", media.path("plain.mp3"), "-c", "copy");
      const whole = listen(media.path("whole.mov"));
      for (const startS of [1.03, 2.2]) {
        await cut(media.path("whole.mov"), media.path("cut.mp4"), [{ startS, endS: startS + 1 }]);
        const { heard } = listen((await extract("cut.mp4", "mp3", additions, true))!);
        const start = heard.subarray(0, whole.bytesPerS / 5);
        expect(Math.abs(whole.heard.indexOf(start) / whole.bytesPerS - startS)).toBeLessThan(0.001);
      }
    },
  );

  // FFmpeg knows no MP3 of a single packet.
  it.each([
    ["Opus", "opus", opus!, [0, 2, 3.999]],
    ["MP3", "mp3", mp3!, [2, 3.999]],
    ["FLAC", "flac", [...flac!, "-strict", "-2"], [0, 2, 3.999]],
  ])("has all packets of a cut that leaves out nothing, and one at least of any: %s", async (_, ext, args, starts) => {
    media.make("whole.mp4", ...audioInput(4, 48_000), ...args);
    const { packets: all, heard: whole } = listen(media.path("whole.mp4"));
    const listenTo = async (startS: number, endS: number) => {
      await cut(media.path("whole.mp4"), media.path("cut.mp4"), [{ startS, endS }]);
      return listen((await extract("cut.mp4", ext, additions, true))!);
    };
    // Of its first packet MP3 presents less than a millisecond.
    expect((await listenTo(0, Infinity)).packets.slice(1 - all.length)).toEqual(all.slice(1));
    for (const startS of starts) {
      const { packets, heard } = await listenTo(startS, startS + 1e-6);
      // Frames of FLAC get other numbers.
      if (ext === "flac") expect([heard.length > 0, whole.includes(heard)]).toEqual([true, true]);
      else expect(all).toContain(packets.at(-1));
    }
  });

  it("has no delay that its source does not state: MP3 in Matroska", async () => {
    media.make("plain.mp3", ...audioInput(4, 48_000), ...mp3!, "-write_xing", "0");
    media.make("source.mkv", "-i", media.path("plain.mp3"), "-c", "copy");
    const path = (await extract("source.mkv", "mp3"))!;
    expect(listen(path)).toEqual(listen(media.path("source.mkv")));
  });

  it.each([
    ["Opus", "webm", "opus", opus!],
    ["Vorbis", "webm", "ogg", vorbis!],
    ["MP3", "mp4", "mp3", mp3!],
    ["FLAC", "mkv", "flac", flac!],
  ])("has tags, chapters and a cover: %s", async (_, from, ext, args) => {
    const source = `source.${from}`;
    media.make(source, ...audioInput(4, 48_000), ...args, "-metadata:s:a:0", "language=fra");
    const path = (await extract(source, ext))!;
    const { format, streams, chapters } = probeAll(path);
    const tags = Object.entries({ ...streams[0]?.tags, ...format.tags }).map(([key, value]) => [
      key.toLowerCase(),
      value,
    ]);
    const { title, artist, date } = additions.tags;
    expect(Object.fromEntries(tags)).toMatchObject({ title, artist, date, ...albumTags, language: "fra" });
    expect(chapters.map(({ start_time, tags: { title: part } }) => [+start_time, part])).toEqual([
      [0, "Anfang"],
      [1.5, "Ende – 終"],
    ]);
    expect(streams.filter(({ disposition }) => disposition["attached_pic"] === 1)).toHaveLength(1);
    const read = mutagen(path);
    if (read !== undefined) expect(read).toContain("Ein Film & «mehr» 🎬");
  });

  it.each([
    ["AAC", "mp4", ["-c:a", "aac"]],
    ["two tracks", "mkv", ["-map", "0:a", "-map", "0:a", ...opus!]],
    ["video beside it", "mkv", ["-f", "lavfi", "-i", "testsrc=d=1", "-map", "0", "-map", "1", ...opus!]],
    ["MP2", "mkv", ["-c:a", "mp2"]],
    // An MP3 file cannot say that of its end alone.
    ["MP3 of whose end some is left out", "mkv", mp3!],
    ["MP3 with a pause", "mp4", [...mp3!, ...pause]],
    ["Opus with a pause", "mkv", [...opus!, ...pause]],
  ])("is not made of what cannot have one: %s", async (_, from, args) => {
    media.make(`other.${from}`, ...audioInput(1, 48_000), ...args);
    expect(await extract(`other.${from}`, "none")).toBe(undefined);
  });

  it.each([
    ["an edit list that ends early", "elst", 12, 500],
    ["packets that come faster than they last", "mdhd", 16, 50_000],
  ])("is not made of Opus in MP4 with %s: so much of its end would be left out", async (_, box, at, value) => {
    const bytes = media.make("other.mp4", ...audioInput(4, 48_000), ...opus!);
    bytes.writeUInt32BE(value, bytes.indexOf(box) + at);
    writeFileSync(media.path("other.mp4"), bytes);
    expect(await extract("other.mp4", "none")).toBe(undefined);
  });

  it("is not made of Opus that leaves out padding within it, as if two files were put together", async () => {
    // Segment and Clusters have no size.
    const bytes = media.make("padded.mkv", ...audioInput(1.001, 48_000), ...opus!, "-live", "1");
    expect(await extract("padded.mkv", "opus")).not.toBe(undefined);
    const again = bytes.subarray(bytes.indexOf(Buffer.from("1f43b675", "hex")));
    writeFileSync(media.path("padded.mkv"), Buffer.concat([bytes, again]));
    expect(await extract("padded.mkv", "opus")).toBe(undefined);
  });

  it.each<[string, string, readonly string[], (bytes: Buffer) => void]>([
    ["Vorbis without its last header", "webm", vorbis!, (bytes) => bytes.write("X", bytes.indexOf("\x05vorbis"))],
    ["Opus without a header", "webm", opus!, (bytes) => bytes.write("X", bytes.indexOf("OpusHead"))],
    ["FLAC without metadata", "mkv", flac!, (bytes) => bytes.write("X", bytes.indexOf("fLaC"))],
    [
      "a packet that is no MP3",
      "mp4",
      mp3!,
      (bytes) => bytes.fill(0, bytes.indexOf("mdat") + 4, bytes.indexOf("mdat") + 8),
    ],
  ])("is not made of damaged audio: %s", async (_, from, args, damage) => {
    const bytes = media.make(`damaged.${from}`, ...audioInput(1, 48_000), ...args);
    damage(bytes);
    writeFileSync(media.path(`damaged.${from}`), bytes);
    expect(await extract(`damaged.${from}`, "none")).toBe(undefined);
  });
});

describe("the frames of a lace", () => {
  const bytes = (...values: number[]) => Uint8Array.from(values);
  const frames = (payload: Uint8Array, flags: number) => framesIn(payload, flags).map((frame) => [...frame]);

  it.each([
    ["no lace", 0, bytes(1, 2), [[1, 2]]],
    ["Xiph", 0x02, bytes(1, 2, 7, 8, 9), [[7, 8], [9]]],
    ["fixed sizes", 0x04, bytes(1, 7, 8), [[7], [8]]],
    ["EBML, with differences", 0x06, bytes(2, 0x82, 0xbe, 1, 2, 3, 4, 5), [[1, 2], [3], [4, 5]]],
  ])("are read: %s", (_, flags, payload, expected) => {
    expect(frames(payload, flags)).toEqual(expected);
  });

  it.each([
    ["a size beyond the end", 0x02, bytes(1, 9, 7)],
    ["no sizes", 0x02, bytes(9)],
    ["sizes that do not divide", 0x04, bytes(1, 7, 8, 9)],
    ["a size below 0", 0x06, bytes(2, 0x81, 0x80, 1)],
  ])("are refused if their sizes do not fit: %s", (_, flags, payload) => {
    expect(() => framesIn(payload, flags)).toThrow(expect.objectContaining({ code: "upstream_invalid" }));
  });
});
