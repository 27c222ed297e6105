import type { Steps } from "../../../parsers/steps.ts";
import { fileNames } from "./data.ts";
import { endOfSlash, endOfString, isQuote, isWordCode } from "./tokens.ts";

/** Where a script names no medium's file. */
export interface Outline {
  /** The closing bracket of each longer pair of brackets without such a name, by its opening one. */
  readonly empty: ReadonlyMap<number, number>;
  /** Index of the last name. */
  readonly last: number;
}

const SPACE = 32;
const SLASH = 47;
const BRACE = 123;
const BRACKET = 91;
const PARENTHESIS = 40;
const stepLength = 32 * 1024;
/** What is shorter is read: it may describe a medium that stands beside it. */
const minLength = 250;
const maxNames = 10_000;
const maxDepth = 10_000;

/**
 * Returns what of a script need not be read. Brackets are matched without a look at what stands between
 * them, which takes a fraction of the time of reading it.
 */
export function* outlineScript(text: string): Steps<Outline> {
  const names = yield* indexNames(text);
  const last = names.at(-1) ?? -1;
  const empty = new Map<number, number>();
  const opened: number[] = [];
  const slashes = { failedUntil: 0 };
  let passed = 0;
  let before = 0;
  for (let at = 0; at < text.length && (at <= last || opened.length > 0);) {
    const stepEnd = Math.min(text.length, at + stepLength);
    for (; at < stepEnd; at++) {
      const code = text.charCodeAt(at);
      if (code <= SPACE) continue;
      if (isQuote(code)) at = endOfString(text, at);
      else if (code === SLASH) at = endOfSlash(text, at, endsValue(text, at, before), slashes);
      else if (code === BRACE || code === BRACKET || code === PARENTHESIS) {
        if (opened.length < maxDepth) opened.push(at);
      } else if (code === BRACE + 2 || code === BRACKET + 2 || code === PARENTHESIS + 1) {
        const start = opened.pop() ?? at;
        while ((names[passed] ?? Infinity) < at) passed++;
        const isEmpty = (names[passed - 1] ?? -1) < start;
        if (isEmpty && at - start >= minLength) empty.set(start, at);
      }
      before = code;
    }
    yield;
  }
  return { empty, last };
}

function* indexNames(text: string): Steps<number[]> {
  const names: number[] = [];
  const pattern = new RegExp(fileNames, "g");
  while (names.length < maxNames) {
    const match = pattern.exec(text);
    if (match === null) break;
    names.push(match.index);
    if (names.length % 100 === 0) yield;
  }
  return names;
}

/** Whether a slash here divides: a value ends before it. */
function endsValue(text: string, at: number, before: number): boolean {
  if (!isWordCode(before)) return isQuote(before) || [41, 93, 125].includes(before);
  return !/(?:return|typeof|case)\s*$/.test(text.slice(Math.max(0, at - 10), at));
}
