import { xsDuration } from "./dash-duration.ts";
import type { MpdElement } from "./dash-xml.ts";

/** Where a Period lies in the presentation, seconds; `null`: the MPD does not say it. */
export interface PeriodTimes {
  startS: number | null;
  durationS: number | null;
}

/** The times of each Period (ISO/IEC 23009-1 §5.3.2.1) of a presentation that is not live. */
export function timePeriods(mpd: MpdElement): PeriodTimes[] {
  const stated = mpd.children.map(({ attributes }) => ({
    startS: xsDuration(attributes.get("start")),
    durationS: xsDuration(attributes.get("duration")) || null,
  }));
  const wholeS = xsDuration(mpd.attributes.get("mediaPresentationDuration")) || null;
  const firstS = stated[0]?.startS ?? 0;
  /** Some state the whole without what is before the first Period. */
  const lastEndS = (startS: number | null) =>
    wholeS !== null && wholeS <= (startS ?? 0) ? firstS + wholeS : wholeS;
  let endS: number | null = 0;
  return stated.map((period, index) => {
    const startS: number | null = period.startS ?? endS;
    const isLast = index === stated.length - 1;
    const nextS = isLast ? lastEndS(startS) : (stated[index + 1]?.startS ?? null);
    const untilNextS = nextS === null || startS === null ? null : nextS - startS;
    const durationS =
      period.durationS ?? (untilNextS !== null && untilNextS > 0 ? untilNextS : null);
    endS = startS === null || durationS === null ? null : startS + durationS;
    return { startS, durationS };
  });
}

/**
 * Seconds of the whole: as stated, else up to the end of the last Period; of a live stream only as
 * stated.
 */
export function presentationDuration(mpd: MpdElement, isLive: boolean): number | null {
  const wholeS = xsDuration(mpd.attributes.get("mediaPresentationDuration")) || null;
  if (wholeS !== null || isLive) return wholeS;
  const last = timePeriods(mpd).at(-1);
  if (last === undefined || last.startS === null || last.durationS === null) return null;
  return last.startS + last.durationS || null;
}
