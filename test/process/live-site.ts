import type { Socket } from "node:net";
import { layFiles, mediaPlaylist } from "../media/hls.ts";
import { readRendition } from "../media/rendition.ts";
import { hls, merge } from "../media/resources.ts";
import type { Site } from "../media/site.ts";
import { startTestSite, type WhenOver } from "../media/test-site.ts";

/** A site with a live stream that never ends. */
interface LiveSite {
  site: Site;
  /** Address of the playlist. */
  url: string;
  /** Lists the segments (of a second, 25 frames) from `from` up to `until`, of six. */
  list(from: number, until: number): void;
  /** Bytes of the first `count` segments. */
  bytes(count: number): number;
}

/** How often a connection gets a list at once, and how long it waits for more in it from then on: less than a reader does. */
const [maxAtOnce, longestWaitMs] = [3, 8_000];

/**
 * A recording ends itself after ten reads of the playlist without a new segment. So that a busy machine does not reach
 * that, who has read a list some times gets it again only with more in it, or late.
 */
export async function openLiveSite(whenOver?: WhenOver): Promise<LiveSite> {
  const rendition = readRendition("high.m2t");
  const { lines, resources } = layFiles("ts", rendition, "ts");
  const site = await startTestSite(resources, {}, whenOver);
  let listed = Promise.withResolvers<void>();
  let reads = new WeakMap<Socket, number>();
  site.answer("index.m3u8", async (_response, serve, { socket }) => {
    const earlier = reads.get(socket) ?? 0;
    reads.set(socket, earlier + 1);
    if (earlier >= maxAtOnce) await settledWithin(listed.promise, longestWaitMs);
    await serve();
  });
  return {
    site,
    url: site.url("index.m3u8"),
    bytes: (count) => rendition.pieces.slice(0, count).reduce((sum, { data }) => sum + data.length, 0),
    list(from, until) {
      const shown = [`#EXT-X-MEDIA-SEQUENCE:${from}`, ...lines.slice(2 * from, 2 * until)];
      const playlist = new Map([["index.m3u8", hls(mediaPlaylist(shown, false))]]);
      site.resources = merge(resources, playlist);
      listed.resolve();
      listed = Promise.withResolvers();
      reads = new WeakMap();
    },
  };
}

function settledWithin(promise: Promise<void>, ms: number): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, ms);
  return Promise.race([promise, late.promise]).finally(() => clearTimeout(timer));
}
