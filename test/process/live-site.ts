import { onTestFinished } from "vitest";
import { layFiles, mediaPlaylist } from "../media/hls.ts";
import { readRendition } from "../media/rendition.ts";
import { hls, merge } from "../media/resources.ts";
import { type Site, startSite } from "../media/site.ts";

/** A site with a live stream that never ends; closed after the test. */
export interface LiveSite {
  site: Site;
  /** Address of the playlist. */
  url: string;
  /** Lists the segments (of a second, 25 frames) from `from` up to `until`, of six. */
  list(from: number, until: number): void;
  /** Bytes of the first `count` segments. */
  bytes(count: number): number;
}

export async function openLiveSite(): Promise<LiveSite> {
  const rendition = readRendition("high.m2t");
  const { lines, resources } = layFiles("ts", rendition, "ts");
  const site = await startSite(resources);
  onTestFinished(() => site.close());
  return {
    site,
    url: site.url("index.m3u8"),
    bytes: (count) => rendition.pieces.slice(0, count).reduce((sum, { data }) => sum + data.length, 0),
    list(from, until) {
      const shown = [`#EXT-X-MEDIA-SEQUENCE:${from}`, ...lines.slice(2 * from, 2 * until)];
      const playlist = new Map([["index.m3u8", hls(mediaPlaylist(shown, false))]]);
      site.resources = merge(resources, playlist);
    },
  };
}
