import type { Chapter, StatedChapter } from "../model/entry.ts";
import { parseLine } from "../parsers/text.ts";

const maxChapters = 500;
const maxTitle = 300;
/** A longer list is none. */
const maxStated = 5_000;

/**
 * Returns the chapters in order: at most 500, each of which ends before the next one begins. One without an end lasts until
 * the next, the last until the end of the video, which lasts `duration` seconds; what starts after that, or ends before it
 * starts, is left out. A single chapter that is the whole video says nothing, and is left out.
 */
export function listChapters(stated: readonly StatedChapter[], duration: number | null): Chapter[] {
  const endS = duration ?? Infinity;
  const started = stated.slice(0, maxStated).flatMap(({ start, end, title }) => {
    const name = parseLine(title)?.slice(0, maxTitle).toWellFormed() ?? "";
    return start !== null && start >= 0 && start < endS ? [{ start, end, name }] : [];
  });
  const sorted = started.toSorted((a, b) => a.start - b.start);
  const chapters = sorted.flatMap(({ start, end, name }, index): Chapter[] => {
    const next = Math.min(sorted[index + 1]?.start ?? endS, endS);
    const last = end === null ? next : Math.min(end, next);
    if (last <= start) return [];
    return [{ start_time: rounded(start), end_time: Number.isFinite(last) ? rounded(last) : null, title: name }];
  });
  const [first] = chapters;
  const isWhole = chapters.length === 1 && first?.start_time === 0 && first.end_time === duration;
  return isWhole ? [] : chapters.slice(0, maxChapters);
}

const rounded = (seconds: number): number => Math.round(seconds * 1000) / 1000;
