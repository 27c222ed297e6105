import { decodeHTMLStrict } from "entities";

/** Faces of text, as bits (3GPP TS 26.245 §5.17.1.1). */
const faces = { b: 1, i: 2, u: 4 } as const;

/** Returns the tags of faces. */
export function faceTags(bits: number): string[] {
  return Object.entries(faces).flatMap(([name, face]) => (bits & face ? [name] : []));
}

/** A part of a text that has faces or a colour; positions are in code points. */
export interface StyledPart {
  start: number;
  end: number;
  faces: number;
  /** Six digits; `null`: white, as text is by default. */
  color: string | null;
}

export interface StyledText {
  text: string;
  /** In order, apart. */
  styles: StyledPart[];
}

const tokenPattern =
  /<(\/?)([a-z]*)(?![a-z])([^<>]*)>|&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z][a-z\d]{1,31}));|[^<&]+|[<&]/gi;

/** Tags that may have classes, and so a colour. */
const colored: ReadonlySet<string> = new Set(["c", "b", "i", "u", "v", "lang"]);
/** A tag with a class that names the colour of its text. */
const colorClass = /^[^\s]*\.color([\da-f]{6})(?![^\s.])/i;
/** No text needs more. */
const maxNested = 100;

/**
 * Reads a WebVTT cue payload (W3C WebVTT §6.4): bold, italic, underlined and coloured parts are returned as styles; what annotates
 * ruby is in parentheses; other tags and timestamps are left out, entities replaced. Takes time linear in its length.
 */
export function readCueText(payload: string): StyledText {
  const open = { b: 0, i: 0, u: 0 };
  const nested: { tag: string; color: string | null }[] = [];
  const styles: StyledPart[] = [];
  let text = "";
  let length = 0;
  let isAnnotation = false;
  const add = (part: string) => {
    if (part === "") return;
    text += part;
    const start = length;
    length += codePoints(part);
    const found = (open.b && faces.b) | (open.i && faces.i) | (open.u && faces.u);
    const color = nested.at(-1)?.color ?? null;
    if (found === 0 && color === null) return;
    const last = styles.at(-1);
    if (last?.end === start && last.faces === found && last.color === color) last.end = length;
    else styles.push({ start, end: length, faces: found, color });
  };
  for (const [token, slash, name = "", classes = "", decimal, hexadecimal, entity] of payload.matchAll(tokenPattern)) {
    const tag = name.toLowerCase();
    if (slash !== undefined) {
      if (colored.has(tag)) nest(nested, tag, slash === "", classes);
      if (isFace(tag)) open[tag] = Math.max(0, open[tag] + (slash === "" ? 1 : -1));
      // The end tag of "rt" may be left out before that of "ruby".
      const isInside: boolean = tag === "rt" ? slash === "" : isAnnotation && tag !== "ruby";
      if (isInside !== isAnnotation) add(isInside ? "(" : ")");
      isAnnotation = isInside;
    } else if (entity !== undefined) add(namedCharacter(token));
    else if (decimal !== undefined) add(character(Number(decimal)));
    else if (hexadecimal !== undefined) add(character(Number.parseInt(hexadecimal, 16)));
    else add(token);
  }
  return { text, styles };
}

function nest(nested: { tag: string; color: string | null }[], tag: string, isStart: boolean, classes: string): void {
  if (isStart && nested.length < maxNested) {
    const stated = colorClass.exec(classes)?.[1]?.toLowerCase();
    const color = stated === undefined ? (nested.at(-1)?.color ?? null) : stated === white ? null : stated;
    nested.push({ tag, color });
  } else if (!isStart) {
    const at = nested.findLastIndex((each) => each.tag === tag);
    if (at >= 0) nested.splice(at, 1);
  }
}

const white = "ffffff";

function isFace(tag: string): tag is keyof typeof faces {
  return tag in faces;
}

/** Those of HTML (§6.4); people also write them in capitals. */
function namedCharacter(reference: string): string {
  const found = decodeHTMLStrict(reference);
  return found === reference
    ? decodeHTMLStrict(reference.toLowerCase()).replace(reference.toLowerCase(), reference)
    : found;
}

function character(code: number): string {
  const isText = code >= 0x20 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return isText ? String.fromCodePoint(code) : "";
}

/** Returns how many code points a text has. */
export function codePoints(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}
