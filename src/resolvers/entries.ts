import { inputError, type ServiceError } from "../model/errors.ts";
import { type Entry, maxEntries } from "../model/entry.ts";

/** Who lists the entries of a playlist: yt-dlp, or the reader of pages. */
const listers = ["yt-dlp", "page"] as const;
type Lister = (typeof listers)[number];

/** Most bytes of JSON of the entries of one record: `boundInfo` leaves none of them out. */
const maxEntriesBytes = 150_000;

/** Entries that one record lists, those after the first `start` of a playlist. */
export interface EntrySlice {
  /** Entries of the playlist before these. */
  start: number;
  /** What the playlist lists from there on, in order, at least as many as fit into a record; null: no URL to post. */
  listed: (Entry | null)[];
  /** Whether the playlist has more after `listed`. */
  hasMore: boolean;
  /** All entries of the playlist, if the site states it. */
  count: number | null;
}

/**
 * Returns the fields of a record with these entries: as many as fit into `maxEntries` and `maxEntriesBytes`, and the cursor
 * of those after them. One that alone does not fit has no chapters and subtitles: the cursor would never get past it.
 */
export function listEntries(lister: Lister, { start, listed, hasMore, count }: EntrySlice) {
  const entries: Entry[] = [];
  let bytes = 0;
  let read = 0;
  for (const each of listed) {
    const { entry, size } = each === null ? { entry: each, size: 0 } : fit(each);
    if (read === maxEntries || bytes + size > maxEntriesBytes) break;
    bytes += size;
    read += 1;
    if (entry !== null) entries.push(entry);
  }
  const isLast = !hasMore && read === listed.length;
  const next = start + read;
  return {
    entries,
    entries_count: count ?? (isLast && (read > 0 || start === 0) ? next : null),
    ...(!isLast && next <= maxStart && { entries_next: formatCursor(lister, next) }),
  };
}

/** Returns what a record has of an entry, and its bytes of JSON. */
function fit(entry: Entry): { entry: Entry; size: number } {
  const size = sizeOf(entry);
  if (size <= maxEntriesBytes) return { entry, size };
  const { chapters: _, subtitles: __, ...rest } = entry;
  return { entry: rest, size: sizeOf(rest) };
}

const sizeOf = (entry: Entry): number => Buffer.byteLength(JSON.stringify(entry)) + 1;

/** Entries further on are not listed. */
const maxStart = 999_999;

/** Returns who made a cursor; `undefined` without one. @throws ServiceError `invalid_request` as `startOf` */
export function listerOf(cursor: string | undefined): Lister | undefined {
  return cursor === undefined ? undefined : parseCursor(cursor).lister;
}

/**
 * Returns how many entries of the playlist are before those that a cursor asks for; 0 without one.
 *
 * @throws ServiceError `invalid_request` if `listEntries` did not make it for this lister
 */
export function startOf(cursor: string | undefined, lister: Lister): number {
  if (cursor === undefined) return 0;
  const parsed = parseCursor(cursor);
  if (parsed.lister !== lister) throw cursorError(cursor);
  return parsed.start;
}

/** Opaque, so that its content may change. */
function formatCursor(lister: Lister, start: number): string {
  return Buffer.from(`${lister} ${start}`).toString("base64url");
}

function parseCursor(cursor: string): { lister: Lister; start: number } {
  const [name, digits = ""] = Buffer.from(cursor.slice(0, 100), "base64url").toString("latin1").split(" ");
  const lister = listers.find((each) => each === name);
  const start = Number(digits);
  if (lister === undefined || formatCursor(lister, start) !== cursor) throw cursorError(cursor);
  if (!Number.isSafeInteger(start) || start < 1 || start > maxStart) throw cursorError(cursor);
  return { lister, start };
}

function cursorError(cursor: string): ServiceError {
  const detail = `must be the "entries_next" of an earlier response, got ${JSON.stringify(cursor.slice(0, 60))}`;
  return inputError("query", { pointer: "/entries_cursor", detail });
}

/** Collects the entries of one slice of a list, as the list is read. */
export class SliceBuilder {
  readonly #start: number;
  readonly #listed: Entry[] = [];
  #bytes = 0;
  #count = 0;

  /** @param start Entries of the list before the slice. */
  constructor(start: number) {
    this.#start = start;
  }

  /** Entries of the list so far. */
  get count(): number {
    return this.#count;
  }

  /** Takes the next entry of the list; `make` is called only if it is in the slice. */
  add(make: () => Entry): void {
    this.#count += 1;
    if (this.#count <= this.#start || this.#listed.length === maxEntries || this.#bytes > maxEntriesBytes) return;
    const { entry, size } = fit(make());
    this.#listed.push(entry);
    this.#bytes += size;
  }

  /** Returns the slice of a list that has been read to its end. */
  build(): EntrySlice {
    const count = this.#count;
    return { start: this.#start, listed: this.#listed, hasMore: this.#start + this.#listed.length < count, count };
  }
}
