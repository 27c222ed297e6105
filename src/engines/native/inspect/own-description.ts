import { type Additions, type Chapter, type Cover, noAdditions } from "../../../remux/additions.ts";
import { findElement, ids, textIn } from "../../../remux/matroska/elements.ts";
import { readHeader } from "../../../remux/matroska/tracks.ts";
import { iso639ToBcp47 } from "../../../remux/language.ts";
import { unlessDamaged } from "../../../remux/mp4/boxes.ts";
import { type NumberSource, numbersInFile } from "../../../remux/mp4/read/number-source.ts";
import { openFile } from "../../../remux/open-file.ts";
import { isShowable } from "../../../remux/cover-size.ts";
import { openLocalInput } from "./local-input.ts";
import { readOwnChapters } from "./own-chapters.ts";

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

/** Returns the first text of these names. */
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

function coverOf({ data, mimeType }: { data: Uint8Array; mimeType: string }): Cover | null {
  const type = (["image/jpeg", "image/png"] as const).find((each) => each === mimeType.replace("/jpg", "/jpeg"));
  const cover = type && { mimeType: type, data };
  return cover !== undefined && unlessDamaged(() => isShowable(cover)) === true ? cover : null;
}

/** What a file says that says nothing. */
export const noDescription: OwnDescription = { tags: noAdditions.tags, chapters: [], cover: null };
