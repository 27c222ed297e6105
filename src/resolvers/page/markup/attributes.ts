import { decodeHTMLAttribute } from "entities";

export type Attributes = ReadonlyMap<string, string>;

/** Attributes of one tag that are kept; the rest is passed over. */
const maxAttributes = 100;
/** Groups: name, and the value as quoted by ", by ' or bare. Each alternative starts differently. */
const attribute = /([^\s"'<>/=][^\s/>=]*)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>][^\s>]*)))?/g;

/** The attributes of a tag's source: names in lower case, entities decoded once, first one wins. */
export function readAttributes(source: string): Attributes {
  const attributes = new Map<string, string>();
  attribute.lastIndex = 0;
  for (let match = attribute.exec(source); match !== null; match = attribute.exec(source)) {
    const key = match[1]?.toLowerCase() ?? "";
    const value = match[2] ?? match[3] ?? match[4] ?? "";
    if (!attributes.has(key)) attributes.set(key, decodeAttribute(value));
    if (attributes.size === maxAttributes) break;
  }
  return attributes;
}

function decodeAttribute(value: string): string {
  return value.includes("&") ? decodeHTMLAttribute(value) : value;
}
