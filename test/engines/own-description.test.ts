import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import { afterAll, describe, expect, it } from "vitest";
import type { DownloadJob } from "../../src/engines/engine.ts";
import { readOwnDescription } from "../../src/engines/native/inspect/own-description.ts";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { noAdditions } from "../../src/remux/additions.ts";
import { element, text, unsigned } from "../../src/remux/matroska/write-elements.ts";
import { type Element, elementAt, elementsIn, ids } from "../../src/remux/matroska/elements.ts";
import { numbersIn } from "../../src/remux/mp4/read/number-source.ts";
import { openEntry } from "../contracts/engine/harness.ts";
import { readMedium } from "../media/rendition.ts";
import { resource } from "../media/resources.ts";
import { png } from "../remux/additions.ts";
import { makeFolder } from "../folder.ts";

const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
afterAll(() => engine.close());

const album = {
  album: "Album",
  albumArtist: "Everybody",
  composer: "Nobody",
  genre: "Film",
  track: "3/12",
  copyright: "© 2024",
  language: "de",
};
const said = {
  tags: { title: "Own 🎬", artist: "Someone", date: "2024-05-01", description: "What it shows", url: null, ...album },
  chapters: [
    { startS: 0, endS: 0.5, title: "One & <two>" },
    { startS: 0.5, endS: 9, title: "Zwei" },
  ],
};
const nothing = { tags: noAdditions.tags, name: null, chapters: [], covers: [] };

async function download(name: string, bytes: Uint8Array, change: Partial<DownloadJob>) {
  await using harness = await openEntry(() => engine, new Map([[name, resource("", Buffer.from(bytes))]]), name);
  const resources = harness.site.resources;
  resources.set("cover.png", resource("image/png", png));
  const { path, warnings } = await harness.download({ description: nothing, ...change });
  return { bytes: readFileSync(path), description: await readOwnDescription(path), warnings };
}

/** Returns a file with tags, chapters and, unless it is Matroska, a cover. */
async function described(name: string): Promise<Buffer> {
  await using harness = await openEntry(
    () => engine,
    new Map([
      [name, resource("", readMedium(name))],
      ["cover.png", resource("image/png", png)],
    ]),
    name,
  );
  const covers = name.endsWith("mkv") ? [] : [harness.site.url("cover.png")];
  const { path, warnings } = await harness.download({
    embed: "all",
    description: { ...said, name: null, covers },
  });
  expect(warnings).toEqual([]);
  return readFileSync(path);
}

describe("what a progressive file says of its media", () => {
  it.each(["index-first.mp4", "h264-aac.mkv", "tone.mp3", "vorbis.ogg"])(
    "is in what is made of a part of it, with chapters that are cut and moved: %s",
    async (name) => {
      const part = { ranges: [{ startS: 0.25, endS: 0.8 }], isAudioFile: true };
      const { description } = await download(name, await described(name), part);
      const { description: _, url: __, language, ...tags } = said.tags;
      // Tracks of MP4 and Matroska have languages of their own.
      const isOfTrack = name.endsWith(".mp4") || name.endsWith(".mkv");
      expect(description.tags).toMatchObject({ ...tags, language: isOfTrack ? null : language });
      expect(description.chapters.map((chapter) => chapter.title)).toEqual(["One & <two>", "Zwei"]);
      const [first, second] = description.chapters;
      expect(first?.startS).toBe(0);
      expect(second!.startS).toBeCloseTo(0.25, 1);
      expect(description.cover?.data.length).toBe(name.endsWith("mkv") ? undefined : png.length);
    },
  );

  it("counts less than what the page says, and more than the name of the file", async () => {
    const bytes = await described("index-first.mp4");
    const ranges = [{ startS: 0, endS: 0.8 }];
    const page = { ...noAdditions.tags, title: "Page", description: "Of the page" };
    const chapters = [{ startS: 0, endS: Infinity, title: "All" }];
    const made = await download("a.mp4", bytes, {
      ranges,
      description: { ...nothing, tags: page, name: "a", chapters },
    });
    expect(made.description.tags).toMatchObject({ title: "Page", description: "Of the page", artist: "Someone" });
    expect(made.description.chapters.map(({ title }) => title)).toEqual(["All"]);
    const named = await download("a.mp4", bytes, { ranges, description: { ...nothing, name: "a" } });
    expect(named.description.tags.title).toBe("Own 🎬");
    const plain = await download("a.mp4", readMedium("index-first.mp4"), {
      ranges,
      description: { ...nothing, name: "a" },
    });
    expect(plain.description.tags.title).toBe("a");
  });

  it.each(["index-first.mp4", "h264-aac.mkv", "tone.mp3", "vorbis.ogg"])(
    "stays when tags are added to it, its title too if only its name is known: %s",
    async (name) => {
      const bytes = await described(name);
      const { description } = await download(name, bytes, { embed: "all", description: { ...nothing, name: "a" } });
      const { title, artist } = description.tags;
      expect([title, artist, description.chapters.length]).toEqual(["Own 🎬", "Someone", 2]);
    },
  );

  it.each(["index-first.mp4", "h264-aac.mkv", "vp9-opus.webm", "tone.mp3", "vorbis.ogg"])(
    "is replaced by what the page says, and kept otherwise, if that is added to the file: %s",
    async (name) => {
      const tags = { ...noAdditions.tags, description: "Of the page", date: "2025-01-02", title: "Page" };
      const added = { description: { ...nothing, tags }, embed: "all" as const };
      const { bytes, description } = await download(name, await described(name), added);
      const { language: _, ...kept } = { artist: "Someone", ...album };
      expect(description.tags).toMatchObject({
        ...kept,
        title: "Page",
        description: "Of the page",
        date: "2025-01-02",
      });
      for (const old of ["What it shows", "2024-05-01", "Own 🎬"]) expect(bytes.includes(old)).toBe(false);
    },
  );

  it("is kept if it is of a track of Matroska, under the same name", async () => {
    const source = Buffer.from(readMedium("h264-aac.mkv"));
    for (let at = source.indexOf("DURATION"); at >= 0; at = source.indexOf("DURATION")) source.write("COMPOSER", at);
    const count = (bytes: Buffer) => bytes.toString("latin1").split("COMPOSER").length - 1;
    const tags = { ...noAdditions.tags, composer: "Nobody" };
    const { bytes } = await download("h264-aac.mkv", source, { description: { ...nothing, tags }, embed: "all" });
    expect([count(source), count(bytes)]).toEqual([2, 3]);
  });

  it("is written beside subtitles of Matroska that are compressed, which stay as they are", async () => {
    const cue = deflateSync("Subtitles");
    const { bytes, description, warnings } = await download("film.mkv", withCompressedTrack(cue), {
      embed: "all",
      description: { ...nothing, tags: said.tags },
    });
    expect([description.tags.title, warnings]).toEqual([said.tags.title, []]);
    expect([bytes.includes(cue), bytes.includes(zlib)]).toEqual([true, true]);
  });

  it("has no chapters at other times in a part of Vorbis in which nothing is to be written", async () => {
    const bytes = await described("vorbis.ogg");
    for (const embed of ["made", "none"] as const) {
      const part = { ranges: [{ startS: 0.25, endS: 0.8 }], isAudioFile: true, embed };
      const { description } = await download("vorbis.ogg", bytes, part);
      expect(description.chapters.map(({ startS }) => startS)).toEqual(
        embed === "none" ? [] : [0, expect.closeTo(0.25, 1)],
      );
    }
  });

  it("is not written if nothing is to be written", async () => {
    const change = { ranges: [{ startS: 0, endS: 0.8 }], embed: "none" } as const;
    const { description } = await download("a.mp4", await described("index-first.mp4"), change);
    expect([description.tags.title, description.chapters]).toEqual([null, []]);
  });
});

const zlib = element(ids.encodings, element(ids.encoding, element(ids.compression)));

/** Returns a Matroska file that has this cue, too, in a track whose blocks are compressed. */
function withCompressedTrack(cue: Uint8Array): Buffer {
  const medium = readMedium("h264-aac.mkv");
  const source = numbersIn(medium);
  const head = elementAt(source, 0, source.size);
  const entry = element(
    ids.trackEntry,
    element(ids.trackNumber, unsigned(3)),
    element(ids.trackUid, unsigned(3)),
    element(ids.trackType, unsigned(17)),
    element(ids.codecId, text("S_TEXT/UTF8")),
    zlib,
  );
  const block = element(ids.block, Buffer.from([0x83, 0, 0, 0]), cue);
  const cluster = element(
    ids.cluster,
    element(ids.timestamp, unsigned(5_000)),
    element(ids.blockGroup, block, element(ids.blockDuration, unsigned(500))),
  );
  const copy = ({ id, body, end }: Element) => element(id, medium.subarray(body, end));
  const segment = [...elementsIn(source, elementAt(source, head.end, source.size))].flatMap((part) => {
    if (part.id === ids.tracks) return [element(ids.tracks, ...[...elementsIn(source, part)].map(copy), entry)];
    return part.id === ids.cues || part.id === ids.seekHead ? [] : [copy(part)];
  });
  return Buffer.concat([copy(head), element(ids.segment, ...segment, cluster)]);
}

describe("the chapters of a Matroska file", () => {
  const read = async (...editions: Uint8Array[]) => {
    const path = join(makeFolder(), "file");
    const head = element(0x1a45dfa3, element(ids.docType, text("matroska")));
    const body = [element(ids.tracks), element(ids.chapters, element(ids.crc32, unsigned(1)), ...editions)];
    writeFileSync(path, Buffer.concat([head, element(ids.segment, ...body)]));
    return (await readOwnDescription(path)).chapters;
  };
  const atom = (startNs: number, title: string, ...more: Uint8Array[]) =>
    element(
      ids.chapterAtom,
      element(ids.chapterTimeStart, unsigned(startNs)),
      element(ids.chapterDisplay, element(ids.chapterString, text(title))),
      ...more,
    );

  it("are those of the default edition that are not hidden, in order", async () => {
    const other = element(ids.editionEntry, atom(0, "Other"));
    const hidden = atom(0, "Hidden", element(ids.chapterFlagHidden, unsigned(1)));
    const isDefault = element(ids.editionFlagDefault, unsigned(1));
    const own = element(
      ids.editionEntry,
      isDefault,
      atom(2e9, "B", element(ids.chapterTimeEnd, unsigned(3e9))),
      hidden,
      atom(1e9, "A"),
    );
    expect(await read(other, own)).toEqual([
      { startS: 1, endS: Infinity, title: "A" },
      { startS: 2, endS: 3, title: "B" },
    ]);
    expect((await read(other)).map(({ title }) => title)).toEqual(["Other"]);
  });

  it("are not those of a hidden edition, also if it is the default one", async () => {
    const flags = [ids.editionFlagDefault, ids.editionFlagHidden].map((id) => element(id, unsigned(1)));
    const hidden = element(ids.editionEntry, ...flags, atom(0, "Hidden"));
    const shown = element(ids.editionEntry, element(ids.editionFlagHidden, unsigned(0)), atom(0, "Shown"));
    expect((await read(hidden, shown)).map(({ title }) => title)).toEqual(["Shown"]);
    expect(await read(hidden)).toEqual([]);
  });

  it("are none if they are damaged, or have no titles", async () => {
    expect(await read(element(ids.editionEntry, atom(0, ""), element(ids.chapterAtom)))).toEqual([]);
    expect(await read(element(ids.editionEntry, Uint8Array.of(0xb6, 0x8f, 0x80)))).toEqual([]);
  });
});
