import { addText, addToParent, createData, type Data, isDescriptive, mark, maxTextLength } from "./data.ts";
import { mediaNames } from "./media-names.ts";
import { decodeJsonInBase64, isPercentEncoded, startOfData, unescapeString } from "./encodings.ts";
import {
  endOfSlash,
  endOfString,
  isDigit,
  isQuote,
  isWordCode,
  nextMark,
  type Outline,
  type SlashState,
} from "./tokens.ts";

/** Characters that are read before it is looked again whether all has been read. */
const stepLength = 16 * 1024;
const maxDepth = 200;
const maxKeyLength = 100;
/** Of a string that holds data itself, as the argument of `JSON.parse` does; characters. */
const maxNestedLength = 1024 * 1024;
/** How much of a script is read after the last name of a file. */
const afterLength = 4 * 1024;

const SLASH = 47;
const POINT = 46;
const WORD = "w";
const STRING = "s";

/** What a `{` or `[` may follow that starts a value. */
const valueStarts = new Set([":", "=", "(", ",", "[", "?", "|", "&", ""]);

/** A text within a text, and the data to read it into. */
export interface Nested {
  source: string;
  isEscaped: boolean;
  data: Data;
}

/** Reads one script into the data that it is given; collects the texts in it that hold data themselves. */
export class ScriptReader {
  readonly nested: Nested[] = [];
  readonly #text: string;
  readonly #outline: Outline;
  #at = 0;
  /** What is being read; `#closeBy` has its closing bracket and those of its ancestors. */
  #data: Data;
  readonly #closeBy: string[] = [];
  /** The token before: a punctuation mark, `WORD` or `STRING`. */
  #before = "";
  /** The last name or string, and the name that the next value belongs to. */
  #name = "";
  #key: string | null = null;
  readonly #slashes: SlashState = { failedUntil: 0 };

  constructor(text: string, outline: Outline, root: Data) {
    this.#text = text;
    this.#outline = outline;
    this.#data = root;
  }

  read(): void {
    while (this.#at < this.#text.length && !this.#hasEnded()) {
      const stepEnd = Math.min(this.#text.length, this.#at + stepLength);
      while (this.#at < stepEnd) this.#readToken();
    }
    // A cut or broken script leaves brackets open.
    for (let depth = this.#closeBy.length; depth > 0; depth--) this.#leave();
  }

  /** Whether the last name of a file and the objects around it have been read, or nothing more is taken. */
  #hasEnded(): boolean {
    if (this.#data.budget.fields === 0) return true;
    let data = this.#data;
    while (data.kind === "block" && data.parent !== null) data = data.parent;
    return this.#at > this.#outline.last + afterLength && data.kind === "block";
  }

  #readToken(): void {
    const code = this.#text.charCodeAt(this.#at);
    if (code <= 32) this.#at++;
    else if (isQuote(code)) this.#readString();
    else if (isWordCode(code)) this.#readWord();
    else if (code === SLASH) this.#readSlash();
    else this.#readMark(this.#text[this.#at++] ?? "");
  }

  #readString(): void {
    const start = this.#at;
    const end = endOfString(this.#text, start);
    this.#at = end + 1;
    const quote = this.#text[start];
    // A string that does not end on its line is none.
    if (this.#text[end] !== quote) return;
    const raw = this.#text.slice(start + 1, end);
    const hasHoles = quote === "`" && raw.slice(0, maxTextLength).includes("${");
    const before = this.#before;
    const next = nextMark(this.#text, this.#at);
    this.#before = STRING;
    if (raw.length <= maxKeyLength) this.#name = raw;
    if (next === ":" && before !== "?") return;
    const key = this.#key;
    this.#key = null;
    const isPart = before === "+" || before === "?" || next === "+" || next === ".";
    if (isPart || hasHoles || raw === "") return;
    this.#add(key ?? this.#nameOfArgument(), raw);
  }

  /** Returns the name of the call with the argument before this one, as in `set("file", "a.mp4")`. */
  #nameOfArgument(): string {
    const { name, fields } = this.#data;
    const before = this.#closeBy.at(-1) === ")" ? fields.at(-1)?.value : undefined;
    return typeof before === "string" ? `${name} ${before.slice(0, maxKeyLength)}` : name;
  }

  #add(key: string, raw: string): void {
    const isEscaped = raw.includes("\\");
    const start = startOfData(raw);
    if (start < 0 && raw.length <= maxTextLength) {
      return addText(this.#data, key, isEscaped ? unescapeString(raw) : raw);
    }
    if (start < 0 || raw.length > maxNestedLength) return;
    const text = decodeJsonInBase64(raw);
    if (!mediaNames.test(text)) return;
    const data = createData("block", key, this.#data);
    const source = text.slice(start);
    this.nested.push({ source, isEscaped: isEscaped || isPercentEncoded(source), data });
    mark(this.#data);
  }

  #readWord(): void {
    const start = this.#at;
    const isNumber = isDigit(this.#text.charCodeAt(start));
    const isPart = (code: number) => isWordCode(code) || (isNumber && code === POINT);
    do this.#at++;
    while (isPart(this.#text.charCodeAt(this.#at)));
    const word = this.#text.slice(start, Math.min(this.#at, start + maxKeyLength));
    const isValue = isNumber || word === "true" || word === "false";
    const key = this.#before === "+" || this.#before === "?" ? null : this.#key;
    this.#before = word === "return" || word === "typeof" || word === "case" ? "(" : WORD;
    if (isValue && key !== null) {
      addText(this.#data, key, word);
      this.#key = null;
    }
    this.#name = word;
  }

  /** Skips a comment, a regular expression or an operator. */
  #readSlash(): void {
    const start = this.#at;
    const isDivision = [WORD, STRING, ")", "]", "}"].includes(this.#before);
    this.#at = endOfSlash(this.#text, start, isDivision, this.#slashes) + 1;
    const isComment = this.#text[start + 1] === "/" || this.#text[start + 1] === "*";
    if (!isComment) this.#before = this.#at > start + 1 ? STRING : "/";
  }

  #readMark(sign: string): void {
    switch (sign) {
      case "{":
      case "[":
      case "(":
        if (this.#skipEmpty()) return;
        this.#enter(sign);
        break;
      case "}":
      case "]":
      case ")":
        this.#close(sign);
        break;
      case ":":
        this.#key = this.#name;
        break;
      case "=":
        this.#readEquals();
        if (this.#before === "+") return;
        break;
      case ",":
      case ";":
        this.#key = null;
    }
    this.#before = sign;
  }

  /** Skips brackets in which no file is named, unless they may describe a medium. */
  #skipEmpty(): boolean {
    const end = this.#outline.empty.get(this.#at - 1);
    if (end === undefined) return false;
    if (isDescriptive(this.#key ?? this.#data.name)) return false;
    this.#at = end + 1;
    this.#before = ")";
    this.#key = null;
    return true;
  }

  /** Only a plain `=` assigns a value. */
  #readEquals(): void {
    const next = this.#text[this.#at];
    const isPlain = next !== "=" && next !== ">" && !["!", "=", "<", ">", "+"].includes(this.#before);
    if (isPlain) this.#key = this.#name;
    else if (next === ">") this.#key = null;
  }

  #enter(open: string): void {
    if (this.#closeBy.length >= maxDepth) return;
    const isValue = valueStarts.has(this.#before);
    const kind = open === "[" ? "array" : open === "{" && isValue ? "object" : "block";
    const valueOf = this.#key ?? (isValue && open !== "(" ? this.#data.name : "");
    const name = open === "(" ? `${valueOf} ${this.#name}`.trim() : valueOf;
    this.#data = createData(kind, name, this.#data);
    this.#closeBy.push(open === "{" ? "}" : open === "[" ? "]" : ")");
    this.#key = null;
  }

  /** Closes what the bracket closes; a bracket that closes nothing is ignored. */
  #close(bracket: string): void {
    this.#key = null;
    const index = this.#closeBy.lastIndexOf(bracket);
    // A bracket that would close more than four levels is more likely a part of a misread text.
    if (index < 0 || this.#closeBy.length - index > 4) return;
    while (this.#closeBy.length > index) this.#leave();
  }

  #leave(): void {
    this.#closeBy.pop();
    addToParent(this.#data);
    this.#data = this.#data.parent ?? this.#data;
  }
}
