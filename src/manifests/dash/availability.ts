import { parseXsDuration, type PeriodTimes } from "./periods.ts";
import type { MpdElement } from "./xml.ts";

/** Which media of an MPD can be fetched at a moment (ISO/IEC 23009-1 §A.3), in presentation times, seconds. */
export interface Availability {
  /** When presentation time 0 is on the clock, milliseconds since 1970. */
  originMs: number;
  /** Segments that end before are no longer in the window; servers keep them for as long as they last. */
  startS: number;
  /** Segments that end later are not there yet; Infinity: all are. */
  endS: number;
  /** Those that are only kept are listed too: the list was read before, and may have missed them. */
  isReload?: boolean;
}

/**
 * Returns what is available at `nowMs`, milliseconds since 1970; `null` if the MPD says nothing of it. All is, once the
 * MPD is static, or dynamic and its presentation has ended.
 */
export function availabilityOf(
  { attributes }: MpdElement,
  periods: readonly PeriodTimes[],
  nowMs: number,
): Availability | null {
  const originMs = parseDateTime(attributes.get("availabilityStartTime"));
  if (originMs === null) return null;
  const nowS = (nowMs - originMs) / 1000;
  const last = periods.at(-1);
  const endS =
    last === undefined || last.startS === null || last.durationS === null ? null : last.startS + last.durationS;
  // Further Periods may come, unless it says how long it is.
  const isComplete = attributes.has("mediaPresentationDuration") || !attributes.has("minimumUpdatePeriod");
  const isOver = isComplete && endS !== null && nowS >= endS;
  if (attributes.get("type") !== "dynamic" || isOver)
    return { originMs, startS: Number.NEGATIVE_INFINITY, endS: Infinity };
  const depthS = parseXsDuration(attributes.get("timeShiftBufferDepth")) ?? Infinity;
  return { originMs, startS: nowS - depthS, endS: nowS };
}

/** Returns how long to wait before a dynamic MPD is read again, seconds; `segmentS`: of its segments. */
export function refreshOf({ attributes }: MpdElement, segmentS: number): number {
  const updateS = parseXsDuration(attributes.get("minimumUpdatePeriod")) || Infinity;
  return Math.min(60, Math.max(1, Math.min(updateS, segmentS)));
}

const dateTime = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?)(Z|[+-]\d\d:\d\d)?$/;

/** Returns the milliseconds since 1970 of an `xs:dateTime`, in UTC if it has no time zone; `null` if it is invalid. */
export function parseDateTime(value: string | undefined): number | null {
  const [, time, zone = "Z"] = dateTime.exec((value ?? "").trim()) ?? [];
  const ms = time === undefined ? Number.NaN : Date.parse(time + zone);
  return Number.isNaN(ms) ? null : ms;
}
