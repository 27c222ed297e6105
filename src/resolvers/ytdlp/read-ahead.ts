import { SharedCache } from "../../async/shared-cache.ts";
import { maxEntries } from "../../model/entry.ts";
import { asObject, asList } from "../../parsers/json-values.ts";
import type { ExtractOptions, YtDlp } from "./yt-dlp.ts";

/** Most entries that are read ahead. */
const maxAhead = 1_000;

/** Size of all that is kept, characters of JSON, shared by owners, and how long it is kept. */
const maxSize = 16 * 1024 * 1024;
const ttlMs = 300_000;

/** A part of a playlist, as yt-dlp's info dict. */
interface Part {
  start: number;
  info: object;
  entries: readonly unknown[];
  hasMore: boolean;
}

/**
 * Returns an `extract` that spares yt-dlp to read a list from its start for each slice of it, as it does with some. Of such a list it
 * reads further entries, as many as come before those that are asked for, and keeps them for the owner who asks for the next ones, until
 * that owner reads the list again from its start.
 */
export function readAhead({ extract }: Pick<YtDlp, "extract">): YtDlp["extract"] {
  const parts = new SharedCache<Part>({ maxSize, ttlMs });

  return async (url: URL, options: ExtractOptions) => {
    const { owner = "", entriesStart: start = 0 } = options;
    const key = url.href;
    if (start === 0) {
      parts.delete(owner, key);
      return extract(url, options);
    }
    const kept = parts.get(owner, key);
    if (kept !== undefined && hasNext(kept, start)) {
      return { ...kept.info, entries: kept.entries.slice(start - kept.start) };
    }
    const info = await extract(url, { ...options, entriesAhead: Math.min(start, maxAhead) });
    const { entries, _has_more: hasMore } = asObject(info);
    const part = { start, info: asObject(info), entries: asList(entries), hasMore: hasMore === true };
    if (part.entries.length > maxEntries) parts.set(owner, key, part, JSON.stringify(info).length);
    return info;
  };
}

/** Whether all that `extract` would return from there on, at least, is there. */
function hasNext(part: Part, start: number): boolean {
  const left = part.start + part.entries.length - start;
  return start > part.start && left > 0 && (left >= maxEntries || !part.hasMore);
}
