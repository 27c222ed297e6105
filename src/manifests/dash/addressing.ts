import type { ByteRange } from "../../net/byte-range.ts";
import type { Chain } from "./representations.ts";
import type { Addressing, Initialization, SegmentUrl, TimelineEntry } from "./xml.ts";
import { invalidManifestError } from "../manifest.ts";

/** How the segments of one Representation are addressed, after inheritance. */
export interface SegmentAddressing {
  name: Addressing["name"];
  initialization: Initialization | null;
  timeline: readonly TimelineEntry[] | null;
  urls: readonly SegmentUrl[];
  /** URL templates; `undefined`: not stated. */
  media: string | undefined;
  initializationMedia: string | undefined;
  /** Ticks per second. */
  timescale: number;
  /** Ticks of one segment; `null`: a SegmentTimeline states it. */
  duration: number | null;
  startNumber: number;
  endNumber: number | null;
  /** Ticks. */
  presentationTimeOffset: bigint;
}

/**
 * Returns the innermost SegmentTemplate, SegmentList or SegmentBase, completed from outer elements of the
 * same kind (ISO/IEC 23009-1 §5.3.9.1); `null` if there is none.
 *
 * @throws ServiceError `upstream_invalid` for an invalid number.
 */
export function addressingOf(chain: Chain, url: URL): SegmentAddressing | null {
  const found = chain.flatMap(({ addressing }) => addressing ?? []);
  const [nearest] = found;
  if (nearest === undefined) return null;
  const { name } = nearest;
  const sameKind = found.filter((each) => each.name === name);
  const attribute = (key: string) =>
    sameKind.find(({ attributes }) => attributes.has(key))?.attributes.get(key);
  const integer = (key: string) => parseUnsignedLong(key, attribute(key), url);
  const endNumber = integer("endNumber");
  return {
    name,
    initialization: sameKind.find((each) => each.initialization !== null)?.initialization ?? null,
    timeline: sameKind.find((each) => each.timeline !== null)?.timeline ?? null,
    urls: sameKind.find((each) => each.urls.length > 0)?.urls ?? [],
    media: attribute("media"),
    initializationMedia: attribute("initialization"),
    timescale: Number(integer("timescale") ?? 1) || 1,
    duration: Number(integer("duration") ?? 0) || null,
    startNumber: Number(integer("startNumber") ?? 1),
    endNumber: endNumber === null ? null : Number(endNumber),
    presentationTimeOffset: integer("presentationTimeOffset") ?? 0n,
  };
}

/**
 * Parses an `xs:unsignedLong`; `null` if `value` is blank. A `bigint`, because times in a fine timescale
 * exceed 2^53. `name` is the attribute's, for the error.
 *
 * @throws ServiceError `upstream_invalid`
 */
export function parseUnsignedLong(
  name: string,
  value: string | undefined,
  url: URL,
): bigint | null {
  const text = value?.trim() ?? "";
  if (text === "") return null;
  if (/^\d{1,20}$/.test(text)) return BigInt(text);
  throw invalidManifestError(url, `${name} must be a whole number of at most 20 digits`, text);
}

/**
 * Parses a `mediaRange` or `range` attribute: `first-last`, both inclusive (RFC 9110 §14.1.2). Returns
 * `null`, the whole resource, if it is blank.
 *
 * @throws ServiceError `upstream_invalid`
 */
export function parseMediaRange(value: string, url: URL): ByteRange | null {
  if (value.trim() === "") return null;
  const [, first, last] = /^\s*(\d{1,15})\s*-\s*(\d{1,15})\s*$/.exec(value) ?? [];
  const length = Number(last) - Number(first) + 1;
  if (first !== undefined && length > 0) return { offset: Number(first), length };
  throw invalidManifestError(url, "a byte range must be first-last", value);
}
