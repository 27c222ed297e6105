import type { Cue } from "../remux/additions.ts";
import { overriddenPlace } from "./ass.ts";
import { colorTag, parseColor } from "./colors.ts";
import { createVttStyles, createVttRegions } from "./vtt-header.ts";
import { checkCueLength, escapeText, linesOf } from "./text.ts";

/** What X-TIMESTAMP-MAP says (RFC 8216 §3.5): the cue time `localS` is the MPEG-2 timestamp `mpegTs`. */
export interface TimestampMap {
  localS: number;
  /** Ticks of 90 kHz, 33 bits. */
  mpegTs: number;
}

/** Translation programs put spaces into it. */
const time = String.raw`(?:(\d{1,4}): ?)?(\d{1,2}): ?(\d{1,2})(?: ?[.,] ?(\d{1,9}))?`;
const timing = new RegExp(String.raw`^${time}[ \t]{0,100}-->[ \t]{0,100}${time}(?:[ \t](.*))?$`, "s");

/** A line of times, right or not. */
const timesLike = new RegExp(String.raw`^\s{0,9}${time}\D{1,20}\d{1,4}:\d`);

/** Arrows as people and word processors write them after the first time. */
const otherArrow = new RegExp(String.raw`^(\s{0,9}${time})[ \t]{0,9}(?:[-=\u2010-\u2015]{1,3} ?>|\u2192)`);

const digits = /^\s{0,9}\d{1,9}\s{0,9}$/;

/**
 * Yields the cues of WebVTT (W3C WebVTT §6.1). Regions become settings of their cues, colours of their classes other classes; other styles and notes are left out, and cues whose times are wrong.
 *
 * @param onMap Gets the first X-TIMESTAMP-MAP.
 * @throws ServiceError `upstream_invalid` for more than 2 Mi characters of a cue.
 */
export function* readWebVtt(pieces: Iterable<string>, onMap: (map: TimestampMap) => void): Generator<Cue> {
  let isMapped = false;
  const regions = createVttRegions();
  const styles = createVttStyles();
  const cues = readBlocks(linesOf(pieces), (line) => {
    regions.readLine(line);
    styles.readLine(line);
    const map = !isMapped && line.startsWith("X-TIMESTAMP-MAP") ? readTimestampMap(line) : null;
    if (map === null) return;
    isMapped = true;
    onMap(map);
  });
  for (const cue of cues) {
    const text = cue.text.trim();
    const settings = regions.replaceIn(cue.settings, text);
    if (text !== "") yield { ...cue, text: styles.replaceIn(text), settings };
  }
}

/**
 * Yields the cues of SubRip. Its `<i>`, `<b>`, `<u>` and colours are kept, and alignments as of SubStation Alpha; other tags and coordinates are left out. A cue may have empty lines: it goes on
 * to the number and the times of the next one. @throws as `readWebVtt`.
 */
export function* readSubRip(pieces: Iterable<string>): Generator<Cue> {
  for (const { text: written, ...cue } of readBlocks(withoutEmptyLines(linesOf(pieces)), () => {})) {
    const shown = readSubRipText(written);
    if (shown.text !== "") yield { ...cue, ...shown };
  }
}

/** Reads the text of a cue of SubRip, without its times. */
export function readSubRipText(written: string): Pick<Cue, "text" | "settings"> {
  const text = fromSubRip(written)
    .replaceAll(/\n{2,}/g, "\n")
    .trim();
  return { text, settings: overriddenPlace(written, text) };
}

/** Yields the lines of SubRip without the numbers of its cues, and an empty one only where a cue ends. */
function* withoutEmptyLines(lines: Iterable<string>): Generator<string> {
  /** It may be the number of a cue. */
  let held: { line: string; isAfterEmpty: boolean } | null = null;
  let isAfterEmpty = true;
  for (const written of lines) {
    const line: string = isAfterEmpty || held?.isAfterEmpty === true ? withArrow(written) : written;
    if (line.trim() === "") {
      isAfterEmpty = true;
      continue;
    }
    // A text may have times, too; what has an arrow after the number of a cue is none, whatever its times are.
    const isNumbered = held?.isAfterEmpty === true && line.includes("-->");
    const isLike = isNumbered || ((held ?? { isAfterEmpty }).isAfterEmpty && timesLike.test(line));
    const isTime = timesOf(line) !== null || isLike;
    const isNumber = isTime && held !== null && (held.isAfterEmpty || !isAfterEmpty);
    if (held !== null && !isNumber) yield held.line;
    held = digits.test(line) ? { line, isAfterEmpty } : null;
    isAfterEmpty = false;
    if (isTime) yield "";
    if (held === null) yield line;
  }
  if (held?.isAfterEmpty === false) yield held.line;
}

function withArrow(line: string): string {
  return line.includes("-->") ? line : line.replace(otherArrow, "$1 -->");
}

const timesOf = (line: string) => (line.includes("-->") ? timing.exec(line.trimStart()) : null);

/** `onOther` gets the lines that belong to no cue, and the empty ones. */
function* readBlocks(lines: Iterable<string>, onOther: (line: string) => void): Generator<Cue> {
  let open: { startS: number; endS: number; settings: string; payload: string[]; length: number } | null = null;
  function* close(): Generator<Cue> {
    if (open === null) return;
    const { startS, endS, settings, payload } = open;
    open = null;
    if (endS > startS) yield { startS, endS, text: payload.join("\n"), settings };
  }
  for (const line of lines) {
    const found = timesOf(line);
    if (found !== null) {
      yield* close();
      const [startS, endS] = [secondsOf(found.slice(1, 5)), secondsOf(found.slice(5, 9))];
      open = { startS, endS, settings: (found[9] ?? "").trim(), payload: [], length: 0 };
    } else if (line === "") {
      yield* close();
      onOther("");
    } else if (open === null) onOther(line);
    // One of spaces ends no cue: automatic captions begin with it.
    else if (line.trim() !== "") {
      open.length += line.length + 1;
      checkCueLength(open.length);
      open.payload.push(line);
    }
  }
  yield* close();
}

const onlyTime = new RegExp(`^${time}$`);

/** Returns a time of WebVTT in seconds; null if the text is none. */
export function readVttTime(text: string): number | null {
  const found = onlyTime.exec(text);
  return found && secondsOf(found.slice(1));
}

function secondsOf([hours = "0", minutes = "0", seconds = "0", fraction = "0"]: readonly (
  | string
  | undefined
)[]): number {
  return Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds) + Number(`0.${fraction}`);
}

function readTimestampMap(line: string): TimestampMap | null {
  const local = new RegExp(`LOCAL:${time}`).exec(line);
  const mpegTs = /MPEGTS:(\d{1,20})/.exec(line)?.[1];
  if (local === null || mpegTs === undefined) return null;
  return { localS: secondsOf(local.slice(1, 5)), mpegTs: Number(BigInt(mpegTs) % (1n << 33n)) };
}

const subRipToken = /<(\/?)([a-z]+)(?![a-z])([^<>]*)>|\{\\[^{}]*\}|[^<{]+|[<{]/gi;
const kept: ReadonlySet<string> = new Set(["b", "i", "u"]);
const dropped: ReadonlySet<string> = new Set(["span", "c", "s", "strike"]);

function fromSubRip(text: string): string {
  let payload = "";
  const fonts: (string | undefined)[] = [];
  for (const [token, slash = "", name, attributes = ""] of text.matchAll(subRipToken)) {
    const tag = name?.toLowerCase();
    if (tag === "font" && slash === "") {
      const color = parseColor(/\scolor\s{0,9}=\s{0,9}["']?([^"'>]{1,40})/i.exec(attributes)?.[1] ?? "");
      fonts.push(color);
      if (color !== undefined) payload += `<${colorTag(color)}>`;
    } else if (tag === "font") payload += fonts.pop() === undefined ? "" : "</c>";
    else if (tag !== undefined && kept.has(tag)) payload += `<${slash}${tag}>`;
    else if (tag === "br") payload += "\n";
    else if (!(tag !== undefined && dropped.has(tag)) && !token.startsWith("{\\")) payload += escapeText(token);
  }
  return payload;
}
