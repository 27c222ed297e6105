import { parseLine } from "./text.ts";

const maxTags = 100;
const maxTagLength = 200;

/** Returns the tags without duplicates, in order; at most 100, without those over 200 characters. */
export function parseTags(values: readonly string[]): string[] {
  const tags = new Map<string, string>();
  for (const value of values) {
    const tag = parseLine(value);
    if (tag === null || tag.length > maxTagLength || tags.size === maxTags) continue;
    if (!tags.has(tag.toLowerCase())) tags.set(tag.toLowerCase(), tag);
  }
  return [...tags.values()];
}

/** Returns the tags of texts that separate them by comma or semicolon. */
export function parseKeywords(values: readonly string[]): string[] {
  return parseTags(values.flatMap((value) => value.slice(0, 10_000).split(/[,;]/)));
}
