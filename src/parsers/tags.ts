import { readLine } from "./text.ts";

const maxTags = 100;
const maxTagLength = 200;

/** Tags without repetitions, in order. */
export function readTags(values: readonly string[]): string[] {
  const tags = new Map<string, string>();
  for (const value of values) {
    const tag = readLine(value);
    if (tag === null || tag.length > maxTagLength || tags.size === maxTags) continue;
    if (!tags.has(tag.toLowerCase())) tags.set(tag.toLowerCase(), tag);
  }
  return [...tags.values()];
}

/** Keywords of one comma-separated text, or several texts. */
export function readKeywords(values: readonly string[]): string[] {
  return readTags(values.flatMap((value) => value.slice(0, 10_000).split(/[,;]/)));
}
