import { decodeXML } from "entities";
import { invalidSubtitlesError } from "../text.ts";

const maxEntities = 1000;
const maxValueLength = 1000;
/** How much longer a document may become. */
const maxAdded = 2 << 20;
/** A document type declaration is before the root element, and short. */
const maxDeclarations = 64 * 1024;

/**
 * Returns a function that decodes text and attributes of an XML document that begins so: references to characters, and to entities that XML has
 * or that the document declares itself (XML 1.0 §4.2). Values may refer to entities that are declared before them. References to those with elements,
 * in other files, over 1,000 characters long or after the first thousand stay as they are.
 *
 * The function throws a ServiceError, `upstream_invalid`, once declared entities have made the document 2 Mi characters longer.
 */
export function createEntityDecoder(document: string): (written: string) => string {
  const root = document.slice(0, maxDeclarations).search(/<(?:[\w.-]+:)?tt[\s>]/);
  const start = document.slice(0, Math.max(0, root));
  const entities = new Map<string, string>();
  for (const [, name = "", double, single = ""] of start.matchAll(declaration)) {
    if (entities.size >= maxEntities) break;
    const value = (double ?? single).replaceAll(reference, (written, each: string) => entities.get(each) ?? written);
    const isNew = !entities.has(name) && !known.has(name);
    if (isNew && value.length <= maxValueLength) entities.set(name, value);
  }
  let added = 0;
  const expand = (written: string) =>
    written.replaceAll(reference, (each, name: string) => {
      const value = entities.get(name) ?? each;
      added += value.length - each.length;
      if (added > maxAdded) throw invalidSubtitlesError(`their entities have over ${maxAdded} characters`);
      return value;
    });
  const decode = (written: string) => decodeXML(entities.size === 0 ? written : expand(written));
  return (written) => (written.includes("&") ? decode(written) : written);
}

/** Of XML itself (§4.6). */
const known: ReadonlySet<string> = new Set(["amp", "lt", "gt", "quot", "apos"]);
const declaration = /<!ENTITY\s{1,20}([A-Za-z_][\w.-]{0,100})\s{1,20}(?:"([^"<]{0,1000})"|'([^'<]{0,1000})')/g;
const reference = /&([A-Za-z_][\w.-]{0,100});/g;

/** What frames and ticks of a document last, each a second. */
interface Rates {
  frameRate: number;
  /** Of a frame. */
  subFrames: number;
  tickRate: number;
}

/** Returns the rates that the attributes of `tt` state (TTML1 §6.2), or their defaults. */
export function readRates(attributes: ReadonlyMap<string, string>): Rates {
  const number = (name: string) => {
    const value = Number(attributes.get(name));
    return value > 0 && Number.isFinite(value) ? value : null;
  };
  const [numerator = 1, denominator = 1] = (attributes.get("frameRateMultiplier") ?? "1 1")
    .trim()
    .split(/[\s:]+/, 2)
    .map(Number);
  const ratio = numerator / denominator;
  const frameRate = (number("frameRate") ?? 30) * (ratio > 0 && Number.isFinite(ratio) ? ratio : 1);
  const subFrames = number("subFrameRate") ?? 1;
  const tickRate = number("tickRate") ?? (attributes.has("frameRate") ? frameRate * subFrames : 1);
  return { frameRate, subFrames, tickRate };
}

/** Returns a time expression (TTML1 §10.3.1) in seconds; `null` if it is none. */
export function secondsOf(text: string | undefined, { frameRate, subFrames, tickRate }: Rates): number | null {
  if (text === undefined) return null;
  const stated = text.trim().slice(0, 100);
  const clock = /^(\d{1,6}):(\d{2}):(\d{2})(?:[.,](\d{1,20})|:(\d{1,6})(?:\.(\d{1,6}))?)?$/.exec(stated);
  if (clock !== null) {
    const [, hours, minutes, seconds, fraction = "0", frames = "0", subFrame = "0"] = clock;
    const whole = Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
    return whole + Number(`0.${fraction}`) + (Number(frames) + Number(subFrame) / subFrames) / frameRate;
  }
  const [, count, unit = ""] = /^(\d{1,20}(?:\.\d{1,20})?)(h|m|s|ms|f|t)?$/.exec(stated) ?? [];
  const units: Record<string, number> = { h: 3600, m: 60, s: 1, ms: 0.001, f: 1 / frameRate, t: 1 / tickRate };
  return count === undefined ? null : Number(count) * (units[unit] ?? 1);
}

/** Returns a name without its prefix. */
export function localName(name: string): string {
  return name.slice(name.indexOf(":") + 1);
}
