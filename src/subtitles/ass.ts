import type { Cue } from "../remux/additions.ts";
import { escapeText, linesOf } from "./text.ts";

const defaultFields = ["layer", "start", "end", "style", "name", "marginl", "marginr", "marginv", "effect", "text"];

/**
 * Yields the cues of SubStation Alpha (v4 and v4+) as text, in the order of the file: italics, bold and underlines are kept, drawings left out.
 *
 * @throws ServiceError `upstream_invalid` for more than 2 Mi characters of a line.
 */
export function* readAss(pieces: Iterable<string>): Generator<Cue> {
  let section = "";
  let fields = defaultFields;
  for (const line of linesOf(pieces)) {
    if (line.startsWith("[")) section = line.trim().toLowerCase();
    if (section !== "[events]") continue;
    const [, kind, rest = ""] = /^(Format|Dialogue):[ \t]*(.*)$/i.exec(line) ?? [];
    if (kind?.toLowerCase() === "format") fields = rest.split(",", 100).map((name) => name.trim().toLowerCase());
    if (kind?.toLowerCase() !== "dialogue") continue;
    const values = splitFields(rest, fields.length);
    const value = (name: string) => values[fields.indexOf(name)] ?? "";
    const [startS, endS] = [timeOf(value("start")), timeOf(value("end"))];
    const payload = toPayload(value("text"));
    if (endS > startS && payload !== "") yield { startS, endS, text: payload, settings: "" };
  }
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
