import {
  type Additions,
  boundAdditions,
  type Chapter,
  type Cover,
  type Cue,
  type Tags,
  type TextTrack,
} from "../additions.ts";
import { iso639Of } from "../language.ts";
import type { ChosenTracks } from "./blocks.ts";
import { childrenOf, type Element, elementsIn, ids, readBytes, textIn, unsignedIn } from "./elements.ts";
import type { NumberSource } from "../mp4/read/number-source.ts";
import { element, text, unsigned } from "./write-elements.ts";
import type { SegmentDescription, WrittenBlock } from "./writer.ts";

/** TrackType (RFC 9559 §5.1.4.1.3). */
const subtitleType = 17;

/** UIDs of added tracks are greater than this: files count theirs from 1, or draw 64 bits. */
const firstUid = 2 ** 32;

/** Returns the entry of a track of subtitles. WebM has WebVTT in a form of its own. */
export function textEntry(track: TextTrack, number: number, isDefault: boolean): Uint8Array {
  const { language, name, role } = track;
  return element(
    ids.trackEntry,
    element(ids.trackNumber, unsigned(number)),
    element(ids.trackUid, unsigned(firstUid + number)),
    element(ids.trackType, unsigned(subtitleType)),
    element(ids.flagDefault, unsigned(Number(isDefault))),
    element(ids.flagForced, unsigned(Number(role === "forced"))),
    ...(role === "captions" ? [element(ids.flagHearingImpaired, unsigned(1))] : []),
    element(ids.flagLacing, unsigned(0)),
    element(ids.codecId, text(role === "captions" ? "D_WEBVTT/CAPTIONS" : "D_WEBVTT/SUBTITLES")),
    element(ids.language, text(iso639Of(language))),
    ...(language === null ? [] : [element(ids.languageBcp47, text(language))]),
    ...(name === "" ? [] : [element(ids.name, text(name))]),
  );
}

/** Returns the block of a cue: identifier, settings and payload, each after a line break (WebM, "WebVTT in WebM"). */
export function textBlock(cue: Cue, track: number, tickNs: number): WrittenBlock {
  const toTicks = (seconds: number) => Math.round((seconds * 1e9) / tickNs);
  const [ticks, endTicks] = [toTicks(cue.startS), toTicks(cue.endS)];
  return {
    track,
    ticks,
    // A cue makes no file longer.
    endTicks: 0,
    isKey: true,
    flags: 0,
    payload: text(`\n${cue.settings}\n${cue.text}`),
    others: element(ids.blockDuration, unsigned(endTicks - ticks)),
  };
}

/** A file may last so long at most: its nanoseconds fit into 64 bits. */
export const maxDurationS = 1e9;

/** Returns what a Segment says with these additions, and with further elements. */
export function describe(
  additions: Additions,
  docType: "webm" | "matroska",
  kept: readonly Uint8Array[] = [],
): SegmentDescription {
  // A Segment has one element of attachments.
  const hasAttachments = kept.some((part) => Buffer.from(part).readUInt32BE() === ids.attachments);
  const given = hasAttachments ? { ...additions, cover: null } : additions;
  const bounded = (durationS: number) => boundAdditions(given, Math.min(durationS, maxDurationS));
  return {
    title: bounded(Infinity).tags.title,
    others: (durationS) => [...describingElements(bounded(durationS), docType), ...kept],
  };
}

/** Returns the elements of the Segment for chapters, tags and, not in WebM, the cover. */
function describingElements({ chapters, tags, cover }: Additions, docType: "webm" | "matroska"): Uint8Array[] {
  const isMatroska = docType === "matroska";
  return [
    ...chapterElements(chapters),
    ...tagElements(tags),
    ...(cover !== null && isMatroska ? [attachment(cover)] : []),
  ];
}

const toNs = (seconds: number): bigint => BigInt(Math.round(seconds * 1e9));

function chapterElements(chapters: readonly Chapter[]): Uint8Array[] {
  if (chapters.length === 0) return [];
  const atoms = chapters.map(({ startS, endS, title }, index) =>
    element(
      ids.chapterAtom,
      element(ids.chapterUid, unsigned(index + 1)),
      element(ids.chapterTimeStart, unsigned(toNs(startS))),
      ...(Number.isFinite(endS) ? [element(ids.chapterTimeEnd, unsigned(toNs(endS)))] : []),
      element(ids.chapterDisplay, element(ids.chapterString, text(title)), element(ids.chapterLanguage, text("und"))),
    ),
  );
  const flags = element(ids.editionFlagDefault, unsigned(1));
  return [element(ids.chapters, element(ids.editionEntry, element(ids.editionUid, unsigned(1)), flags, ...atoms))];
}

/** Of the whole Segment (RFC 9559 §5.1.8, Matroska Media Container Tag Specifications), whose title is in its Info. */
function tagElements(tags: Tags): Uint8Array[] {
  const simple = [...valuesOf(tags)].map(([name, value]) =>
    element(ids.simpleTag, element(ids.tagName, text(name)), element(ids.tagString, text(value))),
  );
  return simple.length === 0 ? [] : [element(ids.tags, element(ids.tag, element(ids.targets), ...simple))];
}

/** Returns the names of what tags state of the whole Segment: other tags of it with these names are replaced. */
function statedNames(tags: Tags): ReadonlySet<string> {
  const names = new Set(valuesOf(tags).keys());
  if (tags.title !== null) names.add("TITLE");
  // As ffmpeg writes it.
  if (tags.date !== null) names.add("DATE");
  return names;
}

function valuesOf({ artist, date, description, url, ...about }: Tags): ReadonlyMap<string, string> {
  const values = {
    ARTIST: artist,
    DATE_RELEASED: date,
    DESCRIPTION: description,
    URL: url,
    ALBUM: about.album,
    ALBUM_ARTIST: about.albumArtist,
    COMPOSER: about.composer,
    GENRE: about.genre,
    PART_NUMBER: about.track,
    COPYRIGHT: about.copyright,
  };
  return new Map(Object.entries(values).flatMap(([name, value]) => (value === null ? [] : [[name, value]])));
}

/** Players show the attachment of this name as the cover. */
function attachment({ mimeType, data }: Cover): Uint8Array {
  const name = mimeType === "image/png" ? "cover.png" : "cover.jpg";
  return element(
    ids.attachments,
    element(
      ids.attachedFile,
      element(ids.fileName, text(name)),
      element(ids.fileMediaType, text(mimeType)),
      element(ids.fileUid, unsigned(1)),
      element(ids.fileData, data),
    ),
  );
}

/**
 * Returns what a file says besides its tracks: attachments, tags, and chapters unless others are added.
 * @throws ServiceError `upstream_invalid` if it is damaged.
 */
export function keptElements(file: ChosenTracks, { chapters, tags }: Additions): Uint8Array[] {
  const { fd, source, header } = file;
  const replaced = statedNames(tags);
  const wanted = new Set<number>([ids.attachments, ids.tags, ...(chapters.length === 0 ? [ids.chapters] : [])]);
  const found = [...elementsIn(source, header.segment)].filter(({ id }) => wanted.has(id));
  return found.flatMap((kept) => {
    const isShort = kept.end - kept.body <= maxTagBytes;
    return kept.id === ids.tags && isShort ? keptTags(file, kept, replaced) : [element(kept.id, readBytes(fd, kept))];
  });
}

/** Longer tags are kept as they are. */
const maxTagBytes = 1 << 20;

/** Returns tags without those of the whole Segment that have these names. Their checksum, which would be wrong, is left out. */
function keptTags({ fd, source }: ChosenTracks, parent: Element, replaced: ReadonlySet<string>): Uint8Array[] {
  const tags = [...childrenOf(source, parent, ids.tag)].flatMap((tag) => {
    const targets = [...childrenOf(source, tag, ids.targets)];
    const isOfWhole = targets.every((each) => isWhole(source, each));
    const simple = [...childrenOf(source, tag, ids.simpleTag)].filter((each) => {
      const [name] = childrenOf(source, each, ids.tagName);
      return !isOfWhole || name === undefined || !replaced.has(textIn(source, name).toUpperCase());
    });
    const copies = [...targets, ...simple].map((each) => element(each.id, readBytes(fd, each)));
    return simple.length === 0 ? [] : [element(ids.tag, ...copies)];
  });
  return tags.length === 0 ? [] : [element(ids.tags, ...tags)];
}

/** The TargetTypeValue of a film (RFC 9559 §5.1.8.1.1.1), which tags are about that do not say it. */
const film = 50;

function isWhole(source: NumberSource, targets: Element): boolean {
  return [...elementsIn(source, targets)].every(
    (each) => each.id === ids.targetType || (each.id === ids.targetTypeValue && unsignedIn(source, each) === film),
  );
}
