import type { Steps } from "../../../parsers/steps.ts";
import { maxNameLength, mediaNames } from "./media-names.ts";

/** Characters that are searched between two pauses. */
const stepLength = 256 * 1024;
const maxNames = 10_000;
const reach = 300;
const address = /[:=]\s?(?:\\{0,3}["'`]|&quot;)(?:https?:)?\\{0,3}\/[^*]/;

/** Returns the indexes of the stated names in `text` that may be of media; searches 10,000 at most. */
export function* findNames(text: string): Steps<number[]> {
  const names: number[] = [];
  let count = 0;
  for (let start = 0; start < text.length && count < maxNames; start += stepLength) {
    const pattern = new RegExp(mediaNames, "gi");
    const part = text.slice(start, start + stepLength + maxNameLength);
    for (let match = pattern.exec(part); match !== null; match = pattern.exec(part)) {
      if (match.index >= stepLength || count === maxNames) break;
      const at = start + match.index;
      if (isStated(text, at)) names.push(at);
      if (++count % 100 === 0) yield;
    }
    yield;
  }
  return names;
}

/**
 * Whether the name at `at` is stated: its text is neither added to others nor compared with others. Near a media
 * type must be an address: programs know types too, without the media.
 */
function isStated(text: string, at: number): boolean {
  const before = text.slice(Math.max(0, at - reach), at);
  const quote = Math.max(...['"', "'", "`"].map((each) => before.lastIndexOf(each)));
  const operator = before.slice(Math.max(0, quote - 10), Math.max(0, quote));
  if (/(?:[+!=]=|\+)\s{0,9}$/.test(operator)) return false;
  if (/["'`]\s?[!=]=/.test(text.slice(at + 1, at + 12))) return false;
  return text[at] === "." || address.test(before + text.slice(at, at + reach));
}
