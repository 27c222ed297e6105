import type { Steps } from "../../../parsers/steps.ts";

/** Longer scripts are left as they are, UTF-16 code units: matching a string takes memory for each escape in it. */
const maxLength = 256 * 1024;
const maxArgumentsLength = 64 * 1024;
/** Values that are looked at between two pauses. */
const valuesPerStep = 1_000;
const start = /^\s{0,20}[\w.$]{1,60}\s?=\s?\(function\(([\w$]+(?:,[\w$]+){0,5000})\)\{/;
/** A string, or a name that is a value. */
const value = /"[^"\\]*(?:\\[^][^"\\]*)*(?:"|$)|([:,[(])([A-Za-z_$][\w$]{0,10})(?=[,}\])])/;
/** An argument: a string, another literal, or a call. */
const argument =
  /"[^"\\]*(?:\\[^][^"\\]*)*(?:"|$)|\{\}|\[\]|\w{1,30}\([^()"]{0,100}\)|[^,"()]{1,100}/g;

/**
 * Returns a script that assigns the result of a function called at once, as Nuxt 2 writes the state of a page
 * (`window.__NUXT__=(function(a,b){return {src:a}}("/1.mp4",null))`), with the arguments in the places of the
 * parameters; any other text as it is.
 */
export function* inlineArguments(text: string): Steps<string> {
  if (text.length > maxLength) return text;
  const [head, parameters] = start.exec(text.slice(0, 20_000)) ?? [];
  const end = text.lastIndexOf("}(");
  if (head === undefined || parameters === undefined || end < head.length) return text;
  const stated = text.slice(end + 2, end + 2 + maxArgumentsLength).match(argument) ?? [];
  yield;
  const byName = new Map(parameters.split(",").map((name, index) => [name, stated[index]]));
  const body = text.slice(head.length, end);
  const pattern = new RegExp(value, "g");
  const parts: string[] = [];
  let at = 0;
  let count = 0;
  for (let match = pattern.exec(body); match !== null; match = pattern.exec(body)) {
    const [, before, name = ""] = match;
    const literal = byName.get(name);
    if (before !== undefined && literal !== undefined) {
      parts.push(body.slice(at, match.index), before, literal);
      at = pattern.lastIndex;
    }
    if (++count % valuesPerStep === 0) yield;
  }
  return parts.join("") + body.slice(at);
}
