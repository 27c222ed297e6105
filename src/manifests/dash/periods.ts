import { roundSeconds } from "../attributes.ts";
import type { TimeSpan } from "../segments.ts";
import type { MpdElement } from "./xml.ts";

/** When a Period is presented, seconds; `null`: unknown. */
export interface PeriodTimes {
  startS: number | null;
  durationS: number | null;
}

/** Returns the times of each Period of an MPD (ISO/IEC 23009-1 §5.3.2.1). */
export function timePeriods(mpd: MpdElement): PeriodTimes[] {
  const listed = mpd.children.map(({ attributes }) => ({
    startS: parseXsDuration(attributes.get("start")),
    durationS: periodDuration(attributes.get("duration")),
  }));
  const totalS = parseXsDuration(mpd.attributes.get("mediaPresentationDuration")) || null;
  const firstS = listed[0]?.startS ?? 0;
  /** Some MPDs have a total that leaves out the time before the first Period. */
  const lastEndS = (startS: number | null) => (totalS !== null && totalS <= (startS ?? 0) ? firstS + totalS : totalS);
  let endS: number | null = 0;
  return listed.map((period, index) => {
    const startS: number | null = period.startS ?? endS;
    const isLast = index === listed.length - 1;
    const nextS = isLast ? lastEndS(startS) : (listed[index + 1]?.startS ?? null);
    const untilNextS = nextS === null || startS === null ? null : nextS - startS;
    const durationS = period.durationS ?? (untilNextS !== null && untilNextS > 0 ? untilNextS : null);
    endS = startS === null || durationS === null ? null : startS + durationS;
    return { startS, durationS };
  });
}

/** No Period is longer: some packagers state the highest number (`PT4294967295S`) if they do not know it. */
const maxPeriodS = 1e9;

function periodDuration(stated: string | undefined): number | null {
  const seconds = parseXsDuration(stated) ?? 0;
  return seconds > 0 && seconds < maxPeriodS ? seconds : null;
}

/** Removes the Periods of a dynamic MPD whose start is not known yet: they are to be fetched early, and presented once it is (ISO/IEC 23009-1 §5.3.2.1). */
export function removeEarlyPeriods(mpd: MpdElement): void {
  const times = timePeriods(mpd);
  mpd.children = mpd.children.filter((_, index) => times[index]?.startS !== null);
}

/** Puts the Periods of an MPD in the order of their starts, in which they are to be listed (ISO/IEC 23009-1 §5.3.2.1), if all are known. */
export function sortPeriods(mpd: MpdElement): void {
  const times = timePeriods(mpd);
  if (times.some(({ startS }) => startS === null)) return;
  const starts = new Map(mpd.children.map((period, index) => [period, times[index]?.startS ?? 0]));
  mpd.children = mpd.children.toSorted((a, b) => starts.get(a)! - starts.get(b)!);
}

/**
 * Returns when each Period's media may be presented. The first Period is not cut at its start, the last one
 * not at its end: nothing else is presented there, and listed durations are often a little too short.
 */
export function spansOf(periods: readonly PeriodTimes[]): (TimeSpan | undefined)[] {
  if (periods.length === 1) return [];
  return periods.map(({ startS, durationS }, index) => {
    if (startS === null) return undefined;
    const next = periods[index + 1];
    const ownEndS = durationS === null ? Infinity : startS + durationS;
    const endS = Math.min(ownEndS, next?.startS ?? Infinity);
    return { startS: index === 0 ? Number.NEGATIVE_INFINITY : startS, endS: next === undefined ? Infinity : endS };
  });
}

/** How much less than it lasts an MPD may say: some cut its duration to tenths, and leave out when it starts, or to whole seconds. */
export const roundedS = { tenths: 0.2, seconds: 1 };

/**
 * Returns the time from which on a list of segments has what comes after the end of its Period, seconds (ISO/IEC 23009-1 §5.3.2.1); undefined
 * if that is unknown. A list that starts later than its Period, perhaps because its offset is wrong, ends later by as much.
 */
export function endOfList({ startS, durationS }: PeriodTimes, firstS: number | null): number | undefined {
  if (startS === null || durationS === null || firstS === null) return undefined;
  const slackS = Number.isInteger(durationS) ? roundedS.seconds : roundedS.tenths;
  return Math.max(startS, firstS) + durationS + slackS;
}

/**
 * Returns the seconds from the start of the first Period to the end that the duration attribute states, else that of the last
 * Period; `null` if unknown. A live stream has only the attribute.
 */
export function presentationDuration(mpd: MpdElement, isLive: boolean): number | null {
  const totalS = parseXsDuration(mpd.attributes.get("mediaPresentationDuration")) || null;
  if (isLive) return totalS;
  const periods = timePeriods(mpd);
  const firstS = periods[0]?.startS ?? 0;
  // Some attributes leave out the time before the first Period.
  if (totalS !== null) return totalS > firstS ? totalS - firstS : totalS;
  const last = periods.at(-1);
  if (last === undefined || last.startS === null || last.durationS === null) return null;
  return last.startS + last.durationS - firstS || null;
}

const xsDuration =
  /^P(?:(\d{1,9})Y)?(?:(\d{1,9})M)?(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,12}(?:\.\d{0,30})?)S)?)?$/;
const unitsS = [31_536_000, 2_592_000, 86_400, 3_600, 60, 1];

/**
 * Returns the seconds of an `xs:duration` (XML Schema 2 §3.3.6), with 365 days a year and 30 a month;
 * `null` if it is invalid or negative.
 */
function parseXsDuration(value: string | undefined): number | null {
  const parts = xsDuration.exec(value?.trim() ?? "")?.slice(1);
  if (parts === undefined || parts.every((part) => part === undefined)) return null;
  const seconds = parts.reduce((sum, part, at) => sum + Number(part ?? 0) * (unitsS[at] ?? 0), 0);
  return roundSeconds(seconds) ?? 0;
}

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
