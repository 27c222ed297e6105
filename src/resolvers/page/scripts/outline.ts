import type { Steps } from "../../../parsers/steps.ts";
import { endOfSlash, endOfString, isQuote, isWordCode } from "./tokens.ts";

/** Which parts of a script name no medium's file. */
export interface Outline {
  /** The closing bracket of each longer pair of brackets without such a name, by its opening one. */
  readonly empty: ReadonlyMap<number, number>;
  /** Index of the last name. */
  readonly last: number;
}

const SPACE = 32;
const PLAIN = 0;
const QUOTE = 1;
const SLASH = 2;
const OPEN = 3;
const CLOSE = 4;
/** What a character is, by its code. */
const kinds = new Uint8Array(128);
for (const [kind, characters] of [
  [QUOTE, "\"'`"],
  [SLASH, "/"],
  [OPEN, "{[("],
  [CLOSE, "}])"],
] as const) {
  for (const character of characters) kinds[character.charCodeAt(0)] = kind;
}
const stepLength = 32 * 1024;
/** Shorter pairs are faster to read than to record. */
const minLength = 32;
const maxDepth = 10_000;
const maxSpaces = 100;

/**
 * Returns which parts of a script need not be read. It matches brackets without reading the text between them, which takes
 * a fraction of the time.
 */
export function* outlineScript(text: string, names: readonly number[]): Steps<Outline> {
  const last = names.at(-1) ?? -1;
  const empty = new Map<number, number>();
  const opened: number[] = [];
  const slashes = { failedUntil: 0 };
  let passed = 0;
  for (let at = 0; at < text.length && (at <= last || opened.length > 0);) {
    const stepEnd = Math.min(text.length, at + stepLength);
    for (; at < stepEnd; at++) {
      const code = text.charCodeAt(at);
      const kind = code < 128 ? kinds[code] : PLAIN;
      if (kind === PLAIN) continue;
      if (kind === QUOTE) at = endOfString(text, at);
      else if (kind === SLASH) at = endOfSlash(text, at, endsValue(text, at), slashes);
      else if (kind === OPEN) {
        if (opened.length < maxDepth) opened.push(at);
      } else {
        const start = opened.pop() ?? at;
        while ((names[passed] ?? Infinity) < at) passed++;
        const isEmpty = (names[passed - 1] ?? -1) < start;
        if (isEmpty && at - start >= minLength) empty.set(start, at);
      }
    }
    yield;
  }
  return { empty, last };
}

/** Whether a slash at `at` divides: a value ends before it. */
function endsValue(text: string, at: number): boolean {
  let end = at;
  while (end > 0 && at - end < maxSpaces && text.charCodeAt(end - 1) <= SPACE) end--;
  if (end === 0) return false;
  const before = text.charCodeAt(end - 1);
  if (!isWordCode(before)) return isQuote(before) || [41, 93, 125].includes(before);
  return !/(?:return|typeof|case)$/.test(text.slice(Math.max(0, end - 6), end));
}
