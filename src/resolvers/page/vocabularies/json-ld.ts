import { decodeHTML, decodeHTMLStrict } from "entities";
import { localName, type Thing, type Value } from "./thing.ts";

const maxThings = 2000;
const maxDepth = 16;
const maxValues = 500;

/**
 * The things of one JSON-LD block (JSON-LD 1.1): arrays, `@graph`, `@list`, `@set` and `@value` are
 * undone, nested things stay nested, references
 * by `@id` lead to what they mean. Contexts are not applied; terms are taken as schema.org's. Blocks
 * wrapped in comments or with small faults are read; one that cannot be read states nothing: [].
 */
export function readJsonLd(source: string): Thing[] {
  const budget: Budget = { things: maxThings, byId: new Map(), references: [] };
  const roots = valuesFrom(parseLeniently(source), 0, budget);
  for (const { values, index, id } of budget.references) {
    const meant = budget.byId.get(id);
    if (meant !== undefined) values[index] = meant;
  }
  return roots.filter((value) => typeof value !== "string");
}

/** Tried in order until one can be parsed. */
const repairs: ((source: string) => string)[] = [
  (source) => source,
  withoutWrapper,
  (source) => withoutFaults(withoutWrapper(source)),
  (source) => withoutFaults(decodeHTML(withoutWrapper(source))),
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

/** Without what pages put around the JSON: comments, CDATA marks, a final semicolon. */
function withoutWrapper(source: string): string {
  const bare = source.replaceAll("<![CDATA[", "").replaceAll("]]>", "");
  return bare.slice(
    Math.max(0, bare.search(/[[{]/)),
    Math.max(bare.lastIndexOf("]"), bare.lastIndexOf("}")) + 1,
  );
}

/**
 * Strings, comments, commas before a closing bracket. What is not closed reaches to the end, so that
 * nothing is looked at twice.
 */
const token =
  /"[^"\\]*(?:\\[^][^"\\]*)*(?:"|$)|\/\*[^*]*(?:\*(?!\/)[^*]*)*(?:\*\/|$)|\/\/[^\n]*|,(?=\s*[\]}])/g;

function withoutFaults(source: string): string {
  return source.replace(token, (found) => (found.startsWith('"') ? withoutControls(found) : ""));
}

function withoutControls(string: string): string {
  return string.replace(/[\u0000-\u001f]/g, (control) => JSON.stringify(control).slice(1, -1));
}

interface Budget {
  things: number;
  byId: Map<string, Thing>;
  /** Places of things that state nothing but the `@id` of another. */
  references: { values: Value[]; index: number; id: string }[];
}

function valuesFrom(node: unknown, depth: number, budget: Budget): Value[] {
  if (typeof node === "string") return [node.includes("&") ? decodeHTMLStrict(node) : node];
  if (typeof node === "number" || typeof node === "boolean") return [String(node)];
  if (typeof node !== "object" || node === null || depth > maxDepth) return [];
  if (Array.isArray(node)) {
    return node.slice(0, maxValues).flatMap((each) => valuesFrom(each, depth + 1, budget));
  }
  const object = new Map<string, unknown>(Object.entries(node));
  for (const keyword of ["@value", "@list", "@set"]) {
    if (object.has(keyword)) return valuesFrom(object.get(keyword), depth + 1, budget);
  }
  if (--budget.things < 0) return [];
  const graph = valuesFrom(object.get("@graph"), depth + 1, budget);
  const thing = thingFrom(object, depth, budget);
  const isEmpty = thing.properties.size === 0 && thing.types.length === 0 && thing.id === null;
  return isEmpty ? graph : [thing, ...graph];
}

function thingFrom(object: Map<string, unknown>, depth: number, budget: Budget): Thing {
  const properties = new Map<string, Value[]>();
  for (const [key, value] of object) {
    if (key.startsWith("@")) continue;
    const values = valuesFrom(value, depth + 1, budget);
    if (values.length > 0) properties.set(localName(key).toLowerCase(), values);
    for (const [index, each] of values.entries()) {
      if (typeof each === "string" || each.id === null || each.properties.size > 0) continue;
      budget.references.push({ values, index, id: each.id });
    }
  }
  const types = valuesFrom(object.get("@type") ?? object.get("type"), depth + 1, budget)
    .filter((type) => typeof type === "string")
    .map(localName);
  const stated = object.get("@id");
  const id = typeof stated === "string" && stated !== "" ? stated : null;
  const thing = { types, id, properties };
  if (id !== null && properties.size > 0) budget.byId.set(id, thing);
  return thing;
}
