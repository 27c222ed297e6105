import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type Additions, noAdditions } from "../../src/remux/additions.ts";
import { embedInAudio } from "../../src/remux/audio-files/embed.ts";
import { albumTags, additions, mutagen, packetHashes, png, probeAll } from "./additions.ts";
import { audioInput, createMediaFolder, hasFfmpeg, run } from "./ts-media.ts";
import { decodedMd5 } from "../media/read-media.ts";

const media = createMediaFolder();

async function embed(name: string, given: Additions = additions): Promise<string | undefined> {
  const [, ext] = name.split(".");
  const path = media.path(`tagged-${name.length}.${ext}`);
  const { signal } = new AbortController();
  return (await embedInAudio(media.path(name), path, given, { durationS: 4, signal })) ? path : undefined;
}

/** Returns a hash of what is heard. Throws if the decoder reports a problem. */
const heard = (path: string) => decodedMd5(path, "audio");
const audioHashes = (path: string) => packetHashes(path).filter((hash) => hash.startsWith("audio"));
const kinds = [
  ["MP3", "tone.mp3", ["-c:a", "libmp3lame"]],
  ["MP3 without any tag", "bare.mp3", ["-c:a", "libmp3lame", "-id3v2_version", "0", "-write_xing", "0"]],
  ["FLAC", "tone.flac", ["-c:a", "flac"]],
  ["Ogg Vorbis", "tone.ogg", ["-c:a", "libvorbis"]],
  ["Ogg Opus", "tone.opus", ["-c:a", "libopus", "-ar", "48000"]],
] as const;

describe.skipIf(!hasFfmpeg)("a published audio file with tags, chapters and a cover", () => {
  it.each(kinds)("has them, and the same audio: %s", async (_, name, args) => {
    media.make(name, ...audioInput(4), ...args);
    const path = (await embed(name))!;
    expect(audioHashes(path)).toEqual(audioHashes(media.path(name)));
    expect(heard(path)).toBe(heard(media.path(name)));
    const { format, streams, chapters } = probeAll(path);
    const tags = Object.entries({ ...streams[0]?.tags, ...format.tags }).map(([key, value]) => [
      key.toLowerCase(),
      value,
    ]);
    const { title, artist, date, description } = additions.tags;
    expect(Object.fromEntries(tags)).toMatchObject({
      title,
      artist,
      date,
      comment: description,
      ...albumTags,
      language: "deu",
    });
    expect(chapters.map(({ start_time, tags: { title: part } }) => [+start_time, part])).toEqual([
      [0, "Anfang"],
      [1.5, "Ende – 終"],
    ]);
    expect(Number(chapters[1]?.end_time)).toBeCloseTo(4, 1);
    expect(streams.filter(({ disposition }) => disposition["attached_pic"] === 1)).toHaveLength(1);
    const read = mutagen(path);
    if (read === undefined) return;
    expect(read).toContain("Ein Film & «mehr» 🎬");
    expect(read).toContain("https://example.com/watch?v=1");
    expect(read).toMatch(/2024.{0,30}05.{0,30}01/);
  });

  it.each([
    ["ID3v2.3", "kept.mp3", ["-c:a", "libmp3lame", "-id3v2_version", "3"]],
    ["ID3v2.4", "kept.mp3", ["-c:a", "libmp3lame", "-id3v2_version", "4"]],
    ["FLAC", "kept.flac", ["-c:a", "flac"]],
    ["Ogg Vorbis", "kept.ogg", ["-c:a", "libvorbis"]],
  ])("keeps what is not replaced: %s", async (_, name, args) => {
    const given = { title: "Alt", composer: "Bach", comment: "alt", date: "1999", licence: "CC" };
    const metadata = Object.entries(given).flatMap(([key, value]) => ["-metadata", `${key}=${value}`]);
    media.make(name, ...audioInput(1), ...args, ...metadata);
    const path = (await embed(name, {
      ...noAdditions,
      tags: { ...noAdditions.tags, title: "Neu", description: "neu" },
    }))!;
    const { format, streams } = probeAll(path);
    const tags = Object.entries({ ...streams[0]?.tags, ...format.tags }).map(([key, value]) => [
      key.toLowerCase(),
      value,
    ]);
    const kept = { title: "Neu", comment: "neu", composer: "Bach", date: "1999", licence: "CC" };
    expect(Object.fromEntries(tags)).toMatchObject(kept);
    // Nothing is there twice.
    expect(readFileSync(path).includes("Alt")).toBe(false);
    expect(readFileSync(path).includes("alt")).toBe(false);
  });

  it("keeps what is not replaced: ID3v2.2", async () => {
    const plain = media.make("plain22.mp3", ...audioInput(1), "-c:a", "libmp3lame", "-id3v2_version", "0");
    const picture = Buffer.concat([Buffer.from("\0PNG\x03\0"), png]);
    const stated = { TT2: "\0Alt", TCM: "\0Bach", TYE: "\x001999", XYZ: "none", PIC: picture };
    const frames = Object.entries(stated).map(([id, content]) => {
      const bytes = Buffer.from(content);
      return Buffer.concat([Buffer.from(id), Buffer.from([0, bytes.length >> 8, bytes.length & 255]), bytes]);
    });
    const size = frames.reduce((sum, { length }) => sum + length, 0);
    const head = Buffer.from([...Buffer.from("ID3\x02\0\0\0\0"), size >> 7, size & 127]);
    writeFileSync(media.path("old.mp3"), Buffer.concat([head, ...frames, plain]));
    const path = (await embed("old.mp3", { ...noAdditions, tags: { ...noAdditions.tags, title: "Neu" } }))!;
    const { format, streams } = probeAll(path);
    expect(format.tags).toMatchObject({ title: "Neu", composer: "Bach", date: "1999" });
    expect(streams).toHaveLength(2);
    expect(audioHashes(path)).toEqual(audioHashes(media.path("plain22.mp3")));
  });

  it.each(kinds)("has a large cover and many chapters, and the same audio: %s", async (_, name, args) => {
    media.make(name, ...audioInput(4), ...args);
    const cover = { mimeType: "image/png", data: Buffer.concat([png, Buffer.alloc(300_000)]) } as const;
    const chapters = Array.from({ length: 600 }, (__, i) => ({ startS: i / 200, endS: Infinity, title: `Teil ${i}` }));
    const path = (await embed(name, { ...additions, cover, chapters }))!;
    expect(audioHashes(path)).toEqual(audioHashes(media.path(name)));
    expect(heard(path)).toBe(heard(media.path(name)));
    expect(probeAll(path).chapters.map(({ tags }) => tags.title)).toEqual(chapters.map(({ title }) => title));
    const program =
      "import mutagen, sys; t = mutagen.File(sys.argv[1]).tags; print(len(t.getall('CTOC')), len(t.getall('CHAP')))";
    if (name.endsWith(".mp3") && mutagen(path) !== undefined) {
      expect(run("/usr/bin/python3", "-c", program, path)).toBe("4 600\n");
    }
  });

  it("has a second stream after the first one, and what is no page", async () => {
    const first = media.make("one.ogg", ...audioInput(2), "-c:a", "libvorbis");
    writeFileSync(media.path("chained.ogg"), Buffer.concat([first, Buffer.from("no page"), first]));
    const copy = readFileSync((await embed("chained.ogg"))!);
    expect(copy.subarray(-first.length)).toEqual(first);
    expect(copy.includes("no page")).toBe(true);
  });
});

describe.skipIf(!hasFfmpeg)("a published file whose tags or pages cannot be read stays as it is:", () => {
  const mp3 = () => media.make("plain.mp3", ...audioInput(1), "-c:a", "libmp3lame", "-id3v2_version", "0");
  const flac = () => media.make("plain.flac", ...audioInput(1), "-c:a", "flac");
  const ogg = () => media.make("plain.ogg", ...audioInput(1), "-c:a", "libvorbis");
  const pages = () => media.make("pages.ogg", ...audioInput(4), "-c:a", "libvorbis", "-page_duration", "500000");
  /** Without the third last page. */
  function withoutPage(bytes: Buffer): Buffer {
    const starts = [...bytes.toString("latin1").matchAll(/OggS/g)].map(({ index }) => index);
    return Buffer.concat([bytes.subarray(0, starts.at(-3)), bytes.subarray(starts.at(-2))]);
  }
  const at = (bytes: Buffer, text: string, change: number): Buffer => {
    bytes.writeUInt32BE(0xffffffff, bytes.indexOf(text) + change);
    return bytes;
  };

  it.each<[string, string, () => Buffer]>([
    [
      "a frame of ID3v2.2 that is too long",
      "a.mp3",
      () => Buffer.concat([Buffer.from("ID3\x02\0\0\0\0\0\x0aTT2\0\0\x05\0abc"), mp3()]),
    ],
    [
      "a frame of ID3 that is too long",
      "b.mp3",
      () => Buffer.concat([Buffer.from("ID3\x03\0\0\0\0\0\x0aTIT2\0\0\x04\0\0\0"), mp3()]),
    ],
    ["a tag that is longer than the file", "c.mp3", () => Buffer.from("ID3\x04\0\0\x7f\x7f\x7f\x7f")],
    ["a block of FLAC that is too long", "d.flac", () => at(flac(), "fLaC", 4 + 4 + 34)],
    ["comments of FLAC that are too many", "e.flac", () => at(flac(), "Lavf", -4)],
    ["comments of Ogg that are too long", "f.ogg", () => at(ogg(), "Lavf", -4)],
    ["no page after the first one", "g.ogg", () => ogg().subarray(0, 100)],
    ["FLAC in Ogg", "h.ogg", () => media.make("flac.ogg", ...audioInput(1), "-c:a", "flac")],
    // New numbers and checksums would hide it.
    [
      "a damaged page",
      "k.ogg",
      () => {
        const bytes = pages();
        return at(bytes, "OggS", bytes.lastIndexOf("OggS") - 40);
      },
    ],
    ["a page that is missing", "l.ogg", () => withoutPage(pages())],
    ["AAC", "i.aac", () => media.make("plain.aac", ...audioInput(1), "-c:a", "aac")],
    ["nothing", "j.mp3", () => Buffer.alloc(0)],
  ])("%s", async (_, name, make) => {
    writeFileSync(media.path(name), make());
    expect(await embed(name)).toBe(undefined);
  });
});
