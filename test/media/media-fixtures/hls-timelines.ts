import type { MediaFixture } from "../media-fixtures.ts";
import { layEncrypted, layFiles } from "../hls.ts";
import { readRendition } from "../rendition.ts";
import { merge } from "../resources.ts";
import { mp4, single, ts } from "./hls.ts";

/** HLS whose times begin again on the way (EXT-X-DISCONTINUITY). */
export function hlsTimelineFixtures(): MediaFixture[] {
  const stream = layFiles("ts", readRendition("high.m2t"), "ts");
  const parts = layFiles("fmp4", readRendition("muxed.m4s"), "m4s");
  const locked = layEncrypted("crypt", readRendition("high.m2t"), {
    ext: "ts",
    hasIv: true,
    rotation: 3,
  });
  const clear = ["#EXT-X-DISCONTINUITY", "#EXT-X-KEY:METHOD=NONE"];
  const again = ["#EXT-X-DISCONTINUITY"];
  return [
    single(
      "HLS in MPEG-TS whose times begin again",
      { ...stream, lines: [...stream.lines, ...again, ...stream.lines] },
      ts("high.m2t"),
      "mp4",
      2,
    ),
    single(
      "HLS in fMP4 whose times begin again",
      { ...parts, lines: [...parts.lines, ...again, ...parts.lines] },
      mp4("muxed.m4s"),
      "mp4",
      2,
    ),
    single(
      "HLS with an encrypted and a clear part",
      { resources: merge(locked.resources, stream.resources), lines: [...locked.lines, ...clear, ...stream.lines] },
      ts("high.m2t"),
      "mp4",
      2,
    ),
  ];
}
