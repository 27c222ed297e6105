import { parseLine } from "./text.ts";

const maxTags = 100;
const maxTagLength = 200;
/** With white space that is collapsed. */
const maxStatedLength = 500;
/** Of the values that are looked at, and of the characters of texts with several. */
const maxValues = 1_000;
const maxKeywordsLength = 10_000;

/**
 * Returns the tags without duplicates, in order, of the first 1,000 values; at most 100, without those over
 * 200 characters.
 */
export function parseTags(values: readonly string[]): string[] {
  const tags = new Map<string, string>();
  for (const value of values.slice(0, maxValues)) {
    const tag = value.length > maxStatedLength ? null : parseLine(value);
    if (tag === null || tag.length > maxTagLength || tags.size === maxTags) continue;
    if (!tags.has(tag.toLowerCase())) tags.set(tag.toLowerCase(), tag);
  }
  return [...tags.values()];
}

/** Returns the tags of texts that separate them by comma or semicolon, of the first 1,000 as `parseTags`. */
export function parseKeywords(values: readonly string[]): string[] {
  const found: string[] = [];
  for (const value of values) {
    if (found.length >= maxValues) break;
    found.push(...value.slice(0, maxKeywordsLength).split(/[,;]/, maxValues));
  }
  return parseTags(found);
}
