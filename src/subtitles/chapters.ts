import type { StatedChapter } from "../model/entry.ts";
import { readCueText } from "../remux/cue-text.ts";
import { readSubtitles } from "./read.ts";
import { decodeSubtitles } from "./text.ts";

/**
 * Reads chapters in WebVTT (W3C WebVTT §1.5), where each cue is one and its text the title, or in the JSON of podcasts
 * (https://podcasting2.org/docs/podcast-namespace/tags/chapters), without those that its table of contents leaves out.
 *
 * @throws ServiceError as `readSubtitles`
 */
export function readChapters(bytes: Uint8Array): StatedChapter[] {
  const listed = readJson(bytes);
  if (listed !== undefined) return listed.flatMap(readJsonChapter);
  return readSubtitles(bytes).cues.map(({ startS, endS, text }) => {
    return { start: startS, end: endS, title: readCueText(text).text };
  });
}

/** Returns its list of chapters; undefined if it is something else. */
function readJson(bytes: Uint8Array): unknown[] | undefined {
  const text = decodeSubtitles(bytes).trimStart();
  if (!text.startsWith("{")) return undefined;
  try {
    const { chapters } = JSON.parse(text) as { chapters?: unknown };
    return Array.isArray(chapters) ? chapters : undefined;
  } catch {
    return undefined;
  }
}

function readJsonChapter(stated: unknown): StatedChapter[] {
  const { startTime, endTime, title, toc } = (stated ?? {}) as Readonly<Record<string, unknown>>;
  if (toc === false) return [];
  return [{ start: seconds(startTime), end: seconds(endTime), title: typeof title === "string" ? title : null }];
}

const seconds = (stated: unknown): number | null =>
  typeof stated === "number" && Number.isFinite(stated) ? stated : null;
