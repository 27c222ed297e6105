import { roundSeconds } from "../attributes.ts";
import { createLicenceCheck } from "./key.ts";
import type { Steps } from "../../parsers/steps.ts";
import { readLines, splitLines } from "./lines.ts";
import { createSizeReader } from "./size.ts";
import type { Manifest } from "../manifest.ts";

/**
 * Reads a media playlist as one format with the playlist's own URL. With EXT-X-ENDLIST or as VOD (which
 * must not change, RFC 8216 §4.3.3.5) it has ended and has a duration; else it is live, also as EVENT. A
 * playlist without media tags has no format. `filesize_approx` is known if it states the size of each segment.
 */
export function* readMediaPlaylist(text: string, url: URL): Steps<Manifest> {
  let seconds = 0;
  let isMedia = false;
  let hasEnded = false;
  let has_drm = false;
  const keys = createLicenceCheck();
  const sizes = createSizeReader();
  for (const lines of splitLines(text)) {
    for (const line of readLines(lines)) {
      const { tag, value } = line;
      sizes.read(line);
      if (tag === "#EXTINF") {
        isMedia = true;
        const durationS = Number.parseFloat(value);
        if (durationS > 0) seconds += durationS;
      } else if (tag === "#EXT-X-TARGETDURATION") isMedia = true;
      else if (tag === "#EXT-X-ENDLIST") hasEnded = true;
      else if (tag === "#EXT-X-PLAYLIST-TYPE") hasEnded ||= value.trim().toUpperCase() === "VOD";
      else if (tag === "#EXT-X-KEY") keys.set(value);
      else if (tag === "#EXT-X-FAXS-CM") keys.setLicensed();
      else if (tag === null) has_drm ||= keys.isLicensed;
    }
    yield;
  }
  const filesize_approx = hasEnded ? sizes.size() : null;
  const own = { format_id: "hls", url: url.href, manifest_url: url.href, has_drm };
  return {
    formats: isMedia ? [{ ...unknownHlsFormat, ...own, filesize_approx }] : [],
    subtitles: {},
    duration: hasEnded ? roundSeconds(seconds) : null,
    live_status: isMedia ? (hasEnded ? "not_live" : "is_live") : null,
  };
}

/** What a playlist may leave unstated. */
export const unknownHlsFormat = {
  protocol: "m3u8",
  ext: "mp4",
  mime_type: null,
  width: null,
  height: null,
  fps: null,
  vcodec: null,
  acodec: null,
  tbr: null,
  filesize: null,
  filesize_approx: null,
  language: null,
} as const;
