import { readCueText } from "../remux/cue-text.ts";
import { readSubtitles } from "./read.ts";

/** A chapter; times in seconds. */
export interface CueChapter {
  start: number;
  end: number;
  title: string;
}

/**
 * Reads chapters in WebVTT (W3C WebVTT §1.5): each cue is one, its text the title.
 *
 * @throws ServiceError as `readSubtitles`
 */
export function readChapters(bytes: Uint8Array): CueChapter[] {
  return readSubtitles(bytes).cues.map(({ startS, endS, text }) => {
    return { start: startS, end: endS, title: readCueText(text).text };
  });
}
