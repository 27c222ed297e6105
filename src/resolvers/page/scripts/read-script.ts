import { parseJson } from "../../../model/schema.ts";
import { addText, addToParent, createData, type Data } from "./data.ts";
import {
  decodeAngularState,
  decodeJsonInBase64,
  decodeUrlInBase64,
  isPercentEncoded,
  unescapeText,
} from "./encodings.ts";
import { findNames } from "./media-names.ts";
import { type Nested, ScriptReader } from "./script-reader.ts";
import { outlineScript, endOfString } from "./tokens.ts";

const maxNestedTexts = 50;
/** How many times as long as the script the texts in it that are read may be together: one may be in another in another. */
const maxNestedExpansion = 2;

/**
 * Reads JavaScript or JSON into `root`: the literals in it, with the names of properties, variables and
 * calls that they belong to. It is no parser: errors in the syntax are passed over, nothing is evaluated,
 * and a text that an expression takes part in (`"a" + b`) is left out. Strings that hold data are read too.
 */
export function readScript(source: string, root: Data): void {
  const pending: Nested[] = [{ source, isEscaped: isPercentEncoded(source), data: root }];
  let count = 0;
  let left = maxNestedExpansion * source.length;
  for (let next = pending.shift(); next !== undefined; next = pending.shift()) {
    const decoded = decodeJsonInBase64(next.source);
    const text = next.isEscaped ? unescapeText(decoded) : inlineArguments(decodeAngularState(decoded));
    const names = findNames(text);
    if (names.length === 0) continue;
    if (!readFlatData(text, next.data)) {
      const reader = new ScriptReader(text, outlineScript(text, names), next.data);
      reader.read();
      for (const nested of reader.nested) {
        left -= nested.source.length;
        if (count++ < maxNestedTexts && left >= 0) pending.push(nested);
      }
    }
    if (next.data !== root) addToParent(next.data);
  }
}

/** Longer lists are not read as such, UTF-16 code units. */
const maxFlatLength = 256 * 1024;
const maxValues = 20_000;
const maxDepth = 50;
const maxNameLength = 100;
/** How many times as long as the list the texts that are referred to may be together: a text may be referred to thousands of times. */
const maxExpansion = 4;

/** The start of such a list: an object of indexes, or a type's name with an index. */
const flatStart = /^\s*\[\s*(?:\{\s*"[\w$]{1,60}"\s*:\s*-?\d|\[\s*"\w{1,30}"\s*,\s*\d)/;

/** Such a list is flat: what is nested deeper is another text, which could take long to parse. */
const nesting = /(?:[[{]\s{0,9}){6}/;

/**
 * Reads a list of values that refer to each other by index into `root`, as Nuxt (devalue) and React Router
 * (turbo-stream) write the data of a page: `[{"video": 1}, {"src": 2}, "/1.mp4"]`. Returns false for any other text.
 */
function readFlatData(text: string, root: Data): boolean {
  const values = flatStart.test(text.slice(0, 200)) ? parseList(text) : null;
  if (values === null) return false;
  const seen = new Set<number>();
  let left = maxExpansion * text.length;

  function visit(index: number, key: string, parent: Data, depth: number): void {
    const value = values?.[index];
    if (typeof value === "string" && value.length <= left) {
      left -= value.length;
      addText(parent, key, value);
    }
    if (typeof value === "number") addText(parent, key, value.toString());
    if (typeof value !== "object" || value === null) return;
    if (seen.has(index) || seen.size === maxValues || depth === maxDepth) return;
    seen.add(index);
    // `["Reactive", 1]` is the value at 1.
    const isTyped = Array.isArray(value) && typeof value[0] === "string";
    if (isTyped) {
      if (Number.isInteger(value[1])) visit(value[1], key, parent, depth + 1);
      return;
    }
    const data = createData(Array.isArray(value) ? "array" : "object", key, parent);
    for (const [name, at] of Object.entries(value)) {
      if (Number.isInteger(at)) visit(Number(at), nameOf(name, data), data, depth + 1);
    }
    addToParent(data);
  }

  /** React Router's names are references too: `_1` is the text at 1. */
  function nameOf(name: string, { kind, name: ofList }: Data): string {
    if (kind === "array") return ofList;
    const at = /^_(\d{1,6})$/.exec(name)?.[1];
    const stated = at === undefined ? name : values?.[Number(at)];
    return typeof stated === "string" ? stated.slice(0, maxNameLength) : "";
  }

  visit(0, "", root, 0);
  return true;
}

function parseList(text: string): readonly unknown[] | null {
  if (text.length > maxFlatLength || nesting.test(text)) return null;
  const list = parseJson(text);
  // Each text is decoded once, however often it is referred to.
  return Array.isArray(list) ? list.map((each) => (typeof each === "string" ? decodeUrlInBase64(each) : each)) : null;
}

/** Longer scripts are left as they are, UTF-16 code units. */
const maxLength = 256 * 1024;
const maxHeadLength = 20_000;
const maxArgumentsLength = 64 * 1024;
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
function inlineArguments(text: string): string {
  if (text.length > maxLength) return text;
  const [head, parameters] = callStart.exec(text.slice(0, maxHeadLength)) ?? [];
  const end = text.lastIndexOf("}(");
  if (head === undefined || parameters === undefined || end < head.length) return text;
  const stated = readArguments(text.slice(end + 2, end + 2 + maxArgumentsLength));
  const byName = new Map(parameters.split(",").map((name, index) => [name, stated[index]]));
  return replaceReferences(text.slice(head.length, end), byName, text.length);
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
function replaceReferences(text: string, byName: ReadonlyMap<string, string | undefined>, maxAdded: number): string {
  const parts: string[] = [];
  let left = maxAdded;
  let done = 0;
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
  }
  return parts.join("") + text.slice(done);
}
