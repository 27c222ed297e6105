import type { Steps } from "../../../parsers/steps.ts";
import { isStated, maxNameLength, mediaNames } from "./media-names.ts";

/** Characters that are searched between two pauses. */
const stepLength = 256 * 1024;
const maxNames = 10_000;

/** Returns where the stated names in `text` end that may be of media; searches 10,000 at most. */
export function* findNames(text: string): Steps<number[]> {
  const names: number[] = [];
  let count = 0;
  for (let start = 0; start < text.length && count < maxNames; start += stepLength) {
    const pattern = new RegExp(mediaNames, "gi");
    const from = Math.max(0, start - maxNameLength);
    const part = text.slice(from, start + stepLength + maxNameLength);
    pattern.lastIndex = start - from;
    for (let match = pattern.exec(part); match !== null; match = pattern.exec(part)) {
      const at = from + match.index;
      if (at >= start + stepLength || count === maxNames) break;
      if (isStated(text, at)) names.push(at + match[0].length - 1);
      if (++count % 100 === 0) yield;
    }
    yield;
  }
  return names;
}
