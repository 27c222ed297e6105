import type { SubtitleRole } from "../model/entry.ts";

/** What is written into a file besides its media. Times are seconds from the start of what the file presents. */
export interface Additions {
  tags: Tags;
  chapters: readonly Chapter[];
  cover: Cover | null;
  subtitles: readonly TextTrack[];
}

/** `null`: unknown. */
export interface Tags {
  title: string | null;
  artist: string | null;
  /** A date or a time (ISO 8601). */
  date: string | null;
  description: string | null;
  url: string | null;
  album: string | null;
  albumArtist: string | null;
  composer: string | null;
  genre: string | null;
  /** Its number in the album, and after a slash how many there are: `3`, `3/9`. */
  track: string | null;
  copyright: string | null;
  /** BCP 47; where tracks have languages, theirs count. */
  language: string | null;
}

export interface Chapter {
  startS: number;
  endS: number;
  title: string;
}

export interface Cover {
  mimeType: "image/jpeg" | "image/png";
  data: Uint8Array;
}

export interface TextTrack {
  /** BCP 47; `null`: unknown. */
  language: string | null;
  name: string;
  role: SubtitleRole;
  /** No person wrote or translated it. */
  automatic: boolean;
  /** In any order. May be read from the disk each time: those of all tracks together may take much memory. */
  readonly cues: readonly Cue[];
}

/** Returns a track with these cues, which are made each time they are read. */
export function withCues(about: Omit<TextTrack, "cues">, makeCues: () => readonly Cue[]): TextTrack {
  const { language, name, role, automatic } = about;
  return {
    language,
    name,
    role,
    automatic,
    get cues() {
      return makeCues();
    },
  };
}

export interface Cue {
  startS: number;
  endS: number;
  /** A WebVTT cue payload (W3C WebVTT §3.1): its lines are separated by LF. */
  text: string;
  /** A WebVTT cue settings list; `""`: none. */
  settings: string;
}

export const noAdditions: Additions = {
  tags: {
    title: null,
    artist: null,
    date: null,
    description: null,
    url: null,
    album: null,
    albumArtist: null,
    composer: null,
    genre: null,
    track: null,
    copyright: null,
    language: null,
  },
  chapters: [],
  cover: null,
  subtitles: [],
};

/** A time within a cue payload (W3C WebVTT §4.2.2). */
const innerTime = /<(?:(\d{2,4}):)?([0-5]\d):([0-5]\d\.\d{3})>/g;

/** Returns a cue that is shown this many seconds later, with the times within its text. */
export function moveCue(cue: Cue, byS: number): Cue {
  return byS === 0
    ? cue
    : { ...cue, startS: cue.startS + byS, endS: cue.endS + byS, text: moveInnerTimes(cue.text, byS) };
}

/** Returns a cue payload whose own times are this many seconds later; those before zero are zero. */
export function moveInnerTimes(text: string, byS: number): string {
  return text.replaceAll(innerTime, (_, ...parts: InnerTime) => `<${clock(secondsOf(parts) + byS)}>`);
}

/** Returns the times within a cue payload, seconds, and the payload without them. */
export function takeInnerTimes(payload: string): { text: string; times: readonly number[] } {
  const times: number[] = [];
  const text = payload.replaceAll(innerTime, (_, ...parts: InnerTime) => {
    times.push(secondsOf(parts));
    return "<>";
  });
  return { text, times };
}

type InnerTime = [hours: string | undefined, minutes: string, seconds: string, ...unknown[]];

const secondsOf = ([hours, minutes, seconds]: InnerTime): number =>
  Number(hours ?? 0) * 3600 + Number(minutes) * 60 + Number(seconds);

/** As times are computed, seconds. */
const sameTimeS = 1e-6;

/**
 * Returns cues or chapters as they are in a file that presents only these parts of the media, one after the other: cut and
 * moved along. One that is in several parts is in each; where these follow each other, it continues.
 *
 * @param moveItem Moves what an item says beside its start and end.
 */
export function cutTimes<Item extends { startS: number; endS: number }>(
  items: readonly Item[],
  kept: readonly { startS: number; endS: number }[],
  moveItem: (item: Item, byS: number) => Item = (item) => item,
): Item[] {
  const cut: Item[] = [];
  const latest = new Map<Item, Item>();
  let atS = 0;
  for (const part of kept) {
    const moveS = atS - part.startS;
    for (const item of items) {
      if (item.startS >= part.endS || item.endS <= part.startS) continue;
      const startS = Math.max(item.startS, part.startS) + moveS;
      const endS = Math.min(item.endS, part.endS) + moveS;
      const before = latest.get(item);
      if (before !== undefined && startS - before.endS < sameTimeS) before.endS = endS;
      else {
        const piece = { ...moveItem(item, moveS), startS, endS };
        cut.push(piece);
        latest.set(item, piece);
      }
    }
    atS += part.endS - part.startS;
  }
  return cut;
}

/** Limits of what a file gets. */
const maxChapters = 10_000;
const maxTitleLength = 1_000;
const maxDateLength = 100;
const maxTextLength = 64 * 1024;
const maxCoverBytes = 2 << 20;

/**
 * Returns additions that fit into every file of this duration: chapters in order, one after the other, without those that
 * begin after the end; titles and names of at most 1,000 characters, texts of 64 Ki, no control characters; cues within the file.
 */
export function boundAdditions({ tags, chapters, cover, subtitles }: Additions, durationS: number): Additions {
  const lines = Object.entries(tags).map(([field, text]) => [field, plainText(text, maxTitleLength)]);
  return {
    tags: {
      ...(Object.fromEntries(lines) as Tags),
      date: plainText(tags.date, maxDateLength),
      description: plainText(tags.description, maxTextLength),
      url: plainText(tags.url, maxTextLength),
    },
    chapters: boundChapters(chapters, durationS),
    cover: cover !== null && cover.data.length <= maxCoverBytes ? cover : null,
    subtitles: subtitles.map((track) => withCues(track, () => boundCues(track.cues, durationS))),
  };
}

function plainText(text: string | null, maxLength: number): string | null {
  const plain = text
    ?.slice(0, maxLength)
    .toWellFormed()
    .replaceAll(/\r\n?/g, "\n")
    .replaceAll(/(?![\n\t])\p{Cc}/gu, "")
    .trim();
  return plain === undefined || plain === "" ? null : plain;
}

function boundChapters(chapters: readonly Chapter[], durationS: number): Chapter[] {
  const within = chapters.filter(({ startS }) => startS >= 0 && startS < durationS);
  return withEnds(within, durationS)
    .slice(0, maxChapters)
    .flatMap((chapter, index) => {
      const title = plainText(chapter.title, maxTitleLength) ?? `Chapter ${index + 1}`;
      return chapter.endS > chapter.startS ? [{ ...chapter, title: title.replaceAll("\n", " ") }] : [];
    });
}

/** Returns the chapters in order; one ends where the next one begins, or at `lastS`, unless it ends before. */
export function withEnds(chapters: readonly Chapter[], lastS = Infinity): Chapter[] {
  const sorted = chapters.toSorted((a, b) => a.startS - b.startS);
  return sorted.map((chapter, index) => {
    const nextS = Math.min(sorted[index + 1]?.startS ?? lastS, lastS);
    return { ...chapter, endS: chapter.endS > chapter.startS ? Math.min(chapter.endS, nextS) : nextS };
  });
}

/** Returns the cues within a file of this duration, in order. */
export function boundCues(cues: readonly Cue[], durationS: number): Cue[] {
  return cues
    .filter(({ startS, endS }) => endS > startS && endS > 0 && startS < durationS)
    .map((cue) => {
      const isWithin = cue.startS >= 0 && cue.endS <= durationS;
      return isWithin ? cue : { ...cue, startS: Math.max(0, cue.startS), endS: Math.min(cue.endS, durationS) };
    })
    .toSorted((a, b) => a.startS - b.startS || a.endS - b.endS);
}

/** Returns a time as hours, minutes, seconds and milliseconds. */
export function clock(seconds: number, point: "." | "," = "."): string {
  const ms = Math.max(0, Math.round(seconds * 1000));
  const digits = (value: number, length: number) => String(value).padStart(length, "0");
  const [hours, minutes, rest] = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60, ms % 60_000];
  return `${digits(hours, 2)}:${digits(minutes, 2)}:${digits(Math.floor(rest / 1000), 2)}${point}${digits(rest % 1000, 3)}`;
}
