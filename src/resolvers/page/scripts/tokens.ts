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
export function endOfSlash(
  text: string,
  start: number,
  isDivision: boolean,
  state: SlashState,
): number {
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
