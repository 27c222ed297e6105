import type { Download } from "../engines/engine.ts";
import type { FileWarning } from "../model/file-warnings.ts";
import type { PageInfo } from "../model/page-info.ts";

/** A file may be shorter by so much, seconds and share: pages round, and leave trailers in or out. */
const leastS = 5;
const leastShare = 0.1;

/**
 * Returns the warnings of a file, and one more if it lasts much less than its page says, as previews and files
 * that were cut before they were published do. Says nothing of a live stream.
 */
export function checkStatedDuration(
  { duration: statedS, live_status }: Pick<PageInfo, "duration" | "live_status">,
  { duration: fileS, warnings }: Pick<Download, "duration" | "warnings">,
): FileWarning[] {
  const isLive = live_status === "is_live" || live_status === "is_upcoming";
  const isJudged = warnings.some(({ code }) => code === "duration_differs");
  if (statedS === null || fileS === null || isLive || isJudged) return [...warnings];
  if (statedS - fileS <= Math.max(leastS, leastShare * statedS)) return [...warnings];
  const message = `the file lasts ${fileS.toFixed(1)} s, its page says ${statedS.toFixed(1)} s`;
  return [...warnings, { code: "duration_differs", message }];
}
