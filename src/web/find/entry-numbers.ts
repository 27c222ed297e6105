import type { TaskOptions } from "../../model/task.ts";

/** As many URLs as the service takes. */
const maxUrls = 500;

/** Returns the option that names these entries of a list, by their indexes: up to 500 by their URLs, more by their numbers. */
export function chooseEntries(
  urls: readonly string[],
  chosen: ReadonlySet<number>,
): NonNullable<TaskOptions["entries"]> {
  const indexes = [...chosen].toSorted((a, b) => a - b);
  if (indexes.length <= maxUrls) return indexes.flatMap((index) => urls[index] ?? []);
  const ranges: [from: number, to: number][] = [];
  for (const index of indexes) {
    const range = ranges.at(-1);
    if (range?.[1] === index) range[1] = index + 1;
    else ranges.push([index + 1, index + 1]);
  }
  return ranges.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(",");
}
