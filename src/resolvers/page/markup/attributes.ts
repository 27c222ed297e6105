import { decodeHTMLAttribute } from "entities";
import { names } from "../lexicon/words.ts";

export type Attributes = ReadonlyMap<string, string>;

/** The further attributes of a tag are ignored. */
const maxAttributes = 100;
/** Longer values are cut, UTF-16 code units: longer than any text or URL of a record. */
const defaultMaxValueLength = 32 * 1024;
/** Groups: name; value in ", in ' or unquoted. The alternatives start differently: no backtracking. */
const attribute = /([^\s"'<>/=][^\s/>=]*)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>][^\s>]*)))?/g;

/**
 * Returns the attributes in a tag's source: names in lower case, entities decoded once, of duplicates
 * the first, at most 100. Values are cut to `maxValueLength` (32 Ki) characters as written.
 */
export function parseAttributes(source: string, maxValueLength = defaultMaxValueLength): Attributes {
  const attributes = new Map<string, string>();
  attribute.lastIndex = 0;
  for (let match = attribute.exec(source); match !== null; match = attribute.exec(source)) {
    const key = match[1]?.toLowerCase() ?? "";
    const value = match[2] ?? match[3] ?? match[4] ?? "";
    if (!attributes.has(key)) attributes.set(key, decodeAttribute(value.slice(0, maxValueLength)));
    if (attributes.size === maxAttributes) break;
  }
  return attributes;
}

/** In JSON nearly all entities are `&quot;`; replacing these first is faster. */
function decodeAttribute(value: string): string {
  if (!value.includes("&")) return value;
  const quoted = value.replaceAll("&quot;", '"');
  return quoted.includes("&") ? decodeHTMLAttribute(quoted) : quoted;
}

/**
 * Whether a tag is part of the page's design: named as a background, or a loop without controls that is muted or starts
 * by itself.
 */
export function isDecoration(name: string, attributes: Attributes): boolean {
  const states = new Set<string>();
  for (const [key, value] of attributes) {
    if (key === "controls" && value !== "false") return false;
    // `data-loop` too.
    if (value !== "false") states.add(key.slice(key.lastIndexOf("-") + 1));
  }
  const startsSilently = ["mute", "muted", "autoplay"].some((state) => states.has(state));
  if (states.has("loop") && startsSilently) return true;
  return [name, attributes.get("id"), attributes.get("class")].some((about) => names.has(about ?? "", "background"));
}

/** Whether an element says that it is not shown. */
export function isHidden(attributes: Attributes): boolean {
  const style = attributes.get("style")?.slice(0, 1_000) ?? "";
  return attributes.has("hidden") || /display\s*:\s*none|visibility\s*:\s*hidden/i.test(style);
}
