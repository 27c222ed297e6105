import { invalidManifestError } from "../manifest.ts";
import {
  createSegmentCollector,
  type InitSection,
  type Segment,
  type SegmentList,
  resolveSegmentUrl,
} from "../segments.ts";
import { isYes } from "../tracks.ts";
import { createByteRangeReader, parseByteRange } from "./byte-ranges.ts";
import { createPlaylistKeys } from "./key.ts";
import {
  checkPlaylist,
  createVariables,
  isMultivariant,
  type PlaylistLine,
  readAttributes,
  readMediaLines,
  type Variables,
} from "./lines.ts";

/**
 * Lists the segments of an HLS media playlist (RFC 8216, 8216bis) fetched from `url`, in time linear in its length.
 *
 * Leaves out segments marked EXT-X-GAP, whose sequence numbers stay free and whose durations are in `gapsS`. Partial
 * segments are listed only at the end of a list that has ended without the segment that they are of. `timeline` is the
 * discontinuity sequence number. Segments of one EXT-X-MAP share one `init`.
 *
 * @param imported Variables of its multivariant playlist; default none.
 * @param isVariant A multivariant playlist lists it: then it may lack the tags that it must have.
 * @throws ServiceError `upstream_invalid` for any other text, a multivariant playlist, a delta update, an undefined
 * variable, an ended list without segments, more than 4 Mi characters or 200,000 segments; `drm_protected` for keys
 * from a licence server and methods other than AES-128, AES-256, AES-256-CTR and SAMPLE-AES; `address_blocked` for a URL that is not http(s).
 */
export function readHlsSegments(text: string, url: URL, imported?: Variables, isVariant = false): SegmentList {
  checkPlaylist(text, url, isVariant);
  if (isMultivariant(text)) throw invalidManifestError(url, "it must be a media playlist, but is a multivariant one");
  const playlist = new MediaPlaylist(url, imported);
  for (const line of readMediaLines(text)) playlist.read(line);
  return playlist.list(/\s$/.test(text.slice(-1)));
}

const minRefreshS = 1;
const maxRefreshS = 60;

/** What the lines before a URI say about this URI only. */
interface Pending {
  durationS: number;
  byteRange: string | null;
  isGap: boolean;
  dateMs: number | null;
}

/** Where media are in the playlist. */
type Place = Pick<Segment, "init" | "key" | "timeline">;

/** What a playlist must be that has a tag of another kind. */
const refusals: Readonly<Record<string, string>> = {
  "#EXT-X-I-FRAMES-ONLY": "it must list all frames, but has EXT-X-I-FRAMES-ONLY: it is for fast forward",
  "#EXT-X-IMAGES-ONLY": "it must list media, but has EXT-X-IMAGES-ONLY",
  "#EXT-X-SKIP": "it must be complete, but is a delta update (EXT-X-SKIP)",
};

const nonePending: Pending = { durationS: 0, byteRange: null, isGap: false, dateMs: null };

/** A media playlist while it is read line by line. */
class MediaPlaylist {
  readonly #url: URL;
  readonly #collector;
  readonly #variables;
  readonly #keys;
  readonly #readRange;
  readonly #gapsS: number[] = [];
  #endGaps = 0;
  #pending = { ...nonePending };
  /** Partial segments (EXT-X-PART) after the last segment: their attributes, date and place. */
  #parts: { list: string; dateMs: number | null; place: Place }[] = [];
  #init: InitSection | null = null;
  #hasBegun = false;
  #sequence = 0;
  #timeline = 0;
  #longestS = 0;
  #targetS: number | null = null;
  #hasEnded = false;
  #isVod = false;
  /** Its latest line is that of a segment. */
  #endsWithSegment = false;
  /** When the last segment ended, and its timeline; `null`: not known. */
  #dated: { endMs: number; timeline: number } | null = null;

  constructor(url: URL, imported?: Variables) {
    this.#url = url;
    this.#collector = createSegmentCollector(url);
    this.#variables = createVariables(url, imported);
    this.#keys = createPlaylistKeys(url);
    this.#readRange = createByteRangeReader(url);
  }

  read({ tag, value }: PlaylistLine): void {
    this.#endsWithSegment = tag === null;
    if (tag === null) this.#readSegment(value);
    else if (Object.hasOwn(refusals, tag)) throw invalidManifestError(this.#url, refusals[tag]!);
    else if (Object.hasOwn(this.#tagReaders, tag)) this.#tagReaders[tag]?.(value);
  }

  /** @param isLineWhole Its latest line has an end. */
  list(isLineWhole: boolean): SegmentList {
    const isCut = !isLineWhole || this.#pending.durationS > 0;
    const hasEnded = this.#hasEnded || (this.#isVod && !isCut);
    if (hasEnded) this.#addParts();
    const { segments } = this.#collector;
    const isLastDoubtful = !hasEnded && !isLineWhole && this.#endsWithSegment;
    const gaps = { gapsS: this.#gapsS, ...(this.#endGaps > 0 && { endGaps: this.#endGaps }) };
    if (segments.length === 0 && (hasEnded || this.#targetS === null)) {
      throw invalidManifestError(this.#url, "an HLS media playlist must list segments");
    }
    const wishedS = this.#targetS ?? this.#longestS;
    const refreshS = Math.min(Math.max(wishedS, minRefreshS), maxRefreshS);
    const isEndUnstated = hasEnded && !this.#hasEnded;
    const doubt = { ...(isLastDoubtful && { isLastDoubtful }), ...(isEndUnstated && { isEndUnstated }) };
    return { segments, hasEnded, refreshS, ...(gaps.gapsS.length > 0 && gaps), ...doubt };
  }

  readonly #tagReaders: Readonly<Record<string, (value: string) => void>> = {
    "#EXTINF": (value) => {
      this.#pending.durationS = parseSeconds(value);
      this.#longestS = Math.max(this.#longestS, this.#pending.durationS);
    },
    "#EXT-X-PART": (list) => {
      const dateMs = this.#parts.length === 0 ? this.#pending.dateMs : null;
      this.#parts.push({ list, dateMs, place: this.#place() });
    },
    "#EXT-X-BYTERANGE": (value) => (this.#pending.byteRange = value),
    "#EXT-X-GAP": () => (this.#pending.isGap = true),
    "#EXT-X-PROGRAM-DATE-TIME": (value) => (this.#pending.dateMs = parseDate(value)),
    "#EXT-X-MAP": (value) => {
      this.#init = parseMap(this.#substitute(value), this.#url, this.#keys.current(null));
    },
    "#EXT-X-KEY": (value) => this.#keys.set(this.#substitute(value)),
    "#EXT-X-FAXS-CM": () => this.#keys.setLicensed(),
    "#EXT-X-DISCONTINUITY": () => (this.#timeline += 1),
    "#EXT-X-DISCONTINUITY-SEQUENCE": (value) => {
      if (!this.#hasBegun) this.#timeline = parseDecimalInteger("EXT-X-DISCONTINUITY-SEQUENCE", value, this.#url);
    },
    "#EXT-X-MEDIA-SEQUENCE": (value) => {
      if (!this.#hasBegun) this.#sequence = parseDecimalInteger("EXT-X-MEDIA-SEQUENCE", value, this.#url);
    },
    "#EXT-X-TARGETDURATION": (value) => (this.#targetS = parseSeconds(value)),
    "#EXT-X-DEFINE": (value) => this.#variables.define(value),
    "#EXT-X-ENDLIST": () => (this.#hasEnded = true),
    "#EXT-X-PLAYLIST-TYPE": (value) => (this.#isVod ||= value.trim().toUpperCase() === "VOD"),
  };

  #readSegment(uri: string): void {
    this.#add(uri, this.#pending, this.#pending.isGap ? null : this.#place());
    this.#pending = { ...nonePending };
    this.#parts = [];
    this.#hasBegun = true;
  }

  #place(): Place {
    return { init: this.#init, key: this.#keys.current(this.#sequence), timeline: this.#timeline };
  }

  /** Adds the parts of a segment that will never be listed, each as a segment. */
  #addParts(): void {
    for (const { list, dateMs, place } of this.#parts) {
      const attributes = readAttributes(list);
      const uri = attributes.get("URI") ?? "";
      if (uri === "") throw invalidManifestError(this.#url, "EXT-X-PART must have a URI");
      const durationS = parseSeconds(attributes.get("DURATION") ?? "");
      const isGap = isYes(attributes.get("GAP"));
      const byteRange = attributes.get("BYTERANGE") ?? null;
      this.#add(uri, { durationS, byteRange, isGap, dateMs }, isGap ? null : place);
    }
    this.#parts = [];
  }

  /** @param place `null`: a gap. */
  #add(uri: string, { durationS, byteRange, dateMs: statedMs }: Pending, place: Place | null): void {
    const { href } = resolveSegmentUrl(this.#substitute(uri), this.#url, this.#url);
    // Of a live stream, those before the first one that is still listed are unknown.
    const isFirst = !this.#hasBegun && this.#sequence <= 1;
    const range = this.#readRange(byteRange, href, isFirst ? { init: this.#init } : null);
    const [sequence, timeline] = [this.#sequence, place?.timeline ?? this.#timeline];
    const dateMs = statedMs ?? (this.#dated?.timeline === timeline ? this.#dated.endMs : null);
    const isDated = dateMs !== null && durationS > 0;
    this.#dated = isDated ? { endMs: dateMs + durationS * 1000, timeline } : null;
    this.#endGaps = place === null ? this.#endGaps + 1 : 0;
    if (place === null) this.#gapsS.push(durationS);
    else {
      const timing = { sequence, offsetS: null, durationS, ...(isDated && { dateMs }) };
      this.#collector.add({ url: href, range, ...place, ...timing });
    }
    this.#sequence += 1;
  }

  /** Throws for an undefined variable: the URL would be a wrong one. */
  #substitute(text: string): string {
    const result = this.#variables.substitute(text);
    const [missing] = /\{\$[\w-]{1,60}/.exec(result) ?? [];
    if (missing === undefined) return result;
    throw invalidManifestError(this.#url, `the variable ${missing}} must be defined in it (EXT-X-DEFINE)`);
  }
}

/** Parses an EXT-X-MAP (RFC 8216 §4.3.2.5); a range without offset begins at 0. */
function parseMap(list: string, url: URL, key: InitSection["key"]): InitSection {
  const attributes = readAttributes(list);
  const uri = attributes.get("URI") ?? "";
  if (uri === "") throw invalidManifestError(url, "EXT-X-MAP must have a URI (RFC 8216 §4.3.2.5)");
  const byteRange = attributes.get("BYTERANGE");
  const range = byteRange === undefined ? null : parseByteRange(byteRange, url);
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
