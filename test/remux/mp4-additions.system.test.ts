import { spawnSync } from "node:child_process";
import { beforeAll, describe, expect, it } from "vitest";
import { type Additions, noAdditions } from "../../src/remux/additions.ts";
import { createMp4Demuxer } from "../../src/remux/mp4/read/demuxer.ts";
import { Mp4Writer } from "../../src/remux/mp4/write/writer.ts";
import type { TrackKind } from "../../src/remux/samples.ts";
import { Timelines } from "../../src/remux/timelines.ts";
import { albumTags, additions, cuesOf, mutagen, packetHashes, probeAll } from "./additions.ts";
import { start } from "./mp4-media.ts";
import { audioInput, createMediaFolder, hasFfmpeg, run, videoInput, x264 } from "./ts-media.ts";
import { complaintsOf, readMediaSync } from "../media/read-media.ts";

const media = createMediaFolder();
const hasAtomicParsley = spawnSync("AtomicParsley", ["--version"]).status === 0;

describe.skipIf(!hasFfmpeg)("an MP4 with additions", () => {
  beforeAll(() => {
    media.make("source.mp4", ...videoInput(4), ...audioInput(4), ...x264, "-c:a", "aac");
    media.make("sound.m4a", "-i", media.path("source.mp4"), "-vn", "-c", "copy");
  });

  function make(given: Additions, kinds: readonly TrackKind[] = ["video", "audio"]): string {
    const path = media.path("made.mp4");
    const writer = new Mp4Writer({ path, expectedS: 4 });
    const demuxer = createMp4Demuxer({ sink: writer, timelines: new Timelines(), kinds });
    for (const _ of demuxer.readFile({ path: media.path("source.mp4") }, start));
    demuxer.flush();
    writer.finish(given);
    return path;
  }

  it("has tags, chapters and a cover that players read, and the same media", () => {
    const path = make(additions);
    const { format, chapters, streams } = probeAll(path);
    expect(format.tags).toMatchObject({
      title: "Ein Film & «mehr» 🎬",
      artist: "Jemand",
      date: "2024-05-01",
      description: "Zeile eins\nZeile zwei",
      URL: "https://example.com/watch?v=1",
      ...albumTags,
    });
    expect(chapters.map(({ start_time, end_time, tags }) => [+start_time, +end_time, tags.title])).toEqual([
      [0, 1.5, "Anfang"],
      [1.5, 4, "Ende – 終"],
    ]);
    expect(streams.filter(({ disposition }) => disposition["attached_pic"] === 1)).toMatchObject([
      { codec_name: "png" },
    ]);
    const cover = readMediaSync(
      "ffprobe",
      "-v",
      "error",
      "-select_streams",
      "v:1",
      "-count_packets",
      "-of",
      "csv=p=0",
      "-show_entries",
      "stream=nb_read_packets",
      path,
    );
    expect(cover.trim()).toBe("1");
    const own = new Set(packetHashes(path));
    expect(packetHashes(media.path("source.mp4")).filter((hash) => !own.has(hash))).toEqual([]);
    expect(complaintsOf(path)).toBe("");
  });

  it("is read by mutagen and AtomicParsley alike", () => {
    const path = make(additions);
    const read = mutagen(path);
    if (read !== undefined) {
      expect(read).toContain("'©nam': ['Ein Film & «mehr» 🎬']");
      expect(read).toContain("AtomDataType.PNG");
      expect(read).toContain("Anfang");
    }
    if (hasAtomicParsley) {
      const atoms = run("AtomicParsley", path, "-t");
      expect(atoms).toContain("Ein Film & «mehr» 🎬");
      expect(atoms).toContain("1 piece of artwork");
    }
  });

  it("may be an M4A, which has tags, chapters and a cover too", () => {
    const path = make({ ...additions, subtitles: [] }, ["audio"]);
    const { format, chapters, streams } = probeAll(path);
    expect(format.tags).toMatchObject({ title: "Ein Film & «mehr» 🎬", artist: "Jemand", major_brand: "M4A " });
    expect(chapters.map(({ start_time, tags }) => [Number(start_time), tags.title])).toEqual([
      [0, "Anfang"],
      [1.5, "Ende – 終"],
    ]);
    expect(streams.filter(({ disposition }) => disposition["attached_pic"] === 1)).toHaveLength(1);
    const read = mutagen(path);
    if (read !== undefined) expect(read).toMatch(/Ein Film & «mehr» 🎬[^]*AtomDataType\.PNG[^]*Anfang/);
    if (hasAtomicParsley) expect(run("AtomicParsley", path, "-t")).toContain("1 piece of artwork");
    const own = new Set(packetHashes(path));
    const sound = packetHashes(media.path("sound.m4a"));
    expect(sound.length).toBeGreaterThan(100);
    expect(sound.filter((hash) => !own.has(hash))).toEqual([]);
  });

  it("says what subtitles are for", () => {
    const [first] = additions.subtitles;
    const roles = ["subtitles", "captions", "forced"] as const;
    const path = make({ ...additions, subtitles: roles.map((role) => ({ ...first!, role })) });
    const texts = probeAll(path).streams.filter(({ codec_name }) => codec_name === "mov_text");
    expect(texts.map(({ disposition }) => [disposition["captions"], disposition["forced"]])).toEqual([
      [0, 0],
      [1, 0],
      [0, 1],
    ]);
  });

  it("has the subtitles as tracks with language and name, the forced one enabled", () => {
    const path = make(additions);
    const texts = probeAll(path).streams.filter(({ codec_name }) => codec_name === "mov_text");
    expect(
      texts.map(({ tags, disposition }) => [tags?.["language"], tags?.["handler_name"], disposition["default"]]),
    ).toEqual([
      ["deu", "Deutsch", 0],
      ["por", "Placas", 1],
    ]);
    expect(cuesOf(path, 0)).toBe(
      [
        ["1", "00:00:00,500 --> 00:00:01,000", "<i>Grüße</i> & mehr", ""],
        ["2", "00:00:01,000 --> 00:00:01,250", "<i>Grüße</i> & mehr\nzweite", ""],
        ["3", "00:00:01,250 --> 00:00:02,000", "zweite", ""],
        ["4", "00:00:02,500 --> 00:00:03,100", "dritte\nin zwei Zeilen", "", ""],
      ]
        .flat()
        .join("\n"),
    );
    expect(cuesOf(path, 1)).toContain("Saída");
  });

  it("has no chapter beside those that are given, and the last one to its end", () => {
    const chapters = [
      { startS: 0.5, endS: 1, title: "a" },
      { startS: 2, endS: 3, title: "b" },
    ];
    const read = probeAll(make({ ...additions, chapters, subtitles: [] })).chapters;
    expect(read.map(({ start_time, end_time, tags }) => [+start_time, +end_time, tags.title])).toEqual([
      [0.5, 2, "a"],
      [2, 3, "b"],
    ]);
  });

  it("has chapters in a file of audio alone", () => {
    const path = make({ ...additions, subtitles: [] }, ["audio"]);
    expect(probeAll(path).chapters.map(({ tags }) => tags.title)).toEqual(["Anfang", "Ende – 終"]);
  });

  it("is well-formed whatever the additions say", () => {
    const chapters = Array.from({ length: 20_000 }, (_, i) => ({
      startS: ((i * 7919) % 20_000) / 1000 - 1,
      endS: i % 3 === 0 ? -1 : 1e9,
      title: i % 5 === 0 ? "" : `\0\u0007${"x".repeat(2_000)}`,
    }));
    const cues = Array.from({ length: 5_000 }, (_, i) => ({
      startS: i % 7 === 0 ? Number.NaN : (i % 50) / 10 - 1,
      endS: i % 11 === 0 ? Infinity : 3,
      text: "<b>&#55296;<i".repeat(100),
      settings: "",
    }));
    const text = {
      language: "x".repeat(99),
      name: "n".repeat(9_999),
      role: "captions",
      automatic: true,
      cues,
    } as const;
    const tags = { ...additions.tags, title: `\ud800${"t".repeat(1e6)}`, description: "\0".repeat(1e6) };
    const path = make({ ...additions, tags, chapters, subtitles: [text] });
    const { chapters: read, format } = probeAll(path);
    expect(read.length).toBeGreaterThan(1_000);
    expect(read.every(({ end_time }) => Number(end_time) <= 4.1)).toBe(true);
    expect(format.tags["title"]).toHaveLength(1_000);
    expect(format.tags).not.toHaveProperty("description");
    expect(complaintsOf(path, "-map", "0", "-c", "copy")).toBe("");
  });

  it("is the same as without if there is nothing to add", () => {
    const bytes = run("md5sum", make(noAdditions));
    const empty = { ...noAdditions.tags, title: "", description: "\n", track: "one" };
    expect(run("md5sum", make({ ...noAdditions, tags: empty }))).toBe(bytes);
  });
});
