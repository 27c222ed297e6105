import { createSegmentTest, readAttributes, readLines } from "./lines.ts";

/** What a playlist says of single segments, or from one on (RFC 8216bis §4.4.4); the rest it repeats each time. */
const segmentTags: ReadonlySet<string> = new Set(
  ["INF", "-X-BYTERANGE", "-X-DISCONTINUITY", "-X-GAP", "-X-KEY", "-X-MAP", "-X-PROGRAM-DATE-TIME"].map(
    (name) => `#EXT${name}`,
  ),
);

/** The playlists of a download that have not ended, as they were read last. */
export class ReadPlaylists {
  readonly #texts = new Map<string, string>();

  /** Returns the text of the playlist at `url`, complete if the one before has what it skips. */
  complete(url: URL, text: string): string {
    const before = this.#texts.get(url.href);
    const whole = before !== undefined && isDelta(text) ? (completeDelta(text, before) ?? text) : text;
    if (!isDelta(whole) && !has(whole, "#EXT-X-ENDLIST")) this.#texts.set(url.href, whole);
    return whole;
  }
}

/** Returns a URL without delivery directives (RFC 8216bis §6.2.5), which may ask for a part of the playlist or a later one: someone may have copied it from a player. */
export function withoutDirectives(url: URL): URL {
  const parameters = url.search.slice(1).split("&");
  const others = parameters.filter((parameter) => !parameter.startsWith("_HLS_"));
  if (others.length === parameters.length) return url;
  const plain = new URL(url);
  // `searchParams` would encode the others again, and URLs may be signed.
  plain.search = others.join("&");
  return plain;
}

/** Whether a playlist leaves out segments that it listed before (RFC 8216bis §4.4.5.2). */
const isDelta = (text: string): boolean => has(text, "#EXT-X-SKIP:");

/** @param tag In upper case. */
function has(text: string, tag: string): boolean {
  return text.toUpperCase().includes(tag);
}

/**
 * Returns a delta update with the segments that it skips, as the playlist `before` lists them (RFC 8216bis §6.2.5.1); `undefined` if that
 * lacks one of them.
 */
function completeDelta(delta: string, before: string): string | undefined {
  const lines = delta.split("\n");
  const at = lines.findIndex((line) => tagOf(line) === "#EXT-X-SKIP");
  const count = Number(readAttributes(lines[at]?.trim().slice("#EXT-X-SKIP:".length) ?? "").get("SKIPPED-SEGMENTS"));
  const from = firstSequence(delta);
  const skipped: string[] = [];
  /** Keys, the init section and the date of the first one. */
  let state: State = { keys: [], map: [], dateMs: Number.NaN };
  const stateOffset = createOffsets();
  let pending: string[] = [];
  let sequence = firstSequence(before);
  let found = 0;
  const isSegment = createSegmentTest(before);
  for (const line of before.split("\n")) {
    const tag = tagOf(line);
    const isBlank = line.trim() === "";
    const isUri = !isBlank && isSegment({ tag: tag ?? null, value: line.trim() });
    if (isUri || isBlank || (tag !== undefined && segmentTags.has(tag))) pending.push(line);
    if (!isUri) continue;
    pending = stateOffset(pending, line.trim());
    if (sequence < from) state = stateAfter(state, pending);
    else if (sequence < from + count) {
      skipped.push(...pending);
      found += 1;
    }
    sequence += 1;
    pending = [];
  }
  return found === count
    ? [...lines.slice(0, at), ...linesOf(state, skipped), ...skipped, ...lines.slice(at + 1)].join("\n")
    : undefined;
}

/** Creates what adds to the byte range of a segment the offset that follows from the one before (RFC 8216bis §4.4.4.2), which may be left out. */
function createOffsets() {
  let last = { uri: "", end: "" };
  return (tags: string[], uri: string): string[] => {
    const range = tags.findLast((line) => tagOf(line) === byteRange);
    const [length = "", stated] = range?.split(":")[1]?.split("@") ?? [];
    const offset = stated ?? (range !== undefined && last.uri === uri ? last.end : "");
    last = { uri, end: offset === "" ? "" : `${Number(offset) + Number(length)}` };
    return offset === "" ? tags : tags.map((line) => (line === range ? `${byteRange}:${length}@${offset}` : line));
  };
}

/** Tags that apply to later segments. */
interface State {
  keys: string[];
  /** After the keys that it is encrypted with. */
  map: string[];
  /** When the next segment starts (RFC 8216bis §4.4.4.6), Unix milliseconds; NaN: it is not known. */
  dateMs: number;
}

/** Returns what the state says of the lines `next`, whose first segment may have a date of its own. */
function linesOf({ keys, map, dateMs }: State, next: readonly string[]): string[] {
  const date = new Date(dateMs);
  const own = next.slice(
    0,
    next.findIndex((line) => tagOf(line) === undefined && line.trim() !== ""),
  );
  const isOther = own.some((line) => tagOf(line) === discontinuity) || Number.isNaN(date.getTime());
  return [...(isOther ? [] : [`${programDate}:${date.toISOString()}`]), ...map, ...keys];
}

const [discontinuity, programDate] = ["#EXT-X-DISCONTINUITY", "#EXT-X-PROGRAM-DATE-TIME"];
const byteRange = "#EXT-X-BYTERANGE";

function stateAfter({ keys, map, dateMs }: State, tags: readonly string[]): State {
  let wasKey = false;
  let durationS = Number.NaN;
  let startMs = tags.some((line) => tagOf(line) === discontinuity) ? Number.NaN : dateMs;
  for (const line of tags) {
    const tag = tagOf(line);
    const value = line.slice(line.indexOf(":") + 1).trim();
    const isKey = tag === "#EXT-X-KEY";
    if (isKey) keys = wasKey ? [...keys, line] : [line];
    if (tag === "#EXT-X-MAP") map = [...keys, line];
    if (tag === programDate) startMs = Date.parse(value);
    if (tag === "#EXTINF") durationS = Number.parseFloat(value);
    wasKey = isKey;
  }
  return { keys, map, dateMs: Math.round(startMs + 1000 * durationS) };
}

function firstSequence(text: string): number {
  const line = readLines(text).find(({ tag }) => tag === "#EXT-X-MEDIA-SEQUENCE");
  return Number(line?.value ?? 0);
}

/** Returns the upper-case name of a tag; `undefined`: it is a URI, or blank. */
function tagOf(line: string): string | undefined {
  const text = line.trim();
  return text.startsWith("#") ? text.split(":", 1)[0]!.toUpperCase() : undefined;
}
