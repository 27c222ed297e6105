import { createPlaylistKeys } from "./hls-key.ts";
import { type PlaylistLine, createVariables, readAttributes, readLines } from "./hls-lines.ts";
import { checkPlaylist, isMultivariant } from "./hls-playlist.ts";
import { createByteRanges, readByteRange } from "./hls-range.ts";
import { invalidManifestError } from "./manifest.ts";
import { resolveSegmentUrl } from "./segment-url.ts";
import { createSegmentCollector } from "./segment-collector.ts";
import type { InitSection, SegmentList } from "./segments.ts";

/**
 * Reads the HLS media playlist (RFC 8216, 8216bis) that was found at `url`.
 *
 * Segments marked EXT-X-GAP are left out, their sequence numbers stay free; partial segments are
 * ignored. `timeline` is the discontinuity sequence number. Segments of one EXT-X-MAP share one
 * `init`. Linear in the length of `text`.
 *
 * @throws ServiceError `upstream_invalid` for what is no media playlist, a multivariant one, a
 * delta update, a variable that is not defined in it, and a complete list without a segment; also
 * over 4 Mi characters or 200,000 segments. `drm_protected` for keys that only a licence server
 * gives and methods other than AES-128. `address_blocked` for an address that is not http(s).
 */
export function readHlsSegments(text: string, url: URL): SegmentList {
  checkPlaylist(text, url);
  if (isMultivariant(text)) {
    throw invalidManifestError(url, "it must be a media playlist, but is a multivariant one");
  }
  const reader = createPlaylistReader(url);
  for (const line of readLines(text)) reader.take(line);
  return reader.finish();
}

const minRefreshS = 1;
const maxRefreshS = 60;

/** What the lines before a URI say about it alone. */
interface Pending {
  durationS: number;
  byteRange: string | null;
  isGap: boolean;
}

const nothing: Pending = { durationS: 0, byteRange: null, isGap: false };

function createPlaylistReader(url: URL) {
  const { segments, add } = createSegmentCollector(url);
  const variables = createVariables(url);
  const keys = createPlaylistKeys(url);
  const ranges = createByteRanges(url);
  let pending = { ...nothing };
  let init: InitSection | null = null;
  let hasBegun = false;
  let sequence = 0;
  let timeline = 0;
  let longestS = 0;
  let targetS: number | null = null;
  let hasEnded = false;

  /** `text` with its variables put in; one that is not there would lead elsewhere. */
  function substitute(text: string): string {
    const whole = variables.substitute(text);
    const [missing] = /\{\$[\w-]{1,60}/.exec(whole) ?? [];
    if (missing === undefined) return whole;
    throw invalidManifestError(
      url,
      `the variable ${missing}} must be defined in it (EXT-X-DEFINE)`,
    );
  }

  function takeSegment(uri: string): void {
    const address = resolveSegmentUrl(substitute(uri), url, url).href;
    const { durationS, byteRange, isGap } = pending;
    const range = ranges.next(byteRange, address);
    if (!isGap) {
      const key = keys.current(sequence);
      add({ url: address, range, init, key, durationS, sequence, timeline, offsetS: null });
    }
    pending = { ...nothing };
    hasBegun = true;
    sequence += 1;
  }

  const takeTag: Readonly<Record<string, (value: string) => void>> = {
    "#EXTINF": (value) => {
      pending.durationS = readSeconds(value);
      longestS = Math.max(longestS, pending.durationS);
    },
    "#EXT-X-BYTERANGE": (value) => (pending.byteRange = value),
    "#EXT-X-GAP": () => (pending.isGap = true),
    "#EXT-X-MAP": (value) => (init = readMap(substitute(value), url, keys.current(null))),
    "#EXT-X-KEY": (value) => keys.set(substitute(value)),
    "#EXT-X-FAXS-CM": () => keys.setLicensed(),
    "#EXT-X-DISCONTINUITY": () => (timeline += 1),
    "#EXT-X-DISCONTINUITY-SEQUENCE": (value) => {
      if (!hasBegun) timeline = parseDecimalInteger("EXT-X-DISCONTINUITY-SEQUENCE", value, url);
    },
    "#EXT-X-MEDIA-SEQUENCE": (value) => {
      if (!hasBegun) sequence = parseDecimalInteger("EXT-X-MEDIA-SEQUENCE", value, url);
    },
    "#EXT-X-TARGETDURATION": (value) => (targetS = readSeconds(value)),
    "#EXT-X-DEFINE": (value) => variables.define(value),
    "#EXT-X-ENDLIST": () => (hasEnded = true),
    "#EXT-X-PLAYLIST-TYPE": (value) => (hasEnded ||= value.trim().toUpperCase() === "VOD"),
    "#EXT-X-SKIP": () => {
      throw invalidManifestError(url, "it must be whole, but is a delta update (EXT-X-SKIP)");
    },
  };

  return {
    take({ tag, value }: PlaylistLine): void {
      if (tag === null) takeSegment(value);
      else if (Object.hasOwn(takeTag, tag)) takeTag[tag]?.(value);
    },
    finish(): SegmentList {
      if (segments.length === 0 && (hasEnded || targetS === null)) {
        throw invalidManifestError(url, "an HLS media playlist must list segments");
      }
      const refreshS = Math.min(Math.max(targetS ?? longestS, minRefreshS), maxRefreshS);
      return { segments, hasEnded, refreshS };
    },
  };
}

/** EXT-X-MAP (RFC 8216 §4.3.2.5); a range without offset begins at 0. */
function readMap(list: string, url: URL, key: InitSection["key"]): InitSection {
  const attributes = readAttributes(list);
  const uri = attributes.get("URI") ?? "";
  if (uri === "") throw invalidManifestError(url, "EXT-X-MAP must have a URI (RFC 8216 §4.3.2.5)");
  const stated = attributes.get("BYTERANGE");
  const range = stated === undefined ? null : readByteRange(stated, url);
  return {
    url: resolveSegmentUrl(uri, url, url).href,
    range: range && { offset: range.offset ?? 0, length: range.length },
    key,
  };
}

const maxDurationS = 1_000_000;

/** 0 for what is no duration. */
function readSeconds(value: string): number {
  const seconds = Number.parseFloat(value);
  return seconds > 0 && seconds <= maxDurationS ? seconds : 0;
}

/** A decimal integer (RFC 8216 §4.2), small enough to be counted on. */
function parseDecimalInteger(tag: string, value: string, url: URL): number {
  const whole = /^\s*\d{1,16}\s*$/.test(value) ? Number(value) : Number.NaN;
  if (whole <= maxSequence) return whole;
  const got = JSON.stringify(value.slice(0, 60));
  throw invalidManifestError(url, `${tag} must be a whole number up to ${maxSequence}, got ${got}`);
}

const maxSequence = 9_000_000_000_000_000;
