import type { Cue } from "../remux/additions.ts";
import { changeTags, colorTag } from "./colors.ts";
import { keypadSettings } from "./placement.ts";
import { escapeText, linesOf } from "./text.ts";

const defaultFields = ["layer", "start", "end", "style", "name", "marginl", "marginr", "marginv", "effect", "text"];
const maxStyles = 10_000;

/**
 * Yields the cues of SubStation Alpha (v4 and v4+) as text, in the order of the file: italics, bold, underlines, colours, alignments and
 * positions are kept, drawings left out.
 *
 * @throws ServiceError `upstream_invalid` for more than 2 Mi characters of a line.
 */
export function* readAss(pieces: Iterable<string>): Generator<Cue> {
  let section = "";
  let fields = defaultFields;
  const styles = new Map<string, Style>();
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
      const style = { place, color: colorOf(value("primarycolour")) };
      if (styles.size < maxStyles) styles.set(value("name"), style);
      continue;
    }
    const [startS, endS] = [timeOf(value("start")), timeOf(value("end"))];
    const style = styles.get(value("style").replace(/^\*/, ""));
    const text = toPayload(value("text"), style?.color);
    const settings = overriddenPlace(value("text"), text, style?.place, picture);
    if (endS > startS && text !== "") yield { startS, endS, text, settings };
  }
}

interface Style {
  place: number;
  color: string | undefined;
}

/** Returns the digits of a colour, which are written with the blue ones first (v4: also as a decimal number); undefined: it is white, or none. */
function colorOf(stated: string): string | undefined {
  const [, hexadecimal, decimal] = /^(?:&H([\da-f]{1,8})&?|(\d{1,10}))$/i.exec(stated.trim()) ?? [];
  const value = hexadecimal === undefined ? Number(decimal) : Number.parseInt(hexadecimal, 16);
  if (Number.isNaN(value)) return undefined;
  const digits = Buffer.of(value, value >>> 8, value >>> 16).toString("hex");
  return digits === "ffffff" ? undefined : digits;
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

/** Faces and drawings, the colour of the text, and what goes back to the style. */
const override = /\\(?:([biup])(\d{1,4})(?!\d)|(1?c)(&H[\da-f]{1,8}&?)?(?![\da-z])|(r)[^\\]*)/gi;

function toPayload(text: string, ownColor: string | undefined): string {
  const ownTags = ownColor === undefined ? [] : [colorTag(ownColor)];
  let open: readonly string[] = [];
  let tags: readonly string[] = ownTags;
  let isDrawing = false;
  let payload = "";
  for (const [token, overrides] of text.matchAll(tokenPattern)) {
    if (overrides === undefined) {
      if (isDrawing) continue;
      payload += changeTags(open, tags) + (breaks[token] ?? escapeText(token));
      open = tags;
      continue;
    }
    for (const [, face, value, color, stated, reset] of overrides.matchAll(override)) {
      if (reset !== undefined) tags = ownTags;
      else if (face === "p") isDrawing = Number(value) !== 0;
      else if (face !== undefined) tags = withTag(tags, (tag) => tag === face, Number(value) === 0 ? undefined : face);
      else if (color !== undefined) {
        const digits = stated === undefined ? ownColor : colorOf(stated);
        tags = withTag(tags, (tag) => tag.startsWith("c."), digits && colorTag(digits));
      }
    }
  }
  payload += changeTags(open, []);
  return payload.replaceAll(/\n{2,}/g, "\n").trim();
}

/** Returns tags with this one instead of what it replaces; undefined: without that. */
function withTag(
  tags: readonly string[],
  isReplaced: (tag: string) => boolean,
  tag: string | undefined,
): readonly string[] {
  if (tag !== undefined && tags.includes(tag)) return tags;
  return [...tags.filter((each) => !isReplaced(each)), ...(tag === undefined ? [] : [tag])];
}
