import type { MediaRange } from "../../model/task.ts";

/**
 * Returns the parts that a text as `1:20-2:45, 10:00-` names; undefined for an empty one, `null` if it cannot be read, or
 * the parts are not in order and apart.
 */
export function parseRanges(text: string): MediaRange[] | undefined | null {
  if (text.trim() === "") return undefined;
  const ranges: MediaRange[] = [];
  for (const part of text.split(",")) {
    const [, from = "", to = ""] = /^\s*([\d:.]*)\s*[-–]\s*([\d:.]*)\s*$/.exec(part) ?? [];
    const start = from === "" && to !== "" ? 0 : parseTime(from);
    const end = to === "" ? null : parseTime(to);
    const isApart = start !== undefined && start >= (ranges.length === 0 ? 0 : (ranges.at(-1)?.end ?? Infinity));
    if (end === undefined || !isApart || (end !== null && end <= start)) return null;
    ranges.push({ start, end });
  }
  return ranges;
}

/** Returns the seconds of `90`, `1:30` or `1:02:03.5`; undefined if it is nothing of that kind. */
function parseTime(text: string): number | undefined {
  if (!/^(?:\d+:){0,2}\d+(?:\.\d+)?$/.test(text)) return undefined;
  return text.split(":").reduce((seconds, part) => 60 * seconds + Number(part), 0);
}
