import { type Additions, type Chapter, type Cover, noAdditions } from "../../../remux/additions.ts";
import { childrenOf, findElement, findUnsigned, ids, textIn } from "../../../remux/matroska/elements.ts";
import { readHeader } from "../../../remux/matroska/tracks.ts";
import { iso639ToBcp47 } from "../../../remux/language.ts";
import { damagedError, unlessDamaged, viewOf } from "../../../remux/mp4/boxes.ts";
import { childBoxes, numbersInFile, type NumberSource } from "../../../remux/mp4/read/number-source.ts";
import { openFile, type OpenFile, readAt } from "../../../remux/open-file.ts";
import { isShowable } from "../../../remux/cover-size.ts";
import { openLocalInput } from "./local-input.ts";
import { readCueText } from "../../../remux/cue-text.ts";
import { readRange } from "../../../remux/mp4/read/file-boxes.ts";
import { id3Length } from "../../../remux/packed-audio/tags.ts";
import { readChapterFrames, readId3 } from "../../../remux/tags/id3.ts";
import { chapterTrackIds } from "../../../remux/mp4/read/headers.ts";
import { openMp4Tracks } from "../../../subtitles/tracks/mp4-track.ts";

/** What a file says of its media, with the times of the file. */
export type OwnDescription = Omit<Additions, "subtitles">;

/** Returns what a file says of its media; nothing of what is damaged. @throws the file system's own errors */
export async function readOwnDescription(path: string): Promise<OwnDescription> {
  using file = openFile(path);
  const source = numbersInFile(file.fd);
  const { raw = {}, images = [], ...stated } = await readTags(path);
  // The name in Matroska.
  const released = raw["DATE_RELEASED"];
  const date = stated.date === undefined && typeof released === "string" ? released : dateOf(stated.date);
  const { artist = null, description = stated.comment ?? namedText(raw["TXXX"]) } = stated;
  const title = stated.title ?? unlessDamaged(() => matroskaTitle(source)) ?? null;
  const { album = null, albumArtist = null, genre = null, trackNumber, tracksTotal } = stated;
  const track = trackNumber === undefined ? null : [trackNumber, tracksTotal ?? []].flat().join("/");
  const composer = textOf(raw, ["\u00a9wrt", "TCOM", "COMPOSER"]);
  const copyright = textOf(raw, ["cprt", "\u00a9cpy", "TCOP", "COPYRIGHT"]);
  const language = iso639ToBcp47(textOf(raw, ["TLAN", "LANGUAGE"]) ?? "");
  const about = { album, albumArtist, composer, genre, track, copyright, language };
  const tags = { title, artist, date, description, url: null, ...about };
  const listed = unlessDamaged(() => readOwnChapters(file)) ?? [];
  const picture = images.find(({ kind }) => kind === "coverFront") ?? images[0];
  return {
    tags,
    chapters: listed.length > 0 ? listed : commentChapters(raw),
    cover: picture ? coverOf(picture) : null,
  };
}

/** Returns the comment that ffmpeg writes into ID3 as a text with that name. */
function namedText(texts: unknown): string | null {
  return typeof texts === "object" && texts !== null
    ? textOf(texts as Readonly<Record<string, unknown>>, ["description", "comment"])
    : null;
}

function textOf(raw: Readonly<Record<string, unknown>>, names: readonly string[]): string | null {
  return names.map((name) => raw[name]).find((value) => typeof value === "string") ?? null;
}

/** Returns a date, with its time if that is not the start of the day. */
function dateOf(date: Date | undefined): string | null {
  const isKnown = date !== undefined && !Number.isNaN(date.getTime());
  return isKnown ? date.toISOString().replace("T00:00:00.000Z", "") : null;
}

/** Other readers say what is damaged in it. */
async function readTags(path: string) {
  try {
    using file = openLocalInput(path);
    return await file.input.getMetadataTags();
  } catch {
    return {};
  }
}

/** That of the Segment. */
function matroskaTitle(source: NumberSource): string | undefined {
  const header = readHeader(source);
  const title = header && findElement(source, header.segment, ids.info, ids.title);
  return title && textIn(source, title);
}

/** Returns the chapters in the comments of Ogg and FLAC: `CHAPTER000=00:01:02.345` and `CHAPTER000NAME=…`. */
function commentChapters(fields: Readonly<Record<string, unknown>>): Chapter[] {
  const texts = new Map(Object.entries(fields).map(([name, value]) => [name.toUpperCase(), value]));
  const chapters = [...texts].flatMap(([name, value]) => {
    const time = /^(\d{1,4}):(\d{1,2}):(\d{1,2}(?:\.\d{1,9})?)$/.exec(typeof value === "string" ? value : "");
    const title = texts.get(`${name}NAME`);
    if (!/^CHAPTER\d{3}$/.test(name) || time === null || typeof title !== "string") return [];
    const [, hours, minutes, seconds] = time;
    const startS = Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
    return [{ startS, endS: Infinity, title }];
  });
  return chapters.toSorted((a, b) => a.startS - b.startS);
}

/** As many as a file gets. */
const maxChapters = 10_000;
const maxEditions = 100;
const maxTagBytes = 64 << 20;

/**
 * Returns the chapters that an MP4, Matroska, WebM or MP3 file has, in order, with the times of the file; Infinity: one ends where the next one begins.
 *
 * @throws ServiceError `upstream_invalid` if what says so is damaged; the file system's own errors
 */
function readOwnChapters(file: OpenFile): Chapter[] {
  const source = numbersInFile(file.fd);
  const found = matroskaChapters(source) ?? id3Chapters(file) ?? mp4Chapters(file, source);
  return found.filter(({ title }) => title.trim() !== "").toSorted((a, b) => a.startS - b.startS);
}

function matroskaChapters(source: NumberSource): Chapter[] | undefined {
  const header = readHeader(source);
  if (header === undefined) return undefined;
  const chapters = findElement(source, header.segment, ids.chapters);
  if (chapters === undefined) return [];
  const editions = childrenOf(source, chapters, ids.editionEntry)
    .take(maxEditions)
    .filter((each) => findUnsigned(source, each, ids.editionFlagHidden) !== 1)
    .toArray();
  const edition = editions.find((each) => findUnsigned(source, each, ids.editionFlagDefault) === 1) ?? editions[0];
  if (edition === undefined) return [];
  return childrenOf(source, edition, ids.chapterAtom)
    .take(maxChapters)
    .filter((atom) => findUnsigned(source, atom, ids.chapterFlagHidden) !== 1)
    .map((atom) => {
      const title = findElement(source, atom, ids.chapterDisplay, ids.chapterString);
      const startNs = findUnsigned(source, atom, ids.chapterTimeStart) ?? 0;
      const endNs = findUnsigned(source, atom, ids.chapterTimeEnd) ?? Infinity;
      return { startS: startNs / 1e9, endS: endNs / 1e9, title: title === undefined ? "" : textIn(source, title) };
    })
    .toArray();
}

function id3Chapters(file: OpenFile): Chapter[] | undefined {
  const end = id3Length(readAt(file, 0, 10), 0);
  if (end === 0 || end > maxTagBytes) return undefined;
  return readChapterFrames(readId3(readAt(file, 0, end)) ?? []);
}

/** Those of a track of text, else those of Nero. */
function mp4Chapters(file: OpenFile, source: NumberSource): Chapter[] {
  const [moov] = childBoxes(source, { body: 0, end: source.size }, "moov");
  if (moov === undefined) return [];
  const tracks = openMp4Tracks(file, [...chapterTrackIds(source, moov)]).values();
  const listed = tracks
    .map((read) => [...read(() => {})])
    .find((cues) => cues.length > 0)
    ?.slice(0, maxChapters);
  if (listed !== undefined) return listed.map(({ text, ...times }) => ({ ...times, title: readCueText(text).text }));
  const [data] = childBoxes(source, moov, "udta");
  const [list] = data === undefined ? [] : childBoxes(source, data, "chpl");
  return list === undefined ? [] : neroChapters(readRange(file.fd, { start: list.body, end: list.end }));
}

function neroChapters(bytes: Buffer): Chapter[] {
  const view = viewOf(bytes);
  // Version, flags, four bytes of version 1, and the count.
  let at = bytes[0] === 1 ? 9 : 5;
  const chapters: Chapter[] = [];
  for (let left = bytes[at - 1] ?? 0; left > 0; left--) {
    if (at + 9 > bytes.length) throw damagedError(`"chpl" is too short`);
    const length = bytes[at + 8]!;
    const startS = Number(view.getBigUint64(at)) / 1e7;
    chapters.push({ startS, endS: Infinity, title: bytes.toString("utf8", at + 9, at + 9 + length) });
    at += 9 + length;
  }
  return chapters;
}

function coverOf({ data, mimeType }: { data: Uint8Array; mimeType: string }): Cover | null {
  const type = (["image/jpeg", "image/png"] as const).find((each) => each === mimeType.replace("/jpg", "/jpeg"));
  const cover = type && { mimeType: type, data };
  return cover !== undefined && unlessDamaged(() => isShowable(cover)) === true ? cover : null;
}

/** What a file says that says nothing. */
export const noDescription: OwnDescription = { tags: noAdditions.tags, chapters: [], cover: null };
