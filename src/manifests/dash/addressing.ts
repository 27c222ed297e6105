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
  /** URL templates; `undefined`: none. */
  media: string | undefined;
  initializationMedia: string | undefined;
  /** Ticks per second. */
  timescale: number;
  /** Ticks of one segment; `null`: a SegmentTimeline has it. */
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
  const attribute = (key: string) => sameKind.find(({ attributes }) => attributes.has(key))?.attributes.get(key);
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
export function parseUnsignedLong(name: string, value: string | undefined, url: URL): bigint | null {
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

/** The variables of a segment's URL. */
export interface SegmentNumbers {
  /** In its Period, counting from `startNumber`. */
  number: number;
  /** On the media's own timeline, in ticks. */
  time: bigint;
}

/**
 * Compiles a SegmentTemplate's `media` or `initialization` (ISO/IEC 23009-1 §5.3.9.4.4) for one
 * Representation into a function that returns a URL reference.
 *
 * @throws ServiceError `upstream_invalid` for an unknown identifier or an unpaired `$`.
 */
export function compileTemplate(
  template: string,
  representation: { id: string; bandwidth: string },
  url: URL,
): (numbers: SegmentNumbers) => string {
  const parts = template.split("$");
  const values = parts.map((part, index) => {
    if (index % 2 === 0) return () => part;
    if (index < parts.length - 1) {
      if (part === "") return () => "$";
      if (part === "RepresentationID") return () => representation.id;
      const [, name, width] = /^(Number|Time|Bandwidth)(?:%0?(\d{0,2})d)?$/.exec(part) ?? [];
      const pad = (value: string) => value.padStart(Number(width ?? 0), "0");
      if (name === "Number") return ({ number }: SegmentNumbers) => pad(`${number}`);
      if (name === "Time") return ({ time }: SegmentNumbers) => pad(`${time}`);
      if (name === "Bandwidth") return () => pad(representation.bandwidth);
    }
    const rule = "a template may only name $RepresentationID$, $Number$, $Time$, $Bandwidth$ and $$";
    throw invalidManifestError(url, rule, template);
  });
  return (numbers) => values.map((value) => value(numbers)).join("");
}
