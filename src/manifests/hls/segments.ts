import { createPlaylistKeys } from "./key.ts";
import {
  type PlaylistLine,
  checkPlaylist,
  createVariables,
  isMultivariant,
  readAttributes,
  readLines,
} from "./lines.ts";
import { createByteRangeReader, parseByteRange } from "./range.ts";
import { invalidManifestError } from "../manifest.ts";
import { resolveSegmentUrl } from "../segment-url.ts";
import { createSegmentCollector, type InitSection, type SegmentList } from "../segments.ts";

/**
 * Lists the segments of an HLS media playlist (RFC 8216, 8216bis) fetched from `url`, in time linear in its
 * length.
 *
 * Leaves out segments marked EXT-X-GAP, whose sequence numbers stay free and whose durations are in `gapsS`, and partial
 * segments. `timeline` is the discontinuity sequence number. Segments of one EXT-X-MAP share one `init`.
 *
 * @throws ServiceError `upstream_invalid` for any other text, a multivariant playlist, a delta update, an
 * undefined variable, an ended list without segments, more than 4 Mi characters or 200,000 segments;
 * `drm_protected` for keys from a licence server and methods other than AES-128; `address_blocked` for a
 * URL that is not http(s).
 */
export function readHlsSegments(text: string, url: URL): SegmentList {
  checkPlaylist(text, url);
  if (isMultivariant(text)) {
    throw invalidManifestError(url, "it must be a media playlist, but is a multivariant one");
  }
  const reader = createPlaylistReader(url);
  for (const line of readLines(text)) reader.read(line);
  return reader.finish();
}

const minRefreshS = 1;
const maxRefreshS = 60;

/** What the lines before a URI state about this URI only. */
interface Pending {
  durationS: number;
  byteRange: string | null;
  isGap: boolean;
  dateMs: number | null;
}

const nonePending: Pending = { durationS: 0, byteRange: null, isGap: false, dateMs: null };

function createPlaylistReader(url: URL) {
  const { segments, add } = createSegmentCollector(url);
  const variables = createVariables(url);
  const keys = createPlaylistKeys(url);
  const readRange = createByteRangeReader(url);
  const gapsS: number[] = [];
  let pending = { ...nonePending };
  let init: InitSection | null = null;
  let hasBegun = false;
  let sequence = 0;
  let timeline = 0;
  let longestS = 0;
  let targetS: number | null = null;
  let hasEnded = false;
  /** When the last segment ended, and its timeline; `null`: not known. */
  let dated: { endMs: number; timeline: number } | null = null;

  /** Throws for an undefined variable: the URL would be a wrong one. */
  function substitute(text: string): string {
    const result = variables.substitute(text);
    const [missing] = /\{\$[\w-]{1,60}/.exec(result) ?? [];
    if (missing === undefined) return result;
    throw invalidManifestError(
      url,
      `the variable ${missing}} must be defined in it (EXT-X-DEFINE)`,
    );
  }

  function readSegment(uri: string): void {
    const { href } = resolveSegmentUrl(substitute(uri), url, url);
    const { durationS, byteRange, isGap } = pending;
    const range = readRange(byteRange, href);
    const dateMs = pending.dateMs ?? (dated?.timeline === timeline ? dated.endMs : null);
    const isDated = dateMs !== null && durationS > 0;
    dated = isDated ? { endMs: dateMs + durationS * 1000, timeline } : null;
    if (isGap) gapsS.push(durationS);
    else {
      const key = keys.current(sequence);
      const place = { sequence, timeline, offsetS: null, ...(isDated && { dateMs }) };
      add({ url: href, range, init, key, durationS, ...place });
    }
    pending = { ...nonePending };
    hasBegun = true;
    sequence += 1;
  }

  const tagReaders: Readonly<Record<string, (value: string) => void>> = {
    "#EXTINF": (value) => {
      pending.durationS = parseSeconds(value);
      longestS = Math.max(longestS, pending.durationS);
    },
    "#EXT-X-BYTERANGE": (value) => (pending.byteRange = value),
    "#EXT-X-GAP": () => (pending.isGap = true),
    "#EXT-X-PROGRAM-DATE-TIME": (value) => (pending.dateMs = parseDate(value)),
    "#EXT-X-MAP": (value) => (init = parseMap(substitute(value), url, keys.current(null))),
    "#EXT-X-KEY": (value) => keys.set(substitute(value)),
    "#EXT-X-FAXS-CM": () => keys.setLicensed(),
    "#EXT-X-DISCONTINUITY": () => (timeline += 1),
    "#EXT-X-DISCONTINUITY-SEQUENCE": (value) => {
      if (!hasBegun) timeline = parseDecimalInteger("EXT-X-DISCONTINUITY-SEQUENCE", value, url);
    },
    "#EXT-X-MEDIA-SEQUENCE": (value) => {
      if (!hasBegun) sequence = parseDecimalInteger("EXT-X-MEDIA-SEQUENCE", value, url);
    },
    "#EXT-X-TARGETDURATION": (value) => (targetS = parseSeconds(value)),
    "#EXT-X-DEFINE": (value) => variables.define(value),
    "#EXT-X-ENDLIST": () => (hasEnded = true),
    "#EXT-X-PLAYLIST-TYPE": (value) => (hasEnded ||= value.trim().toUpperCase() === "VOD"),
    "#EXT-X-SKIP": () => {
      throw invalidManifestError(url, "it must be complete, but is a delta update (EXT-X-SKIP)");
    },
  };

  return {
    read({ tag, value }: PlaylistLine): void {
      if (tag === null) readSegment(value);
      else if (Object.hasOwn(tagReaders, tag)) tagReaders[tag]?.(value);
    },
    finish(): SegmentList {
      if (segments.length === 0 && (hasEnded || targetS === null)) {
        throw invalidManifestError(url, "an HLS media playlist must list segments");
      }
      const refreshS = Math.min(Math.max(targetS ?? longestS, minRefreshS), maxRefreshS);
      return { segments, hasEnded, refreshS, ...(gapsS.length > 0 && { gapsS }) };
    },
  };
}

/** Parses an EXT-X-MAP (RFC 8216 §4.3.2.5); a range without offset begins at 0. */
function parseMap(list: string, url: URL, key: InitSection["key"]): InitSection {
  const attributes = readAttributes(list);
  const uri = attributes.get("URI") ?? "";
  if (uri === "") throw invalidManifestError(url, "EXT-X-MAP must have a URI (RFC 8216 §4.3.2.5)");
  const stated = attributes.get("BYTERANGE");
  const range = stated === undefined ? null : parseByteRange(stated, url);
  return {
    url: resolveSegmentUrl(uri, url, url).href,
    range: range && { offset: range.offset ?? 0, length: range.length },
    key,
  };
}

const maxDurationS = 1_000_000;

/** Returns 0 for an invalid duration. */
function parseSeconds(value: string): number {
  const seconds = Number.parseFloat(value);
  return seconds > 0 && seconds <= maxDurationS ? seconds : 0;
}

/** Returns milliseconds since 1970; `null` for an invalid date. */
function parseDate(value: string): number | null {
  const ms = Date.parse(value.trim());
  return Number.isNaN(ms) ? null : ms;
}

/** Parses a decimal integer (RFC 8216 §4.2), small enough to be incremented exactly. */
function parseDecimalInteger(tag: string, value: string, url: URL): number {
  const integer = /^\s*\d{1,16}\s*$/.test(value) ? Number(value) : Number.NaN;
  if (integer <= maxSequence) return integer;
  throw invalidManifestError(url, `${tag} must be a whole number up to ${maxSequence}`, value);
}

const maxSequence = 9_000_000_000_000_000;
