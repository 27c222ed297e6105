const BACKSLASH = 92;
const BACKTICK = 96;
const maxRegexLength = 1_000;
const shortLength = 100;
/** At most 500 in one match: a match of any number could use up the stack. */
const escapes = String.raw`(?:\\[^]\w{0,8}){1,500}`;

/** Returns the index of the quote that ends the string at `start`, of the end of the line if none does. */
export function endOfString(text: string, start: number): number {
  const quote = text.charCodeAt(start);
  const shortEnd = start + shortLength;
  for (let at = start + 1; at < text.length; at++) {
    if (at > shortEnd) return endOfLongString(text, quote, at);
    const code = text.charCodeAt(at);
    if (code === quote) return at;
    if (code === BACKSLASH) at++;
    else if ((code === 10 || code === 13) && quote !== BACKTICK) return at;
  }
  return text.length;
}

/** Goes on from one character that matters, or run of escapes, to the next. */
function endOfLongString(text: string, quote: number, start: number): number {
  const ends = quote === BACKTICK ? "`" : `[${String.fromCharCode(quote)}\\r\\n]`;
  const marks = new RegExp(`${escapes}|${ends}`, "g");
  marks.lastIndex = start;
  for (let match = marks.exec(text); match !== null; match = marks.exec(text)) {
    if (!match[0].startsWith("\\")) return match.index;
  }
  return text.length;
}

/** Where the search for the end of a regular expression has failed: up to here there is none. */
export interface SlashState {
  failedUntil: number;
}

/** Returns the index of the last character of the comment, regular expression or operator at a slash. */
export function endOfSlash(text: string, start: number, isDivision: boolean, state: SlashState): number {
  const next = text[start + 1];
  if (next === "/" || next === "*") {
    const end = text.indexOf(next === "/" ? "\n" : "*/", start + 2);
    return end < 0 ? text.length : end + (next === "/" ? 0 : 1);
  }
  if (isDivision || start < state.failedUntil) return start;
  let isInClass = false;
  let at = start + 1;
  for (const limit = Math.min(text.length, start + maxRegexLength); at < limit; at++) {
    const character = text[at];
    if (character === "\n") break;
    if (character === "\\") at++;
    else if (character === "[") isInClass = true;
    else if (character === "]") isInClass = false;
    else if (character === "/" && !isInClass) return at;
  }
  state.failedUntil = at;
  return start;
}

/** Returns the next character that is not white space, at most 100 characters on. */
export function nextMark(text: string, from: number): string {
  let at = from;
  while (at < from + 100 && text.charCodeAt(at) <= 32) at++;
  return text[at] ?? "";
}

export function isQuote(code: number): boolean {
  return code === 34 || code === 39 || code === BACKTICK;
}

export function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

/** Whether it may be in a name or a number. */
export function isWordCode(code: number): boolean {
  const lower = code | 32;
  return (lower >= 97 && lower <= 122) || isDigit(code) || code === 95 || code === 36 || code > 127;
}

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
/** Further pairs are read. */
const maxEmpty = 100_000;
const maxDepth = 10_000;
const maxSpaces = 100;

/**
 * Returns which parts of a script need not be read. It matches brackets without reading the text between them, which takes
 * a fraction of the time.
 */
export function outlineScript(text: string, names: readonly number[]): Outline {
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
        if (isEmpty && at - start >= minLength && empty.size < maxEmpty) empty.set(start, at);
      }
    }
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
  return !["return", "typeof", "case"].some((word) => text.endsWith(word, end));
}
