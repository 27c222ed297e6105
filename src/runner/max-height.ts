import type { FileWarning } from "../model/file-warnings.ts";
import type { TaskOptions } from "../model/task.ts";

/**
 * Returns a warning if a file is higher than the task allows. A format of unknown height is downloaded if no other
 * is allowed; one that is asked for by its id has any height.
 */
export function checkMaxHeight(
  { format_id, max_height }: TaskOptions,
  height: number | null,
): FileWarning[] {
  if (format_id !== undefined || max_height === undefined) return [];
  if (height === null || height <= max_height) return [];
  const message = `the video is ${height} pixels high, max_height is ${max_height}`;
  return [{ code: "too_high", message }];
}
