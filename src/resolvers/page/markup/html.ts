import { mediaExtension } from "../../../parsers/media-type.ts";
import { isDataPrefix, isLetter, isLink, isMicrodataName, isNameEnd, isSpace, NameShapes } from "./characters.ts";
import type { HtmlSink } from "./html-sink.ts";

/** Longer tags are ignored; UTF-16 code units. */
const maxTagLength = 256 * 1024;
/** Shorter chunks are joined first: scanning many tiny ones would be slow. UTF-16 code units. */
const minScanLength = 16 * 1024;
const rawText = "script style textarea title xmp iframe noembed noframes";
const rawTextElements = new Set(rawText.split(" "));

/** The extension of a medium's file, anywhere in a link's attributes. */
const mediaFile = new RegExp(String.raw`\.${mediaExtension}\b`, "i");

const QUOTE = 34;
const APOSTROPHE = 39;
const HYPHEN = 45;
const SLASH = 47;
const EQUALS = 61;
const GREATER = 62;
/** States of the search for a tag's end; within quotes the state is the quote's own code. */
const BETWEEN = 0;
const BEFORE_VALUE = 1;
const IN_UNQUOTED_VALUE = 2;

type Mode = "content" | "comment" | "bogus-comment" | "raw-text" | "long-tag";

/**
 * Tokenizes streamed HTML as far as metadata needs it: tags, comments and raw-text elements as in the
 * HTML Standard §13.2.5, `<noscript>` as markup, no tree. The result does not depend on where chunks
 * end. Takes linear time, and memory for a chunk and one tag, on any input.
 * With htmlparser2's Tokenizer in its place, the page resolver reads 1.8 times fewer saved pages a second.
 */
export class HtmlScanner {
  readonly #sink: HtmlSink;
  readonly #shapes: NameShapes;
  #waiting: string[] = [];
  #waitingLength = 0;
  /** What has not been scanned yet starts at `#at`. */
  #buffer = "";
  #at = 0;
  #mode: Mode = "content";
  #rawName = "";
  #rawIsWanted = false;
  #foreignDepth = 0;
  #tagState = BETWEEN;
  #tagHasMicrodata = false;
  #tagMayHoldData = false;

  constructor(sink: HtmlSink) {
    this.#sink = sink;
    this.#shapes = new NameShapes([...sink.elements, ...rawTextElements, "svg", "math"]);
  }

  write(chunk: string): void {
    this.#waiting.push(chunk);
    this.#waitingLength += chunk.length;
    if (this.#waitingLength >= minScanLength) this.#scan(false);
  }

  end(): void {
    this.#scan(true);
  }

  /** Scans what has been written; a construct that the buffer's end cuts off stays in it. */
  #scan(isLast: boolean): void {
    const chunk = this.#waiting.length === 1 ? (this.#waiting[0] ?? "") : this.#waiting.join("");
    this.#buffer = this.#at < this.#buffer.length ? this.#buffer.slice(this.#at) + chunk : chunk;
    this.#at = 0;
    this.#waiting = [];
    this.#waitingLength = 0;
    while (this.#at < this.#buffer.length && this.#step(isLast));
  }

  /** Scans one construct. Returns false if that needs more input. */
  #step(isLast: boolean): boolean {
    if (this.#mode === "content") return this.#stepContent(isLast);
    if (this.#mode === "raw-text") return this.#stepRawText(isLast);
    if (this.#mode === "comment") return this.#skipPast("-->");
    if (this.#mode === "bogus-comment") return this.#skipPast(">");
    const end = this.#findTagEnd(this.#at, this.#tagState);
    this.#at = end < 0 ? this.#buffer.length : end + 1;
    if (end >= 0) this.#mode = "content";
    return end >= 0;
  }

  #skipPast(end: string): boolean {
    const found = this.#buffer.indexOf(end, this.#at);
    this.#at = found < 0 ? Math.max(this.#at, this.#buffer.length - end.length + 1) : found + end.length;
    if (found >= 0) this.#mode = "content";
    return found >= 0;
  }

  #stepContent(isLast: boolean): boolean {
    const less = this.#buffer.indexOf("<", this.#at);
    const textEnd = less < 0 ? this.#buffer.length : less;
    if (textEnd > this.#at && this.#sink.wantsText) this.#sink.text(this.#buffer.slice(this.#at, textEnd));
    this.#at = textEnd;
    if (less < 0) return false;
    if (!isLast && this.#buffer.length - less < 4) return false;
    const next = this.#buffer.charCodeAt(less + 1);
    if (isLetter(next)) return this.#stepStartTag(less);
    if (next === SLASH && isLetter(this.#buffer.charCodeAt(less + 2))) return this.#stepEndTag(less);
    if (this.#buffer.startsWith("<!--", less)) this.#mode = "comment";
    else if (next === 33 || next === 63 || next === SLASH) this.#mode = "bogus-comment";
    else if (this.#sink.wantsText) this.#sink.text("<");
    // `<!-->` is a complete comment, so the search for `-->` starts within `<!--`.
    this.#at = this.#mode === "comment" ? less + 2 : less + 1;
    return true;
  }

  #stepStartTag(less: number): boolean {
    this.#tagHasMicrodata = false;
    this.#tagMayHoldData = false;
    const nameEnd = this.#findNameEnd(less + 1);
    const end = this.#findTagEnd(nameEnd, BETWEEN);
    const length = (end < 0 ? this.#buffer.length : end) - less;
    if (length > maxTagLength) {
      this.#mode = end < 0 ? "long-tag" : "content";
      this.#at = end < 0 ? this.#buffer.length : end + 1;
      return end >= 0;
    }
    if (end < 0) return false;
    this.#at = end + 1;
    if (!this.#tagMayHoldData && isLink(this.#buffer, less + 1, nameEnd))
      this.#tagMayHoldData = mediaFile.test(this.#buffer.slice(nameEnd, end));
    const isOfUse = this.#tagHasMicrodata || this.#tagMayHoldData || this.#sink.wantsAllTags;
    if (isOfUse || this.#shapes.has(this.#buffer, less + 1, nameEnd))
      this.#openTag(this.#buffer.slice(less + 1, nameEnd).toLowerCase(), nameEnd, end);
    return true;
  }

  #openTag(name: string, nameEnd: number, end: number): void {
    const isSelfClosed = this.#buffer.charCodeAt(end - 1) === SLASH;
    if (name === "svg" || name === "math") this.#foreignDepth += isSelfClosed ? 0 : 1;
    const isForeign = this.#foreignDepth > 0;
    const hasMicrodata = this.#tagHasMicrodata;
    const mayHoldData = this.#tagMayHoldData;
    const isReported = hasMicrodata || mayHoldData || this.#sink.wantsAllTags || this.#sink.elements.has(name);
    const source = isReported ? this.#buffer.slice(nameEnd, end) : "";
    const tag = { name, source, hasMicrodata, mayHoldData, isForeign };
    const wantsRaw = isReported && this.#sink.open(tag);
    if (!rawTextElements.has(name) || (isForeign && (isSelfClosed || name !== "script"))) return;
    this.#mode = "raw-text";
    this.#rawName = name;
    this.#rawIsWanted = wantsRaw;
  }

  /** An end tag ends at the first `>`, also within quotes: its attributes are ignored. */
  #stepEndTag(less: number): boolean {
    const end = this.#buffer.indexOf(">", less);
    const length = (end < 0 ? this.#buffer.length : end) - less;
    if (end < 0 && length <= maxTagLength) return false;
    this.#at = end < 0 ? this.#buffer.length : end + 1;
    if (end < 0) this.#mode = "bogus-comment";
    if (length > maxTagLength) return end >= 0;
    const isOfUse = this.#sink.wantsAllTags || isSpace(this.#buffer.charCodeAt(end - 1));
    if (!isOfUse && !this.#shapes.has(this.#buffer, less + 2, end)) return true;
    const name = this.#buffer
      .slice(less + 2, end)
      .trimEnd()
      .toLowerCase();
    if (this.#foreignDepth > 0 && (name === "svg" || name === "math")) this.#foreignDepth--;
    if (this.#sink.wantsAllTags || this.#sink.elements.has(name)) this.#sink.close(name);
    return true;
  }

  /** Raw text ends only at the end tag of its own element (HTML Standard §13.2.5.12). */
  #stepRawText(isLast: boolean): boolean {
    const first = this.#rawName.charCodeAt(0);
    let found = this.#buffer.indexOf("</", this.#at);
    while (found >= 0) {
      const nameEnd = found + 2 + this.#rawName.length;
      if (nameEnd >= this.#buffer.length) break;
      const isAlike = (this.#buffer.charCodeAt(found + 2) | 32) === first;
      if (isAlike && isNameEnd(this.#buffer.charCodeAt(nameEnd))) {
        if (this.#buffer.slice(found + 2, nameEnd).toLowerCase() === this.#rawName) break;
      }
      found = this.#buffer.indexOf("</", found + 2);
    }
    const isEnd = found >= 0 && found + 2 + this.#rawName.length < this.#buffer.length;
    const isUndecided = found >= 0 && !isEnd && !isLast;
    const mayStart = !isLast && this.#buffer.endsWith("<");
    const textEnd = isEnd || isUndecided ? found : this.#buffer.length - (mayStart ? 1 : 0);
    if (this.#rawIsWanted && textEnd > this.#at) this.#sink.text(this.#buffer.slice(this.#at, textEnd));
    this.#at = Math.max(this.#at, textEnd);
    if (isEnd) this.#mode = "content";
    return isEnd;
  }

  #findNameEnd(start: number): number {
    let i = start;
    for (; i < this.#buffer.length; i++) {
      const code = this.#buffer.charCodeAt(i);
      if (isNameEnd(code)) break;
      if (code === HYPHEN) this.#tagMayHoldData = true;
    }
    return i;
  }

  /** Returns the index of the tag's `>`, or -1; `#tagState` is then where the next chunk resumes. */
  #findTagEnd(start: number, initial: number): number {
    const source = this.#buffer;
    let state = initial;
    for (let i = start; i < source.length; i++) {
      if (state === QUOTE || state === APOSTROPHE) {
        i = source.indexOf(state === QUOTE ? '"' : "'", i);
        if (i < 0) break;
        state = BETWEEN;
        continue;
      }
      const code = source.charCodeAt(i);
      if (code === GREATER) return i;
      if (state === BETWEEN) {
        if (code === EQUALS) state = BEFORE_VALUE;
        else if (code === HYPHEN && isDataPrefix(source, i)) this.#tagMayHoldData = true;
        else if ((code | 32) === 105 && isMicrodataName(source, i)) this.#tagHasMicrodata = true;
      } else if (isSpace(code)) {
        if (state === IN_UNQUOTED_VALUE) state = BETWEEN;
      } else if (state === BEFORE_VALUE) {
        state = code === QUOTE || code === APOSTROPHE ? code : IN_UNQUOTED_VALUE;
      }
    }
    this.#tagState = state;
    return -1;
  }
}
