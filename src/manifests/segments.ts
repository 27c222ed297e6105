import type { ByteRange } from "../net/byte-range.ts";
import { invalidManifestError } from "./manifest.ts";
import { ServiceError } from "../model/errors.ts";
import { maxUrlLength, urlForMessage, shorten } from "../net/http-url.ts";

/**
 * The segments of one format in order, from an HLS media playlist (RFC 8216 §4.3.3) or DASH
 * Representations (ISO/IEC 23009-1 §5.3.9).
 */
export interface SegmentList {
  segments: Segment[];
  /** The list is complete: the manifest will not list more. */
  hasEnded: boolean;
  /** Nothing says that the end of an ended list is its end; absent: something does. */
  isEndUnstated?: true;
  /** How long to wait before reading a list again that has not ended, seconds. */
  refreshS: number;
  /** The URL of the last segment may be cut off: the line of a playlist that has not ended has no end. */
  isLastDoubtful?: boolean;
  /** The `dateMs` of all segments are exact: they alone show which ones are new when a list is read again. */
  isDated?: boolean;
  /** Durations of segments without media (EXT-X-GAP), which are not in `segments`, seconds; absent: there are none. */
  gapsS?: readonly number[];
  /** How many of these come after the last one of `segments`; absent: none. */
  endGaps?: number;
  /** How many segments are left out because they begin after the end that an MPD states; absent: none. */
  beyondEnd?: number;
  /** Where its media are another version of it; absent: nowhere. */
  replaced?: readonly ReplacedSpan[];
}

/** Media that are another version; times from the start of the first Period. */
export interface ReplacedSpan extends TimeSpan {
  /** Where they are, and which version: a text for people. */
  what: string;
}

export interface Segment {
  url: string;
  /** `null`: the whole resource. */
  range: ByteRange | null;
  /** Needed to decode it (EXT-X-MAP, Initialization); `null`: none. */
  init: InitSection | null;
  key: SegmentKey | null;
  /** As listed, but no more than its Period presents (DASH), seconds; 0: unknown. */
  durationS: number;
  /** Increases through the list (EXT-X-MEDIA-SEQUENCE, or the index in the presentation). */
  sequence: number;
  /** Media times are continuous between segments with the same number. */
  timeline: number;
  /**
   * Added to media times to get presentation times, seconds (DASH: start of the Period −
   * presentationTimeOffset). `null`: a timeline begins at the end of the one before.
   */
  offsetS: number | null;
  /** Date at which it starts (EXT-X-PROGRAM-DATE-TIME, availabilityStartTime), milliseconds since 1970; absent: unknown. */
  dateMs?: number;
  /** Date of presentation time 0 (availabilityStartTime), milliseconds since 1970; absent: unknown. */
  originMs?: number;
  /** How long it may be missing although it is listed, seconds; default: unknown. */
  lateS?: number;
  /** When what it has may be presented; default: always. */
  span?: TimeSpan;
  /** How much later than `span` says what it has may end, and is presented, seconds; default: nothing is. */
  endSlackS?: number;
  /**
   * It is listed only because of the duration of its Period. It may not exist if the media before it already last as
   * long as the Period.
   */
  computed?: ComputedEnd;
  /** It comes after the last one that the manifest lists: it may have the end of its Period, or not exist. */
  isOptional?: boolean;
}

/** Presentation times, seconds. */
export interface TimeSpan {
  startS: number;
  endS: number;
}

/** Where the media end if a computed segment does not exist. */
export interface ComputedEnd {
  /** End of its Period in the presentation, seconds. */
  periodEndS: number;
  /** How long a segment is that is not the last one, seconds. */
  segmentS: number;
}

export type InitSection = Pick<Segment, "url" | "range" | "key">;

/** AES, by default with 128 bits in CBC mode: over the whole segment, with PKCS #7 padding (RFC 8216 §5.2), or within its samples. */
export interface SegmentKey {
  /** http(s), or `data:`, which contains the key. */
  url: string;
  /** 16 bytes, hexadecimal. */
  iv: string;
  /** Only samples are encrypted (SAMPLE-AES); absent: the whole segment is. */
  isOfSamples?: true;
  /** Of whole segments, if it is another one; CTR has no padding. */
  cipher?: "aes-256-cbc" | "aes-256-ctr";
}

/** Limit of the segments of one list. */
const maxSegments = 200_000;

/** Limit of all URLs of one list together, characters: a short reference may resolve to a long URL. */
const maxUrlsLength = 64 * 1024 * 1024;

/** Collects the segments of one list within its limits. */
export function createSegmentCollector(manifest: URL) {
  const segments: Segment[] = [];
  let remaining = maxUrlsLength;
  return {
    segments,
    /** @throws ServiceError `upstream_invalid` over 200,000 segments or 64 Mi characters of URLs. */
    add(segment: Segment): void {
      checkSegmentCount(segments.length + 1, manifest);
      remaining -= segment.url.length;
      if (remaining < 0) {
        throw invalidManifestError(
          manifest,
          `the URLs of its segments must have at most ${maxUrlsLength} characters together`,
        );
      }
      segments.push(segment);
    },
  };
}

/**
 * Checks a number of segments before they are created.
 *
 * @throws ServiceError `upstream_invalid` for more than 200,000.
 */
export function checkSegmentCount(count: number, manifest: URL): void {
  if (count <= maxSegments) return;
  throw invalidManifestError(manifest, `it lists ${count} segments, the limit is ${maxSegments} segments`);
}

/**
 * Resolves a URL `reference` of the manifest fetched from `manifest` (RFC 3986 §5). Throws for every unusable
 * URL: leaving out a segment, unlike a format, would splice its neighbours.
 *
 * @throws ServiceError `address_blocked` for a scheme other than http and https; `upstream_invalid` for an
 * invalid URL, one with a user name or password, or one of more than 8,192 characters.
 */
export function resolveSegmentUrl(reference: string, base: URL, manifest: URL): URL {
  if (reference.length > maxUrlLength) throw tooLongError(manifest, reference.length);
  const url = URL.parse(reference, base);
  if (url === null) throw invalidManifestError(manifest, "the URL of a segment must be valid");
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    const scheme = shorten(url.protocol, 40);
    throw new ServiceError(
      "address_blocked",
      `the manifest at ${urlForMessage(manifest)} has a URL with the scheme ${scheme}; only http: and https: are fetched`,
    );
  }
  if (url.username !== "" || url.password !== "") {
    throw invalidManifestError(manifest, "a URL must not contain a user name or password");
  }
  if (url.href.length > maxUrlLength) throw tooLongError(manifest, url.href.length);
  return url;
}

function tooLongError(manifest: URL, length: number) {
  return invalidManifestError(manifest, `a URL has ${length} characters, the limit is ${maxUrlLength}`);
}

const keyLengths: ReadonlySet<number> = new Set([16, 32]);
/** 32 bytes need at most 96 characters, and a media type. */
const maxDataLength = 1024;

/**
 * Returns the AES key that a `data:` URL (RFC 2397) contains; `null` for any other URL, one of over
 * 1,024 characters, and content of other than 16 or 32 bytes.
 */
export function readDataKey(url: string): Buffer | null {
  if (url.length > maxDataLength) return null;
  const [, encoding, data] = /^data:[^,]*?(;\s*base64\s*)?,(.*)$/is.exec(url) ?? [];
  if (data === undefined) return null;
  const key = Buffer.from(decodePercents(data), encoding === undefined ? "latin1" : "base64");
  return keyLengths.has(key.length) ? key : null;
}

function decodePercents(text: string): string {
  return text.replaceAll(/%([\da-f]{2})/gi, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));
}
