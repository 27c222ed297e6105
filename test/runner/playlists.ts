import { pageInfo } from "../page-info.ts";
import type { Entry } from "../../src/model/entry.ts";
import { PageInfo } from "../../src/model/page-info.ts";
import type { Resolver } from "../../src/resolvers/resolver.ts";
import { pageOf } from "./resolver.ts";

export interface Playlist {
  resolver: Resolver;
  /** The cursors that were asked for, `""` for the first slice. */
  cursors: string[];
}

export const playlistUrl = "https://videos.example.com/list";

export function entryUrl(n: number): string {
  return `https://videos.example.com/watch/${n}`;
}

export function entriesUpTo(count: number): Entry[] {
  return Array.from({ length: count }, (_, n) => ({ url: entryUrl(n + 1), title: `Part ${n + 1}`, duration: null }));
}

/**
 * Creates a resolver for a playlist, in slices of `sliceSize`; each other page has one format.
 *
 * @param entries Read with each slice, so that the playlist may change.
 * @param beforeSlice Called before a slice is returned, with its cursor.
 */
export function createPlaylist(
  entries: readonly Entry[],
  { sliceSize = 2, beforeSlice = async (_cursor: string) => {} } = {},
): Playlist {
  const cursors: string[] = [];
  const resolver: Resolver = {
    name: "test",
    output: PageInfo,
    async resolve(url, { signal, entriesCursor = "" }) {
      signal.throwIfAborted();
      if (url.href !== playlistUrl) return pageOf(url);
      cursors.push(entriesCursor);
      await beforeSlice(entriesCursor);
      signal.throwIfAborted();
      const start = Number(entriesCursor);
      const end = start + sliceSize;
      const next = end < entries.length && { entries_next: `${end}` };
      const list = { entries: entries.slice(start, end), entries_count: entries.length, ...next };
      return pageInfo({ url: url.href, webpage_url: url.href, title: "A list", ...list });
    },
    close: async () => {},
  };
  return { resolver, cursors };
}
