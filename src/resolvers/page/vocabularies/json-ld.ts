import { decodeHTML, decodeHTMLStrict } from "entities";
import { localName, maxTypes, type Thing, type Value } from "../markup/thing.ts";

/** Of one block. */
const maxThings = 2000;
const maxDepth = 16;
const maxValues = 500;
const maxProperties = 500;

/**
 * Returns the things of a page's JSON-LD blocks (JSON-LD 1.1), without blocks that cannot be parsed. Arrays, `@graph`,
 * `@list`, `@set` and `@value` are flattened, nested things stay nested, references by `@id` are
 * resolved, also those to other blocks. Contexts are ignored: all terms are taken as schema.org's. Wrapping comments and common
 * syntax errors are accepted.
 */
export function parseJsonLd(sources: readonly string[]): Thing[] {
  const state: State = { remainingThings: 0, byId: new Map(), references: [] };
  const roots = sources.flatMap((source) => {
    state.remainingThings = maxThings;
    return toValues(parseLeniently(source), 0, state);
  });
  for (const { values, index, id } of state.references) {
    const target = state.byId.get(id);
    if (target !== undefined) values[index] = target;
  }
  return roots.filter((value) => typeof value !== "string");
}

/** Applied in order until the result can be parsed. */
const repairs: ((source: string) => string)[] = [
  (source) => source,
  withoutWrapper,
  (source) => withoutSyntaxErrors(withoutWrapper(source)),
  (source) => withoutSyntaxErrors(decodeHTML(withoutWrapper(source))),
];

function parseLeniently(source: string): unknown {
  for (const repair of repairs) {
    try {
      return JSON.parse(repair(source));
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
  }
  return null;
}

/** Removes what pages put around the JSON: comments, CDATA marks, a final semicolon. */
function withoutWrapper(source: string): string {
  const bare = source.replaceAll("<![CDATA[", "").replaceAll("]]>", "");
  return bare.slice(Math.max(0, bare.search(/[[{]/)), Math.max(bare.lastIndexOf("]"), bare.lastIndexOf("}")) + 1);
}

/**
 * Matches strings, comments, and commas before a closing bracket. An unclosed one matches to the end,
 * so that no text is scanned twice.
 */
const token = /"[^"\\]*(?:\\[^][^"\\]*)*(?:"|\\?$)|\/\*[^*]*(?:\*(?!\/)[^*]*)*(?:\*\/|$)|\/\/[^\n]*|,(?=\s*[\]}])/g;

function withoutSyntaxErrors(source: string): string {
  return source.replace(token, (found) => (found.startsWith('"') ? withoutControls(found) : ""));
}

function withoutControls(string: string): string {
  return string.replace(/[\u0000-\u001f]/g, (control) => JSON.stringify(control).slice(1, -1));
}

interface State {
  remainingThings: number;
  byId: Map<string, Thing>;
  /** Where values are that have only an `@id`. */
  references: { values: Value[]; index: number; id: string }[];
}

function toValues(node: unknown, depth: number, state: State): Value[] {
  if (typeof node === "string") return [node.includes("&") ? decodeHTMLStrict(node) : node];
  if (typeof node === "number" || typeof node === "boolean") return [String(node)];
  if (typeof node !== "object" || node === null || depth > maxDepth) return [];
  if (Array.isArray(node)) {
    return node.slice(0, maxValues).flatMap((each) => toValues(each, depth + 1, state));
  }
  const object = new Map<string, unknown>(Object.entries(node).slice(0, maxProperties));
  for (const keyword of ["@value", "@list", "@set"]) {
    if (object.has(keyword)) return toValues(object.get(keyword), depth + 1, state);
  }
  if (--state.remainingThings < 0) return [];
  const graph = toValues(object.get("@graph"), depth + 1, state);
  const thing = toThing(object, depth, state);
  const isEmpty = thing.properties.size === 0 && thing.types.length === 0 && thing.id === null;
  return isEmpty ? graph : [thing, ...graph];
}

function toThing(object: Map<string, unknown>, depth: number, state: State): Thing {
  const properties = new Map<string, Value[]>();
  for (const [key, value] of object) {
    if (key.startsWith("@")) continue;
    const values = toValues(value, depth + 1, state);
    if (values.length > maxValues) values.length = maxValues;
    if (values.length > 0) properties.set(localName(key).toLowerCase(), values);
    for (const [index, each] of values.entries()) {
      if (typeof each === "string" || each.id === null || each.properties.size > 0) continue;
      state.references.push({ values, index, id: each.id });
    }
  }
  const types = toValues(object.get("@type") ?? object.get("type"), depth + 1, state)
    .filter((type) => typeof type === "string")
    .slice(0, maxTypes)
    .map(localName);
  const stated = object.get("@id");
  const id = typeof stated === "string" && stated !== "" ? stated : null;
  const thing = { types, id, properties };
  if (id !== null && properties.size > 0) state.byId.set(id, thing);
  return thing;
}
