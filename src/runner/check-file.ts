import type { Download } from "../engines/engine.ts";
import type { FileWarning } from "../model/file-warnings.ts";
import type { PageInfo } from "../model/page-info.ts";
import type { TaskOptions } from "../model/task.ts";
import type { SkipSegment } from "../resolvers/sponsor-block.ts";

/**
 * Returns the engine's warnings of a file, and those that follow from the task and its page:
 * - it is much shorter than the page says, as previews and files that were cut before they were published are;
 * - it is higher than the task allows, or lower than a format whose manifest cannot be read;
 * - it has no cover.
 *
 * @param segments Of the video, which the task skips or marks.
 */
export function checkFile(
  download: Download,
  page: PageInfo,
  options: TaskOptions,
  segments: readonly SkipSegment[],
): FileWarning[] {
  const isCut = options.ranges !== undefined || (segments.length > 0 && options.skip_mode !== "chapters");
  return [
    ...download.warnings,
    ...(isCut ? [] : checkDuration(download, page)),
    ...checkMaxHeight(download.height, options),
    ...checkMissing(download.height, page, options),
    ...checkCover(download, page, options),
  ];
}

/** A file may be shorter by so much, seconds and share: pages round, and leave trailers in or out. */
const leastS = 5;
const leastShare = 0.1;

/** Says nothing of a live stream, nor twice that the duration differs. */
function checkDuration(
  { duration: fileS, warnings }: Download,
  { duration: pageS, live_status }: PageInfo,
): FileWarning[] {
  const isLive = live_status === "is_live" || live_status === "is_upcoming";
  const isKnown = warnings.some(({ code }) => code === "duration_differs");
  if (pageS === null || fileS === null || isLive || isKnown) return [];
  if (pageS - fileS <= Math.max(leastS, leastShare * pageS)) return [];
  const message = `the file lasts ${fileS.toFixed(1)} s, its page says ${pageS.toFixed(1)} s`;
  return [{ code: "duration_differs", message }];
}

/** A format of unknown height is downloaded if no other is allowed; one that is asked for by its id has any height. */
function checkMaxHeight(height: number | null, { format_id, max_height }: TaskOptions): FileWarning[] {
  if (format_id !== undefined || max_height === undefined) return [];
  if (height === null || height <= max_height) return [];
  const message = `the video is ${height} pixels high, max_height is ${max_height}`;
  return [{ code: "too_high", message }];
}

/** Says which taller formats are not listed; nothing if a format was asked for, or only audio. */
function checkMissing(height: number | null, { warnings = [] }: PageInfo, options: TaskOptions): FileWarning[] {
  if (height === null || options.format_id !== undefined || options.audio_only === true) return [];
  const most = options.max_height ?? Infinity;
  const taller = warnings.filter((warning) => height < Math.min(warning.height ?? 0, most));
  return taller.map(({ message }) => ({
    code: "format_left",
    message: `the video is ${height} pixels high: ${message}`,
  }));
}

/** Without `embed`, a cover is an extra that was not asked for. */
function checkCover({ others }: Download, { thumbnails }: PageInfo, { embed }: TaskOptions): FileWarning[] {
  if (embed !== true || thumbnails.length === 0 || others.some(({ kind }) => kind === "cover")) return [];
  const message = "no cover was added: no picture of the page could be had that is a JPEG or PNG of at most 2 MiB";
  return [{ code: "not_embedded", message }];
}
