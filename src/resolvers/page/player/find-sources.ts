import type { Steps } from "../../../parsers/steps.ts";
import { type Attributes, parseAttributes } from "../markup/attributes.ts";
import { fileNames } from "./data.ts";

/** A part of a page that names the file of a medium. */
export type PlayerSource = { script: string } | { name: string; attributes: Attributes };

/** Characters that are searched between two pauses, and how far a match may reach into the next ones. */
const stepLength = 512 * 1024;
const overlap = 16;
const maxSources = 500;
/** Names of files in texts and comments are passed over, so many at most. */
const maxMisses = 500;
/** Longer tags are ignored; UTF-16 code units. */
const maxTagLength = 256 * 1024;
/** How many `<` before the name of a file are taken for the start of its tag. */
const maxStarts = 4;

/**
 * Returns whether a page names the file of a medium, anywhere in its bytes. They are taken for Latin-1: the
 * page need not be kept as text, nor decoded again, only to find that there is none.
 */
export function* searchFileName(chunks: readonly Uint8Array[]): Steps<boolean> {
  let end = "";
  for (const { buffer, byteOffset, byteLength } of chunks) {
    const bytes = Buffer.from(buffer, byteOffset, byteLength);
    for (let at = 0; at < byteLength; at += stepLength) {
      const text = bytes.toString("latin1", at, Math.min(byteLength, at + stepLength));
      if (fileNames.test(text) || fileNames.test(end + text.slice(0, overlap))) return true;
      end = text.slice(-overlap);
      yield;
    }
  }
  return false;
}

/**
 * Returns the scripts and tags of a page that name the file of a medium, in page order, at most 500. It
 * goes from one name to the next and looks only there for what it stands in, which is several times
 * faster than to read all tags again.
 */
export function* findSources(html: string): Steps<PlayerSource[]> {
  const found: PlayerSource[] = [];
  const script = { start: 0, end: 0 };
  /** The last places of `<`, the nearest first. */
  let starts: number[] = [];
  let at = 0;
  let misses = 0;
  while (found.length < maxSources && misses < maxMisses) {
    const name = yield* findFileName(html, at);
    if (name < 0) break;
    while (script.end <= name && script.start >= 0) {
      script.start = indexOfTag(html, "<script", script.end);
      const end = script.start < 0 ? -1 : indexOfTag(html, "</script", script.start);
      script.end = end < 0 ? html.length : end;
      yield;
    }
    if (script.start >= 0 && script.start < name) {
      addScript(found, html.slice(script.start, script.end));
      at = script.end;
      continue;
    }
    starts = [...lastStarts(html, at, name), ...starts].slice(0, maxStarts);
    const tag = findTag(html, starts, name);
    if (tag === null) misses++;
    else {
      const attributes = parseAttributes(html.slice(tag.nameEnd, tag.end), maxTagLength);
      found.push({ name: html.slice(tag.start + 1, tag.nameEnd).toLowerCase(), attributes });
    }
    at = tag?.end ?? name + 1;
    yield;
  }
  return found;
}

function* findFileName(html: string, from: number): Steps<number> {
  for (let at = from; at < html.length; at += stepLength) {
    const index = html.slice(at, at + stepLength + overlap).search(fileNames);
    if (index >= 0 && isStated(html, at + index)) return at + index;
    if (index >= 0) at += index + 1 - stepLength;
    yield;
  }
  return -1;
}

const reach = 300;

/** Whether it is stated, not a part of a program that adds it to another text or compares it with one. */
function isStated(html: string, at: number): boolean {
  const before = html.slice(Math.max(0, at - reach), at);
  const quote = Math.max(...['"', "'", "`"].map((each) => before.lastIndexOf(each)));
  const operator = before.slice(Math.max(0, quote - 10), Math.max(0, quote));
  return !/\+=?\s{0,9}$/.test(operator) && !/["'`]\s?[!=]=/.test(html.slice(at + 1, at + 12));
}

/** JSON-LD is a vocabulary of its own. */
function addScript(found: PlayerSource[], element: string): void {
  const tagEnd = element.indexOf(">");
  if (tagEnd < 0 || /ld\+json/i.test(element.slice(0, Math.min(tagEnd, 1_000)))) return;
  found.push({ script: element.slice(tagEnd + 1) });
}

/** Returns the index of a tag in lower or upper case; -1 if there is none. */
function indexOfTag(html: string, tag: string, from: number): number {
  const lower = html.indexOf(tag, from);
  const upper = html.slice(from, lower < 0 ? html.length : lower).indexOf(tag.toUpperCase());
  return upper < 0 ? lower : from + upper;
}

function lastStarts(html: string, from: number, to: number): number[] {
  const text = html.slice(from, to);
  const starts: number[] = [];
  let before = text.length;
  while (starts.length < maxStarts && before > 0) {
    before = text.lastIndexOf("<", before - 1);
    if (before < 0) break;
    starts.push(from + before);
  }
  return starts;
}

interface Tag {
  start: number;
  nameEnd: number;
  end: number;
}

/** Returns the tag in which the text at `within` stands; null if it stands in none. */
function findTag(html: string, starts: readonly number[], within: number): Tag | null {
  for (const start of starts) {
    if (within - start > maxTagLength) return null;
    const name = /^<[a-z][^\s/>]{0,100}/i.exec(html.slice(start, start + 102))?.[0];
    if (name === undefined) continue;
    const nameEnd = start + name.length;
    const end = findTagEnd(html, nameEnd, start + maxTagLength);
    if (end > within) return { start, nameEnd, end };
  }
  return null;
}

/** Returns the index of the tag's `>`; -1 if it is not before `limit`. */
function findTagEnd(html: string, from: number, limit: number): number {
  const quotes = /=\s{0,10}(["'])|>/g;
  const text = html.slice(from, limit);
  for (let match = quotes.exec(text); match !== null; match = quotes.exec(text)) {
    if (match[1] === undefined) return from + match.index;
    const close = text.indexOf(match[1], quotes.lastIndex);
    if (close < 0) return -1;
    quotes.lastIndex = close + 1;
  }
  return -1;
}
