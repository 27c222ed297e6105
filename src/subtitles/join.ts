import { type Cue, takeInnerTimes } from "../remux/additions.ts";

/** Cues of segments that belong together are at most so far apart, seconds, … */
const maxApartS = 0.01;
/** … and about so many segments. */
const maxApart = 64;

/**
 * Joins the cues of segments, in order: a cue that is repeated in several segments is there once, one that was cut where a
 * segment ends is whole again. Cues of one segment are left as they are. The cues that it gets may get other times.
 */
export function joinCues(segments: readonly (readonly Cue[])[]): Cue[] {
  const joined: Cue[] = [];
  /** The latest cues by what they show. */
  const latest = new Map<string, { cue: Cue; segment: number; times: readonly number[] }>();
  for (const [segment, cues] of segments.entries()) {
    if (segment % maxApart === 0) {
      for (const [key, before] of latest) if (before.segment < segment - maxApart) latest.delete(key);
    }
    for (const cue of cues) {
      // The times of a segment may be rounded, those within cues too.
      const { text, times } = takeInnerTimes(cue.text);
      // No text has U+0000.
      const key = cue.settings === "" ? text : `${cue.settings}\0${text}`;
      const before = latest.get(key);
      const isSame = before !== undefined && before.segment !== segment && cue.startS <= before.cue.endS + maxApartS;
      if (isSame && cue.endS >= before.cue.startS - maxApartS && areNear(times, before.times)) {
        before.cue.startS = Math.min(before.cue.startS, cue.startS);
        before.cue.endS = Math.max(before.cue.endS, cue.endS);
        before.segment = segment;
        continue;
      }
      joined.push(cue);
      latest.set(key, { cue, segment, times });
    }
  }
  return joined.toSorted((a, b) => a.startS - b.startS || a.endS - b.endS);
}

function areNear(times: readonly number[], others: readonly number[]): boolean {
  return times.length === others.length && times.every((time, n) => Math.abs(time - others[n]!) <= maxApartS);
}
