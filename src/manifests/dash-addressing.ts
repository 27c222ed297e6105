import type { Chain } from "./dash-representations.ts";
import type { Addressing, Initialization, SegmentUrl, TimelineEntry } from "./dash-xml.ts";
import { invalidManifestError } from "./manifest.ts";
import type { SegmentRange } from "./segments.ts";

/** What applies to one Representation of what it and the elements around it say. */
export interface TrackAddressing {
  name: Addressing["name"];
  initialization: Initialization | null;
  timeline: readonly TimelineEntry[] | null;
  urls: readonly SegmentUrl[];
  /** Address templates; `undefined` where there is none. */
  media: string | undefined;
  initializationMedia: string | undefined;
  /** Ticks per second. */
  timescale: number;
  /** Ticks of one segment; `null`: a SegmentTimeline says it. */
  duration: number | null;
  startNumber: number;
  endNumber: number | null;
  /** Ticks. */
  presentationTimeOffset: bigint;
}

/**
 * The innermost SegmentTemplate, SegmentList or SegmentBase; what it lacks comes from those of the
 * same kind further out (ISO/IEC 23009-1 §5.3.9.1). `null`: there is none.
 *
 * @throws ServiceError `upstream_invalid` for numbers that are none.
 */
export function addressingOf(chain: Chain, url: URL): TrackAddressing | null {
  const found = chain.flatMap(({ addressing }) => addressing ?? []);
  const [nearest] = found;
  if (nearest === undefined) return null;
  const { name } = nearest;
  const alike = found.filter((each) => each.name === name);
  const attribute = (key: string) =>
    alike.find(({ attributes }) => attributes.has(key))?.attributes.get(key);
  const whole = (key: string) => parseUnsignedLong(key, attribute(key), url);
  return {
    name,
    initialization: alike.find((each) => each.initialization !== null)?.initialization ?? null,
    timeline: alike.find((each) => each.timeline !== null)?.timeline ?? null,
    urls: alike.find((each) => each.urls.length > 0)?.urls ?? [],
    media: attribute("media"),
    initializationMedia: attribute("initialization"),
    timescale: Number(whole("timescale") ?? 1) || 1,
    duration: Number(whole("duration") ?? 0) || null,
    startNumber: Number(whole("startNumber") ?? 1),
    endNumber: nullOr(whole("endNumber")),
    presentationTimeOffset: whole("presentationTimeOffset") ?? 0n,
  };
}

/**
 * An `xs:unsignedLong`; `null` where nothing is stated. A `bigint` since times in a fine timescale
 * are beyond 2^53.
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
  const got = JSON.stringify(text.slice(0, 60));
  throw invalidManifestError(
    url,
    `${name} must be a whole number of at most 20 digits, got ${got}`,
  );
}

/**
 * `first-last` of bytes (RFC 9110 §14.1.2), as in `mediaRange`; `null`, all of it, for `""`.
 *
 * @throws ServiceError `upstream_invalid`
 */
export function readMediaRange(value: string, url: URL): SegmentRange | null {
  if (value.trim() === "") return null;
  const [, first, last] = /^\s*(\d{1,15})\s*-\s*(\d{1,15})\s*$/.exec(value) ?? [];
  const length = Number(last) - Number(first) + 1;
  if (first !== undefined && length > 0) return { offset: Number(first), length };
  const got = JSON.stringify(value.slice(0, 60));
  throw invalidManifestError(url, `a byte range must be first-last, got ${got}`);
}

function nullOr(value: bigint | null): number | null {
  return value === null ? null : Number(value);
}
