import type { MediaDescription } from "../../engines/engine.ts";
import { type Chapter, noAdditions, withEnds } from "../../remux/additions.ts";
import { type PageInfo, pageUrlOf } from "../../model/page-info.ts";
import type { SkipSegment } from "../../resolvers/sponsor-block.ts";
import type { SkipCategory } from "../../model/task.ts";
import type { MediaRange } from "../../remux/samples.ts";

/**
 * Returns what is written of a page into the files that are made of its media.
 *
 * @param marked The segments that the file keeps and that become chapters of it.
 */
export function describeMedia(page: PageInfo, marked: readonly SkipSegment[]): MediaDescription {
  const { title, uploader, uploaded_at, description, thumbnails, chapters = [] } = page;
  // The name of a file is worth less than what the file says itself.
  const isName = page.sources["title"] === "media";
  const named = chapters.map(({ start_time, end_time, title: name }, index) => ({
    startS: start_time,
    endS: end_time ?? Infinity,
    // Of everything on the page, even if only a part of it is in the file.
    title: name || `Chapter ${index + 1}`,
  }));
  return {
    tags: {
      ...noAdditions.tags,
      title: isName ? null : title,
      artist: uploader,
      date: uploaded_at,
      description,
      url: pageUrlOf(page),
    },
    name: title,
    chapters: marked.length > 0 ? withSegments(named, marked, title ?? "Video") : named,
    covers: thumbnails.map(({ url }) => url).filter((url) => URL.canParse(url)),
  };
}

/** Less beside a segment would be a flash: people mark by hand, seconds. */
const leastS = 0.1;

/**
 * Returns what is left of `ranges` without `segments`, in order and apart, but for parts of less than 0.1 s; `ranges` empty: all of the
 * video. A range that no segment touches stays, however short it is.
 */
export function withoutSegments(ranges: readonly MediaRange[], segments: readonly SkipSegment[]): MediaRange[] {
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

/** Pages round durations, and people mark by hand: a segment that leaves less before an end reaches that end, seconds. */
const restS = 1;

/** Returns the segments of the video; those that end in its last second, or after it, last until the end (Infinity). */
export function upToEnd(segments: readonly SkipSegment[], durationS: number | null): SkipSegment[] {
  const lastS = durationS ?? Infinity;
  return segments
    .filter(({ startS }) => startS < lastS)
    .map((segment) => (segment.endS > lastS - restS ? { ...segment, endS: Infinity } : segment));
}

/**
 * Returns the chapters with one for each segment, named as yt-dlp does. A chapter or segment that a segment interrupts continues after
 * it; less than a second of a chapter, before or after a segment, is in the segment. What has no chapter gets `title`.
 */
function withSegments(chapters: readonly Chapter[], segments: readonly SkipSegment[], title: string): Chapter[] {
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
