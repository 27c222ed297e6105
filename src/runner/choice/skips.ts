import type { FileWarning } from "../../model/file-warnings.ts";
import { ServiceError } from "../../model/errors.ts";
import type { PageInfo } from "../../model/page-info.ts";
import type { SkipCategory, TaskOptions } from "../../model/task.ts";
import { type Chapter, withEnds } from "../../remux/additions.ts";
import type { MediaRange } from "../../remux/samples.ts";
import type { FindSkips, SkipSegment } from "../../resolvers/sponsor-block.ts";

/** What a task skips in a video; a warning if that cannot be known. */
export interface Skips {
  segments: SkipSegment[];
  warnings: FileWarning[];
}

/**
 * Returns what the task skips in the video.
 *
 * @throws `signal.reason`
 */
export async function findSkips(
  page: PageInfo,
  { skip }: TaskOptions,
  find: FindSkips,
  signal: AbortSignal,
): Promise<Skips> {
  if (skip === undefined) return { segments: [], warnings: [] };
  try {
    return { segments: upToEnd(await find(page, skip, signal), page.duration), warnings: [] };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof ServiceError)) throw error;
    const message = `nothing was left out, as SponsorBlock did not say what to leave out: ${error.message}`;
    return { segments: [], warnings: [{ code: "skip_unavailable", message }] };
  }
}

/** Pages round durations, and people mark by hand: a segment that leaves less before an end reaches that end, seconds. */
const restS = 1;

/** Returns the segments of the video; those that end in its last second, or after it, last until the end (Infinity). */
function upToEnd(segments: readonly SkipSegment[], durationS: number | null): SkipSegment[] {
  const lastS = durationS ?? Infinity;
  return segments
    .filter(({ startS }) => startS < lastS)
    .map((segment) => (segment.endS > lastS - restS ? { ...segment, endS: Infinity } : segment));
}

/**
 * Returns the ranges that a task asks for without `segments`; none: all of the video.
 *
 * @throws ServiceError `format_unavailable` if nothing is left.
 */
export function rangesToKeep({ ranges = [] }: TaskOptions, segments: readonly SkipSegment[]): MediaRange[] {
  const wanted = ranges.map(({ start, end }) => ({ startS: start, endS: end ?? Infinity }));
  if (segments.length === 0) return wanted;
  const left = withoutSegments(wanted, segments);
  if (left.length > 0) return left;
  throw new ServiceError("format_unavailable", "nothing is left of the video without the segments to be skipped");
}

/** Less beside a segment would be a flash: people mark by hand, seconds. */
const leastS = 0.1;

/**
 * Returns what is left of `ranges` without `segments`, in order and apart, but for parts of less than 0.1 s; `ranges` empty: all of the
 * video. A range that no segment touches stays, however short it is.
 */
function withoutSegments(ranges: readonly MediaRange[], segments: readonly SkipSegment[]): MediaRange[] {
  const all = ranges.length === 0 ? [{ startS: 0, endS: Infinity }] : ranges;
  return segments.reduce<readonly MediaRange[]>(
    (left, { startS, endS }) =>
      left.flatMap((range) => {
        if (range.endS <= startS || range.startS >= endS) return [range];
        return [...part(range.startS, startS), ...part(endS, range.endS)];
      }),
    all,
  ) as MediaRange[];
}

function part(startS: number, endS: number): MediaRange[] {
  return endS - startS >= leastS ? [{ startS, endS }] : [];
}

const titles: Readonly<Record<SkipCategory, string>> = {
  sponsor: "Sponsor",
  selfpromo: "Self-promotion",
  interaction: "Interaction reminder",
  intro: "Intro",
  outro: "End cards",
  preview: "Preview",
  hook: "Hook",
  filler: "Filler",
  music_offtopic: "Not music",
};

/**
 * Returns the chapters with one for each segment, named as yt-dlp does. A chapter or segment that a segment interrupts continues after
 * it; less than a second of a chapter, before or after a segment, is in the segment. What has no chapter gets `title`.
 */
export function withSegments(chapters: readonly Chapter[], segments: readonly SkipSegment[], title: string): Chapter[] {
  const base = chapters.length === 0 ? [{ startS: 0, endS: Infinity, title }] : withEnds(chapters);
  const inOrder = segments
    .map((segment) => upToChapters(segment, base))
    .toSorted((a, b) => a.startS - b.startS || b.endS - a.endS);
  const arranged = inOrder.reduce<Chapter[]>((left, segment) => {
    const { startS, endS, category } = segment;
    const interrupted = left.flatMap((chapter) => {
      if (chapter.endS <= startS || chapter.startS >= endS) return [chapter];
      return withoutSegments([chapter], [segment]).map((range) => ({ ...range, title: chapter.title }));
    });
    return [...interrupted, { startS, endS, title: `[SponsorBlock]: ${titles[category]}` }];
  }, base);
  return arranged.toSorted((a, b) => a.startS - b.startS);
}

function upToChapters({ startS, endS, category }: SkipSegment, chapters: readonly Chapter[]): SkipSegment {
  const first = chapters.find((chapter) => chapter.startS <= startS && startS < chapter.endS);
  const last = chapters.find((chapter) => chapter.startS < endS && endS <= chapter.endS);
  return {
    startS: first !== undefined && startS - first.startS < restS ? first.startS : startS,
    endS: last !== undefined && last.endS - endS < restS ? last.endS : endS,
    category,
  };
}
