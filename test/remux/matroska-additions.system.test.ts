import { closeSync, openSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { beforeAll, describe, expect, it } from "vitest";
import type { Additions } from "../../src/remux/additions.ts";
import { selectTracks } from "../../src/remux/matroska/blocks.ts";
import { copyMatroska } from "../../src/remux/matroska/copy.ts";
import { additions, cuesOf, packetHashes, probeAll } from "./additions.ts";
import { audioInput, createMediaFolder, hasFfmpeg, run, videoInput } from "./ts-media.ts";

const media = createMediaFolder();
const hasMkvmerge = spawnSync("mkvmerge", ["--version"]).status === 0;

describe.skipIf(!hasFfmpeg).each(["webm", "matroska"] as const)("a file of type %s with additions", (docType) => {
  beforeAll(() => {
    const codecs = "-c:v libvpx -deadline realtime -cpu-used 8 -g 25 -c:a libopus".split(" ");
    media.make("source.webm", ...videoInput(4), ...audioInput(4, 48_000), ...codecs);
  });

  function make(given: Additions): string {
    const path = media.path(docType === "webm" ? "made.webm" : "made.mkv");
    const [from, fd] = [openSync(media.path("source.webm"), "r"), openSync(path, "w")];
    try {
      for (const _ of copyMatroska([selectTracks(from, [1, 2])!], { fd, docType, additions: given }));
    } finally {
      closeSync(from);
      closeSync(fd);
    }
    return path;
  }

  it("has tags, chapters and the media of its source; Matroska also the cover", () => {
    const path = make(additions);
    const { format, chapters, streams } = probeAll(path);
    expect(format.tags).toMatchObject({
      title: "Ein Film & «mehr» 🎬",
      ARTIST: "Jemand",
      DATE_RELEASED: "2024-05-01",
      DESCRIPTION: "Zeile eins\nZeile zwei",
      URL: "https://example.com/watch?v=1",
      ALBUM: "Ein Album",
      ALBUM_ARTIST: "Alle",
      COMPOSER: "Niemand",
      GENRE: "Doku",
      track: "3/12",
      COPYRIGHT: "© 2024",
    });
    expect(chapters.map(({ start_time, end_time, tags }) => [+start_time, +end_time, tags.title])).toEqual([
      [0, 1.5, "Anfang"],
      [1.5, 4, "Ende – 終"],
    ]);
    const pictures = streams.filter(({ disposition }) => disposition["attached_pic"] === 1);
    expect(pictures.map(({ codec_name }) => codec_name)).toEqual(docType === "webm" ? [] : ["png"]);
    const made = new Set(packetHashes(path));
    expect(packetHashes(media.path("source.webm")).filter((hash) => !made.has(hash))).toEqual([]);
  });

  it.each([
    [
      "that are out of order, overlap, start at one time, have no title or end, or come after the end",
      [
        [3, 900, "Last"],
        [0.5, 3.5, ""],
        [2, 2.5, "Left out: another one starts there"],
        [2, Number.NaN, "Middle"],
        [4.5, 5, "After the end"],
        [1e300, Infinity, "Never"],
        [-1, 2, "Before"],
      ],
      [
        [0.5, 2, "Chapter 1"],
        [2, 3, "Middle"],
        [3, 4, "Last"],
      ],
    ],
    ["of which all come after the end", [[5, 6, "After"]], []],
    ["without an end", [[0, Infinity, "All"]], [[0, 4, "All"]]],
  ] as const)("has chapters %s", (_, given, expected) => {
    const chapters = given.map(([startS, endS, title]) => ({ startS, endS, title }));
    const found = probeAll(make({ ...additions, chapters })).chapters;
    expect(
      found.map(({ start_time, end_time, tags }) => [+start_time, Math.round(+end_time * 10) / 10, tags.title]),
    ).toEqual(expected);
  });

  it("has the first 10,000 of many chapters", () => {
    const chapters = Array.from({ length: 11_000 }, (_, i) => ({
      startS: i / 10_000,
      endS: i / 10_000,
      title: `${i}`,
    }));
    const found = probeAll(make({ ...additions, chapters })).chapters;
    expect(found.map(({ tags }) => tags.title)).toEqual(chapters.slice(0, 10_000).map(({ title }) => title));
  });

  it("has the subtitles as tracks with language, name and role", () => {
    const path = make(additions);
    const texts = probeAll(path).streams.filter(({ codec_type }) => codec_type === "subtitle");
    expect(
      texts.map(({ codec_name, tags, disposition }) => [
        codec_name,
        tags?.["language"],
        tags?.["title"],
        disposition["forced"],
      ]),
    ).toEqual([
      ["webvtt", "deu", "Deutsch", 0],
      ["webvtt", "por", "Placas", 1],
    ]);
    const expected = [
      ["1", "00:00:00,500 --> 00:00:01,250", "<i>Grüße</i> & mehr", ""],
      ["2", "00:00:01,000 --> 00:00:02,000", "zweite", ""],
      ["3", "00:00:02,500 --> 00:00:03,100", "dritte\nin zwei Zeilen", "", ""],
    ];
    expect(cuesOf(path, 0)).toBe(expected.flat().join("\n"));
    expect(cuesOf(path, 1)).toContain("Saída");
  });

  it("is no longer than its media, whatever its cues say", () => {
    const cues = [
      { startS: 1, endS: 1e6, text: "long", settings: "" },
      { startS: 9_999, endS: 10_000, text: "late", settings: "" },
    ];
    const [track] = additions.subtitles;
    const path = make({ ...additions, subtitles: [{ ...track!, cues }] });
    expect(Number(probeAll(path).format.duration)).toBeLessThan(4.2);
    expect(cuesOf(path, 0)).not.toContain("late");
  });

  it.skipIf(!hasMkvmerge)("is understood by mkvmerge, without a complaint", () => {
    const read = JSON.parse(run("mkvmerge", "-J", make(additions))) as {
      errors: string[];
      warnings: string[];
      chapters: { num_entries: number }[];
      tracks: { type: string; properties: { language_ietf?: string; forced_track?: boolean } }[];
    };
    expect([read.errors, read.warnings]).toEqual([[], []]);
    expect(read.chapters).toMatchObject([{ num_entries: 2 }]);
    const texts = read.tracks.filter(({ type }) => type === "subtitles");
    expect(texts.map(({ properties }) => [properties.language_ietf, properties.forced_track])).toEqual([
      ["de", false],
      ["pt-BR", true],
    ]);
  });
});
