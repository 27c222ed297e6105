import {
  childrenOf,
  damagedMatroskaError,
  type Element,
  elementsIn,
  findElement,
  findUnsigned,
  floatIn,
  ids,
  readElement,
  textIn,
  unsignedIn,
} from "./elements.ts";
import type { AudioRole } from "../../model/page-info.ts";
import type { NumberSource } from "../mp4/read/number-source.ts";
import { iso639ToBcp47 } from "../language.ts";
import type { TrackKind } from "../samples.ts";

/** Codec IDs that WebM may have. */
export const webmCodecIds: ReadonlySet<string> = new Set(["V_VP8", "V_VP9", "V_AV1", "A_OPUS", "A_VORBIS"]);

/** A track as its TrackEntry describes it (RFC 9559 §5.1.4.1). */
export interface MatroskaTrack {
  number: number;
  /** `null`: subtitles and the like. */
  kind: TrackKind | null;
  codecId: string;
  /** The element, with all that this program does not know. */
  entry: Element;
  /** How much earlier than its timestamps it is presented, nanoseconds. */
  codecDelayNs: number;
  /** Of a frame, nanoseconds; 0: not stated. */
  defaultDurationNs: number;
  /** BCP 47; `null`: unknown. */
  language: string | null;
  name: string;
  /** What its flags say that it is to listeners; `null`: nothing. */
  audio_role: AudioRole | null;
  /** Its frames are compressed or encrypted. */
  isEncoded: boolean;
  /** Its blocks have pictures of transparency beside them (AlphaMode, §5.1.4.1.28.4). */
  hasAlpha: boolean;
  /** What says that it is not usable (FlagEnabled, §5.1.4.1.4); `null`: nothing does. */
  disabled: Element | null;
}

export interface MatroskaHeader {
  /** The Segment; its end is that of the file if its size is unknown. */
  segment: Element;
  /** Nanoseconds of a tick. */
  timestampScale: number;
  /** How long its media last, ticks; 0: not stated. */
  durationTicks: number;
  tracks: MatroskaTrack[];
}

/** By TrackType (§5.1.4.1.3). */
const kinds: ReadonlyMap<number, TrackKind> = new Map([
  [1, "video"],
  [2, "audio"],
]);
/** What says that audio is for some listeners (§5.1.4.1.8, §5.1.4.1.11). */
export const roleFlags: ReadonlyMap<AudioRole, number> = new Map([
  ["description", ids.flagVisualImpaired],
  ["commentary", ids.flagCommentary],
]);
/** Of a track without a language (§5.1.4.1.20). */
const defaultLanguage = "eng";
const defaultScale = 1_000_000;
const maxTracks = 100;

/**
 * Reads the header of a Matroska or WebM file; `undefined` for any other.
 * @throws ServiceError `upstream_invalid` if it is damaged.
 */
export function readHeader(source: NumberSource): MatroskaHeader | undefined {
  if (source.size < 4 || source.u32(0) !== ids.ebml) return undefined;
  const top = readElement(source, 0, source.size);
  const found = top && readElement(source, top.end, source.size);
  if (found?.id !== ids.segment) return undefined;
  const segment = { ...found, end: Math.min(found.end, source.size) };
  let timestampScale = defaultScale;
  let durationTicks = 0;
  let tracks: MatroskaTrack[] | undefined;
  for (const element of elementsIn(source, segment)) {
    // The header is before the media.
    if (element.id === ids.cluster) break;
    if (element.id === ids.tracks) tracks = readTracks(source, element);
    if (element.id !== ids.info) continue;
    timestampScale = findUnsigned(source, element, ids.timestampScale) || defaultScale;
    const duration = findElement(source, element, ids.duration);
    if (duration !== undefined) durationTicks = floatIn(source, duration);
  }
  if (tracks === undefined) throw damagedMatroskaError("no track comes before its media");
  return { segment, timestampScale, durationTicks, tracks };
}

function readTracks(source: NumberSource, parent: Element): MatroskaTrack[] {
  return [...childrenOf(source, parent, ids.trackEntry)].slice(0, maxTracks).map((entry) => readTrack(source, entry));
}

function readTrack(source: NumberSource, entry: Element): MatroskaTrack {
  const children = new Map([...elementsIn(source, entry)].map((child) => [child.id, child]));
  const unsigned = (id: number): number => (children.has(id) ? unsignedIn(source, children.get(id)!) : 0);
  const text = (id: number): string => (children.has(id) ? textIn(source, children.get(id)!) : "");
  const enabled = children.get(ids.flagEnabled);
  const language = text(ids.languageBcp47) || text(ids.language) || defaultLanguage;
  const isCode = /^[a-z]{3}$/i.test(language);
  return {
    number: unsigned(ids.trackNumber),
    kind: kinds.get(unsigned(ids.trackType)) ?? null,
    codecId: text(ids.codecId),
    entry,
    codecDelayNs: unsigned(ids.codecDelay),
    defaultDurationNs: unsigned(ids.defaultDuration),
    language: isCode ? iso639ToBcp47(language) : language,
    name: text(ids.name),
    audio_role: [...roleFlags].find(([, flag]) => unsigned(flag) === 1)?.[0] ?? null,
    isEncoded: children.has(ids.encodings),
    hasAlpha: findUnsigned(source, entry, ids.video, ids.alphaMode) === 1,
    disabled: enabled !== undefined && enabled.end > enabled.body && unsignedIn(source, enabled) === 0 ? enabled : null,
  };
}
