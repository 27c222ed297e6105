import type { Chapter } from "../../../remux/additions.ts";
import { readCueText } from "../../../remux/cue-text.ts";
import { elementsIn, findElement, findUnsigned, ids, textIn } from "../../../remux/matroska/elements.ts";
import { readHeader } from "../../../remux/matroska/tracks.ts";
import { damagedError, viewOf } from "../../../remux/mp4/boxes.ts";
import { childBoxes, numbersInFile, type NumberSource } from "../../../remux/mp4/read/number-source.ts";
import { readRange } from "../../../remux/mp4/read/file-boxes.ts";
import { type OpenFile, readAt } from "../../../remux/open-file.ts";
import { id3Length } from "../../../remux/packed-audio/tags.ts";
import { readChapterFrames, readId3 } from "../../../remux/tags/id3.ts";
import { chapterTrackIds, openMp4Tracks } from "../../../subtitles/tracks/mp4-track.ts";

/** As many as a file gets. */
const maxChapters = 10_000;
const maxEditions = 100;
const maxTagBytes = 64 << 20;

/**
 * Returns the chapters that an MP4, Matroska, WebM or MP3 file has, in order, with the times of the file; Infinity: one ends where the next one begins.
 *
 * @throws ServiceError `upstream_invalid` if what says so is damaged; the file system's own errors
 */
export function readOwnChapters(file: OpenFile): Chapter[] {
  const source = numbersInFile(file.fd);
  const found = matroskaChapters(source) ?? id3Chapters(file) ?? mp4Chapters(file, source);
  return found.filter(({ title }) => title.trim() !== "").toSorted((a, b) => a.startS - b.startS);
}

function matroskaChapters(source: NumberSource): Chapter[] | undefined {
  const header = readHeader(source);
  if (header === undefined) return undefined;
  const chapters = findElement(source, header.segment, ids.chapters);
  if (chapters === undefined) return [];
  const editions = elementsIn(source, chapters)
    .filter(({ id }) => id === ids.editionEntry)
    .take(maxEditions)
    .toArray();
  const edition = editions.find((each) => findUnsigned(source, each, ids.editionFlagDefault) === 1) ?? editions[0];
  if (edition === undefined) return [];
  return elementsIn(source, edition)
    .filter(({ id }) => id === ids.chapterAtom)
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
