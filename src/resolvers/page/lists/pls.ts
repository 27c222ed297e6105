import { parseDuration } from "../../../parsers/quantities.ts";
import { parseLine } from "../../../parsers/text.ts";
import { tryParseUrl } from "../../../parsers/url.ts";
import { SliceBuilder } from "../../entries.ts";
import type { MediaList } from "./feed.ts";

const maxEntries = 10_000;
const line = /^[ \t]*(file|title|length)(\d{1,5})[ \t]*=([^\r\n]{0,16384})/gim;

/**
 * Reads a PLS, the list of URLs that radio stations publish: `File1=URL`, `Title1=…`, `Length1=SECONDS`, by their numbers; `start`: entries
 * before those that are wanted. What is no URL over http or https is left out. Returns null if it lists nothing.
 */
export function readPls(text: string, url: URL, start: number): MediaList | null {
  const stated = new Map<number, Partial<Record<string, string>>>();
  for (const [, name = "", digits, value = ""] of text.matchAll(line)) {
    const number = Number(digits);
    const entry = stated.get(number) ?? {};
    if (!stated.has(number) && stated.size === maxEntries) continue;
    stated.set(number, { [name.toLowerCase()]: value.trim(), ...entry });
  }
  const entries = new SliceBuilder(start);
  for (const [, { file, title, length }] of [...stated].toSorted(([a], [b]) => a - b)) {
    const medium = tryParseUrl(file, url);
    if (medium === null) continue;
    entries.add(() => ({
      url: medium.href,
      title: parseLine(title),
      duration: parseDuration(length),
      thumbnail: null,
      uploaded_at: null,
    }));
  }
  return entries.count === 0 ? null : { metadata: {}, slice: entries.build() };
}
