import { mediaExtension } from "../../../parsers/media-type.ts";
import { aboutWords, names, properties, type Property } from "../lexicon/words.ts";
import { decodeUrlInBase64 } from "./encodings.ts";

/**
 * What a script or a tag says, as far as it may name a medium: objects, arrays, and the blocks around
 * them. Nothing of it is evaluated.
 */
export interface Data {
  /** `object`: also a tag; `array`: also tags that are alike; `block`: a script, the body of a function, the arguments of a call. */
  readonly kind: "object" | "array" | "block";
  /** Property, variable or called function that it is the value of; "": none. */
  readonly name: string;
  readonly parent: Data | null;
  /** At most 1,000. The elements of an array have its name as key. */
  readonly fields: Field[];
  /** It, or something in it, may name a medium. */
  isMarked: boolean;
  readonly budget: FieldBudget;
}

/** How many fields may still be read of a page, and of all objects in it. */
export interface FieldBudget {
  fields: number;
}

/** More than fifty times as many as saved pages have. */
export const maxPageFields = 100_000;

interface Field {
  readonly key: string;
  readonly value: string | Data;
}

/** Asked for each object of a script: it must be fast. */
const descriptive = new RegExp(aboutWords.replaceAll(" ", "|"), "i");
const maxFields = 1_000;
const maxAncestors = 300;
/** As long as a URL may be, UTF-16 code units. */
export const maxTextLength = 8_192;
const maxFormatWord = 4;

const fileName = new RegExp(String.raw`\.${mediaExtension}\/?(?:[?&#;]|$)`, "i");
const mediaType = /^(?:video|audio)\/\w|mpegurl$|dash\+xml$/i;

/** Whether a URL may be a medium's, by the extension of its file. */
export function namesFile(text: string): boolean {
  return fileName.test(text);
}

/** Creates an object that is in no other. */
export function createRoot(kind: Data["kind"], budget: FieldBudget): Data {
  return { kind, name: "", parent: null, fields: [], isMarked: false, budget };
}

/** Creates an object in another one; `addToParent` adds it there once it is read. */
export function createData(kind: Data["kind"], name: string, parent: Data): Data {
  return { kind, name, parent, fields: [], isMarked: false, budget: parent.budget };
}

/** Whether it is a tag; those that are alike are a list. */
export function isTag({ kind, parent }: Data): boolean {
  return kind === "object" && parent?.kind === "array" && parent.parent === null;
}

/**
 * Adds a text; decodes it if it is a URL in base64. Marks `data` and its ancestors if it may name a medium. A text that is longer
 * than a URL may be is left out.
 */
export function addText(data: Data, key: string, text: string): void {
  if (text.length > maxTextLength || !takesField(data)) return;
  const value = decodeUrlInBase64(text);
  addField(data, { key, value });
  if (data.isMarked) return;
  if (value.length <= maxFormatWord) {
    if (properties.has(value, "formatWord") && names.has(key, "type")) mark(data);
    return;
  }
  const isMedium =
    (value.includes(".") && namesFile(value)) ||
    (value.includes("/") && (mediaType.test(value) || names.has(key, "manifest")));
  if (isMedium) mark(data);
}

/** Whether what has this name may say more about a medium, although it names none itself. */
export function isDescriptive(name: string): boolean {
  return descriptive.test(name);
}

/** Adds what has been read to its parent, if it is of use. */
export function addToParent(data: Data): void {
  const { parent, name, fields, isMarked } = data;
  const isOfUse = isMarked || (fields.length > 0 && isDescriptive(name));
  if (parent !== null && isOfUse && takesField(parent)) addField(parent, { key: name, value: data });
}

function takesField({ fields, budget }: Data): boolean {
  return fields.length < maxFields && budget.fields > 0;
}

function addField(data: Data, field: Field): void {
  data.fields.push(field);
  data.budget.fields--;
}

/** Marks it and what it is in. */
export function mark(data: Data): void {
  let next: Data | null = data;
  for (let n = 0; next !== null && !next.isMarked && n < maxAncestors; n++) {
    next.isMarked = true;
    next = next.parent;
  }
}

/** Returns `of` for objects, which is called once for each. The object must have been read to its end. */
export function onceForEach<T>(of: (data: Data) => T): (data: Data) => T {
  const known = new WeakMap<Data, { value: T }>();
  return (data) => {
    const { value } = known.get(data) ?? { value: of(data) };
    known.set(data, { value });
    return value;
  };
}

/** Returns the first text that a field states for each of these properties. */
export function readTexts<const P extends Property>(
  { fields }: Data,
  wanted: readonly P[],
): Partial<Record<P, string>> {
  const texts: Partial<Record<P, string>> = {};
  for (const { key, value } of fields) {
    if (typeof value !== "string" || value === "") continue;
    const roles = properties.rolesIn(key);
    if (roles === 0) continue;
    for (const property of wanted) {
      if ((roles & properties.bitsOf(property)) !== 0) texts[property] ??= value;
    }
  }
  return texts;
}
