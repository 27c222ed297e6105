import type { Cue } from "../remux/additions.ts";
import { keypadSettings } from "./placement.ts";
import { escapeText, linesOf } from "./text.ts";

const defaultFields = ["layer", "start", "end", "style", "name", "marginl", "marginr", "marginv", "effect", "text"];
const maxStyles = 10_000;

/**
 * Yields the cues of SubStation Alpha (v4 and v4+) as text, in the order of the file: italics, bold, underlines, alignments and
 * positions are kept, drawings left out.
 *
 * @throws ServiceError `upstream_invalid` for more than 2 Mi characters of a line.
 */
export function* readAss(pieces: Iterable<string>): Generator<Cue> {
  let section = "";
  let fields = defaultFields;
  const places = new Map<string, number>();
  const picture: PictureSize = {};
  for (const line of linesOf(pieces)) {
    if (line.startsWith("[")) section = line.trim().toLowerCase();
    if (section === "[script info]") readPictureSize(line, picture);
    const isStyles = section === "[v4+ styles]" || section === "[v4 styles]";
    if (section !== "[events]" && !isStyles) continue;
    const [, kind = "", rest = ""] = /^(Format|Style|Dialogue):[ \t]*(.*)$/i.exec(line) ?? [];
    const name = kind.toLowerCase();
    if (name === "format") fields = rest.split(",", 100).map((field) => field.trim().toLowerCase());
    if (name !== (isStyles ? "style" : "dialogue")) continue;
    const values = splitFields(rest, fields.length);
    const value = (field: string) => values[fields.indexOf(field)] ?? "";
    if (isStyles) {
      const alignment = Number(value("alignment"));
      const place = section === "[v4 styles]" ? placeOfOldAlignment(alignment) : alignment;
      if (places.size < maxStyles) places.set(value("name"), place);
      continue;
    }
    const [startS, endS] = [timeOf(value("start")), timeOf(value("end"))];
    const text = toPayload(value("text"));
    const settings = overriddenPlace(value("text"), text, places.get(value("style").replace(/^\*/, "")), picture);
    if (endS > startS && text !== "") yield { startS, endS, text, settings };
  }
}

/** What coordinates count from. */
interface PictureSize {
  x?: number;
  y?: number;
}

/** As renderers assume. */
const defaultSize = { x: 384, y: 288 };

function readPictureSize(line: string, size: PictureSize): void {
  const [, axis, stated] = /^PlayRes([XY]):[ \t]*(\d{1,5})[ \t]*$/i.exec(line) ?? [];
  if (Number(stated) > 0) size[axis?.toLowerCase() === "x" ? "x" : "y"] = Number(stated);
}

/**
 * Returns the WebVTT cue settings of a text with overrides: the first alignment that they state (`\an`, or `\a` of v4), else `place`, of the picture
 * or, with `\pos` or `\move`, of a point of it.
 */
export function overriddenPlace(text: string, payload: string, place = 2, size: PictureSize = {}): string {
  let alignment: number | undefined;
  let point: readonly [number, number] | undefined;
  const { x = size.y === undefined ? defaultSize.x : (size.y * 4) / 3, y = (x * 3) / 4 } = size;
  for (const [, overrides = ""] of text.matchAll(/\{([^{}]*)\}/g)) {
    const [, name, value] = /\\(an?)(\d{1,2})(?!\d)/.exec(overrides) ?? [];
    if (name !== undefined) alignment ??= name === "an" ? Number(value) : placeOfOldAlignment(Number(value));
    const [, across, down] = /\\(?:pos|move)\( {0,9}(-?[\d.]{1,12}) {0,9}, {0,9}(-?[\d.]{1,12})/.exec(overrides) ?? [];
    if (across !== undefined) point ??= [(100 * Number(across)) / x, (100 * Number(down)) / y];
  }
  return keypadSettings(alignment ?? place, payload, point);
}

/** In v4, 4 is added for the top and 8 for the middle. */
function placeOfOldAlignment(alignment: number): number {
  return (alignment & 3) + (alignment & 4 ? 6 : alignment & 8 ? 3 : 0);
}

/** The last field may have commas. */
function splitFields(rest: string, count: number): string[] {
  const values: string[] = [];
  let at = 0;
  while (values.length < count - 1) {
    const comma = rest.indexOf(",", at);
    if (comma < 0) break;
    values.push(rest.slice(at, comma).trim());
    at = comma + 1;
  }
  return [...values, rest.slice(at)];
}

function timeOf(text: string): number {
  const [, hours, minutes, seconds] = /^(\d{1,4}):(\d{1,2}):(\d{1,2}(?:\.\d{1,3})?)$/.exec(text) ?? [];
  return Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
}

const tokenPattern = /\{([^{}]*)\}|\\[Nnh]|[^{\\]+|[{\\]/g;
const breaks: Readonly<Record<string, string>> = { "\\N": "\n", "\\n": " ", "\\h": "\u00a0" };

function toPayload(text: string): string {
  const open = new Set<string>();
  let isDrawing = false;
  let payload = "";
  for (const [token, overrides] of text.matchAll(tokenPattern)) {
    if (overrides === undefined) {
      if (!isDrawing) payload += breaks[token] ?? escapeText(token);
      continue;
    }
    for (const [, name = "", value = ""] of overrides.matchAll(/\\([biup])(\d{1,4})(?!\d)/g)) {
      const isOn = Number(value) !== 0;
      if (name === "p") isDrawing = isOn;
      else if (isOn !== open.has(name)) {
        payload += isOn ? `<${name}>` : `</${name}>`;
        if (isOn) open.add(name);
        else open.delete(name);
      }
    }
  }
  for (const name of [...open].toReversed()) payload += `</${name}>`;
  return payload.replaceAll(/\n{2,}/g, "\n").trim();
}
