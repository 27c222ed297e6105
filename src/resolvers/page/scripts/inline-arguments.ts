import type { Steps } from "../../../parsers/steps.ts";
import { endOfString } from "./tokens.ts";

/** Longer scripts are left as they are, UTF-16 code units. */
const maxLength = 256 * 1024;
const maxHeadLength = 20_000;
const maxArgumentsLength = 64 * 1024;
/** Characters that are read between two pauses. */
const stepLength = 32 * 1024;
const callStart = /^\s{0,20}[\w.$]{1,60}\s?=\s?\(function\(([\w$]+(?:,[\w$]+){0,5000})\)\{/;
/** A name that is a value. */
const reference = /[A-Za-z_$][\w$]{0,10}(?=[,}\])])/y;
/** An argument that is no string: an empty object or array, a call, or a literal. */
const argument = /\{\}|\[\]|\w{1,30}\([^()"]{0,100}\)|[^,"()]{1,100}/y;
/** What stands before a value. */
const valueMarks = new Set(Array.from(":,[(", (mark) => mark.charCodeAt(0)));
const QUOTE = 34;

/**
 * Returns a script that assigns the result of a function called at once, as Nuxt 2 writes the state of a page
 * (`window.__NUXT__=(function(a,b){return {src:a}}("/1.mp4",null))`), with the arguments in the places of the
 * parameters; any other text as it is. The result is at most twice as long: a reference whose argument would make it longer
 * stays, because a short page could name a long text thousands of times.
 */
export function* inlineArguments(text: string): Steps<string> {
  if (text.length > maxLength) return text;
  const [head, parameters] = callStart.exec(text.slice(0, maxHeadLength)) ?? [];
  const end = text.lastIndexOf("}(");
  if (head === undefined || parameters === undefined || end < head.length) return text;
  const stated = readArguments(text.slice(end + 2, end + 2 + maxArgumentsLength));
  yield;
  const byName = new Map(parameters.split(",").map((name, index) => [name, stated[index]]));
  return yield* replaceReferences(text.slice(head.length, end), byName, text.length);
}

function readArguments(text: string): string[] {
  const found: string[] = [];
  for (let at = 0; at < text.length;) {
    const start = at;
    argument.lastIndex = at;
    if (text.charCodeAt(at) === QUOTE) at = endOfString(text, at) + 1;
    else at += argument.exec(text)?.[0].length ?? 0;
    if (at > start) found.push(text.slice(start, at));
    else at++;
  }
  return found;
}

/** Replaces the names that are values; adds at most `maxAdded` characters. */
function* replaceReferences(
  text: string,
  byName: ReadonlyMap<string, string | undefined>,
  maxAdded: number,
): Steps<string> {
  const parts: string[] = [];
  let left = maxAdded;
  let done = 0;
  let stepEnd = stepLength;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    else if (valueMarks.has(code)) {
      reference.lastIndex = at + 1;
      const [name = ""] = reference.exec(text) ?? [];
      const literal = byName.get(name);
      if (literal !== undefined && literal.length <= left) {
        parts.push(text.slice(done, at + 1), literal);
        left -= literal.length;
        done = at + 1 + name.length;
      }
      at += name.length;
    }
    if (at < stepEnd) continue;
    yield;
    stepEnd = at + stepLength;
  }
  return parts.join("") + text.slice(done);
}
