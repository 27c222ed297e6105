import { roundSeconds } from "../attributes.ts";
import { createLicenceCheck } from "./key.ts";
import { type PlaylistLine, readAttributes, readMediaLines } from "./lines.ts";
import type { Manifest } from "../manifest.ts";

/**
 * Reads a media playlist as one format with the playlist's own URL. With EXT-X-ENDLIST or as VOD (which
 * must not change, RFC 8216 §4.3.3.5) it has ended and has a duration; else it is live, also as EVENT. A
 * playlist without media tags has no format. `filesize_approx` is known if the size of each segment is.
 */
export function readMediaPlaylist(text: string, url: URL): Manifest {
  let seconds = 0;
  /** By the last EXTINF before its URI, as players read it. */
  let segmentSeconds = 0;
  /** Of partial segments after the last segment. */
  let partSeconds = 0;
  let isMedia = false;
  let hasEnded = false;
  let has_drm = false;
  const keys = createLicenceCheck();
  const sizes = createSizeReader();
  for (const line of readMediaLines(text)) {
    const { tag, value } = line;
    sizes.read(line);
    if (tag === "#EXTINF") {
      isMedia = true;
      segmentSeconds = positive(value);
    } else if (tag === "#EXT-X-PART") {
      partSeconds += positive(readAttributes(value).get("DURATION"));
    } else if (tag === "#EXT-X-TARGETDURATION") isMedia = true;
    else if (tag === "#EXT-X-ENDLIST") hasEnded = true;
    else if (tag === "#EXT-X-PLAYLIST-TYPE") hasEnded ||= value.trim().toUpperCase() === "VOD";
    else if (tag === "#EXT-X-KEY") keys.set(readAttributes(value));
    else if (tag === "#EXT-X-FAXS-CM") keys.setLicensed();
    else if (tag === null) {
      seconds += segmentSeconds;
      segmentSeconds = 0;
      partSeconds = 0;
      has_drm ||= keys.format !== undefined;
    }
  }
  const filesize_approx = hasEnded ? sizes.size() : null;
  const own = { format_id: "hls", url: url.href, manifest_url: url.href, has_drm };
  return {
    formats: isMedia ? [{ ...unknownHlsFormat, ...own, filesize_approx }] : [],
    subtitles: {},
    duration: hasEnded ? roundSeconds(seconds + partSeconds) : null,
    live_status: isMedia ? (hasEnded ? "not_live" : "is_live") : null,
  };
}

/** What a playlist need not have. */
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

/**
 * Adds up the sizes of segments by EXT-X-BYTERANGE, which is exact, and EXT-X-BITRATE, kbit/s within 10 % of the
 * segments that follow it (RFC 8216bis §4.4.4.2, §4.4.4.8). Init sections are not counted.
 */
function createSizeReader() {
  let bytes: number | null = 0;
  let kilobits = 0;
  let durationS = 0;
  let range: number | null = null;

  function addSegment(): void {
    const size = range ?? kilobits * durationS * 125;
    bytes = bytes === null || size === 0 ? null : bytes + size;
    durationS = 0;
    range = null;
  }

  return {
    read({ tag, value }: PlaylistLine): void {
      if (tag === null) addSegment();
      else if (tag === "#EXTINF") durationS = positive(value);
      else if (tag === "#EXT-X-BITRATE") kilobits = positive(value);
      else if (tag === "#EXT-X-BYTERANGE") range = positive(value);
    },
    /** Returns bytes; `null` if the size of one segment is unknown. */
    size(): number | null {
      const rounded = Math.round(bytes ?? 0);
      return Number.isSafeInteger(rounded) && rounded > 0 ? rounded : null;
    },
  };
}

/** Returns 0 for what is no number above 0. */
function positive(value: string | undefined): number {
  const number = Number.parseFloat(value ?? "");
  return number > 0 && number <= Number.MAX_SAFE_INTEGER ? number : 0;
}
