import { parseDuration } from "../../../parsers/quantities.ts";
import { isFrontPage, tryParseUrl } from "../../../parsers/url.ts";

/**
 * A node of schema.org's graph, from JSON-LD or microdata. Types are without the vocabulary's URL;
 * property names are in lower case, because pages write both `embedUrl` and `embedURL`.
 */
export interface Thing {
  readonly types: readonly string[];
  readonly id: string | null;
  readonly properties: ReadonlyMap<string, readonly Value[]>;
}

export type Value = string | Thing;

/** Of a thing, and of the nested things of a property whose texts count: references could make of a short page many times its texts. */
export const maxTypes = 20;
const maxNested = 50;

/** Returns `VideoObject` for `https://schema.org/VideoObject` and `schema:VideoObject`. */
export function localName(name: string): string {
  return name.slice(Math.max(name.lastIndexOf("/"), name.lastIndexOf("#"), name.lastIndexOf(":")) + 1);
}

/** Whether the thing has one of these types. */
export function isA(thing: Thing, types: ReadonlySet<string>): boolean {
  return thing.types.some((type) => types.has(type));
}

/** Returns the URL that a thing's id is; null for a name within the front page, such as `https://example.com/#/person/1`, which leads nowhere. */
export function idUrl({ id }: Thing, base: URL): URL | null {
  const url = tryParseUrl(id, base);
  return url === null || (url.hash !== "" && isFrontPage(url)) ? null : url;
}

/** Returns how long a medium lasts, seconds: a text, a Duration or a QuantitativeValue. */
export function durationOf(thing: Thing): number | null {
  return parseDuration(textsWithin(thing, "duration", "value", "name")[0]);
}

/** Returns all values of these properties. */
export function valuesOf(thing: Thing, ...names: string[]): Value[] {
  return names.flatMap((name) => thing.properties.get(name) ?? []);
}

/** Returns the nested things among the values of these properties. */
export function thingsOf(thing: Thing, ...names: string[]): Thing[] {
  return valuesOf(thing, ...names).filter((value) => typeof value !== "string");
}

/** Returns the texts of the first of these properties that has any. */
export function textsOf(thing: Thing, ...names: string[]): string[] {
  for (const name of names) {
    const texts = (thing.properties.get(name) ?? []).filter((value) => typeof value === "string");
    if (texts.length > 0) return texts;
  }
  return [];
}

/** Returns the first text of the first of these properties that has any; null if none has. */
export function textOf(thing: Thing, ...names: string[]): string | null {
  for (const name of names) {
    const text = thing.properties.get(name)?.find((value) => typeof value === "string");
    if (text !== undefined) return text;
  }
  return null;
}

/** Returns the first 50 of a property's values as texts; of a nested thing the first text of `names`. */
export function textsWithin(thing: Thing, property: string, ...names: string[]): string[] {
  return valuesOf(thing, property)
    .slice(0, maxNested)
    .flatMap((value) => (typeof value === "string" ? [value] : (textOf(value, ...names) ?? [])));
}
