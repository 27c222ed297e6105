import { jsonInBase64, urlInBase64 } from "./media-names.ts";

/** A longer text is decoded in pieces, UTF-16 code units: what has much to replace would take much memory at once. */
const pieceLength = 32 * 1024;
const escape = /\\(?:u\{([\da-f]{1,6})\}|u([\da-f]{4})|x([\da-f]{2})|\r?\n|([^]))/gi;
/**
 * An object or an array, also with a name before it as in the rows of React's server components (`5:{`); not
 * a list of URLs with labels (`[360p]https:`).
 */
const dataStart = new RegExp(
  String.raw`^\s*(?:(?:[\w$]{1,8}:)?(?:\{|\[(?![\w ]{1,30}\][\w/])|%7b|%5b)|${jsonInBase64})`,
  "i",
);
const jsonStart = new RegExp(`^${jsonInBase64}`);
const urlStart = new RegExp(`^${urlInBase64}`);
/** How far data is searched for in a text. */
const maxSearchLength = 8_192;
const controls = new Map("nrtbfv0".split("").map((name, index) => [name, "\n\r\t\b\f\v\0"[index] ?? ""]));

/** The references that Angular writes in the state of a page, in the order in which they can be replaced. */
const angularReferences = [
  ["&q;", '"'],
  ["&s;", "'"],
  ["&l;", "<"],
  ["&g;", ">"],
  ["&a;", "&"],
] as const;

/** Returns an object that Angular has written (`{&q;src&q;:…`) as JSON; any other text as it is. */
export function decodeAngularState(text: string): string {
  if (!/^\s{0,10}\{&q;/.test(text.slice(0, 20))) return text;
  const parts: string[] = [];
  for (let at = 0; at < text.length;) {
    const end = Math.min(at + pieceLength, text.length);
    // A reference is not cut.
    const last = lastBefore(text, "&", end, 2);
    const cut = end < text.length && last > at ? last : end;
    parts.push(
      angularReferences.reduce(
        (decoded, [reference, character]) => decoded.replaceAll(reference, character),
        text.slice(at, cut),
      ),
    );
    at = cut;
  }
  return parts.join("");
}

/** Returns JSON that is given in base64; any other text as it is, also one that is in base64 only in part. */
export function decodeJsonInBase64(text: string): string {
  if (!jsonStart.test(text) || !/^[\w+/-]+={0,2}$/.test(text.trimEnd())) return text;
  return Buffer.from(text, "base64").toString("utf8");
}

/** Returns an absolute URL that is given in base64; any other text as it is. */
export function decodeUrlInBase64(text: string): string {
  return urlStart.test(text) ? Buffer.from(text, "base64").toString("utf8") : text;
}

/** Returns the value of a string literal (ECMA-262 §12.9.4), given without its quotes. */
export function unescapeString(source: string): string {
  return source.replace(escape, (_, point?: string, unit?: string, byte?: string, other?: string) => {
    const code = Number.parseInt(point ?? unit ?? byte ?? "", 16);
    if (code <= 0x10ffff) return String.fromCodePoint(code);
    return other === undefined ? "" : (controls.get(other) ?? other);
  });
}

/** Like `unescapeString`, and decodes a text that is percent-encoded. */
export function unescapeText(source: string): string {
  const parts: string[] = [];
  let at = 0;
  while (at < source.length) {
    let end = Math.min(at + pieceLength, source.length);
    // An escape sequence is not cut: it starts with the last backslash of an odd number of them.
    const last = lastBefore(source, "\\", end, 11);
    if (end < source.length && last > at + 1) end = startOfRun(source, last);
    parts.push(unescapeString(source.slice(at, end)));
    at = end;
  }
  const text = parts.join("");
  return isPercentEncoded(text) ? (decodePercents(text) ?? "") : text;
}

/** Whether the text is an object or an array in percent-encoding. */
export function isPercentEncoded(text: string): boolean {
  return /^\s{0,10}%(?:7b|5b)/i.test(text.slice(0, 20));
}

/** Returns where `mark` stands last among the `count` characters before `end`; -1: nowhere. */
function lastBefore(text: string, mark: string, end: number, count: number): number {
  const start = Math.max(0, end - count);
  const at = text.slice(start, end).lastIndexOf(mark);
  return at < 0 ? -1 : start + at;
}

function startOfRun(source: string, last: number): number {
  let start = last;
  while (start > 0 && last - start < 1_000 && source[start - 1] === "\\") start--;
  return start;
}

/** Returns a text that is percent-encoded as it was before; undefined if it is none. */
export function decodePercents(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/**
 * Returns where data begins in a text as written: at its start, at the first quoted name before a colon of JSON that
 * may be cut anywhere, or at a tag of a player; -1: nowhere.
 */
export function startOfData(source: string): number {
  if (dataStart.test(source.slice(0, 50))) return 0;
  if (!source.includes("\\") && !source.includes("<")) return -1;
  return source.slice(0, maxSearchLength).search(/\\["'][\w$-]{1,50}\\["']\s?:|<(?:video|audio|source)\s/i);
}
