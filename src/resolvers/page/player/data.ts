import { mediaExtension } from "../../../parsers/media-type.ts";
import { decodeUrlInBase64 } from "./strings.ts";

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
}

export interface Field {
  readonly key: string;
  readonly value: string | Data;
}

const maxFields = 1_000;
const maxAncestors = 300;

const fileName = new RegExp(String.raw`\.${mediaExtension}\/?(?:[?&#;]|$)`, "i");
const mediaType = /^(?:video|audio)\/\w|mpegurl$|dash\+xml$/i;
const typeKey = /type|format|mime|delivery|protocol/i;
const typeWord = /^(?:hls|dash|m3u8|mpd|mp[34]|webm)$/i;
const manifestKey = /hls|dash|m3u8|mpd|^loadSource$/i;
const descriptiveName = /track|caption|subtitle|poster|image|thumb|picture|title|duration/i;

/** Whether a URL may be a medium's, by the extension of its file. */
export function namesFile(text: string): boolean {
  return fileName.test(text);
}

export function createData(kind: Data["kind"], name: string, parent: Data | null): Data {
  return { kind, name, parent, fields: [], isMarked: false };
}

/** Whether it is a tag; those that are alike are a list. */
export function isTag({ kind, parent }: Data): boolean {
  return kind === "object" && parent?.kind === "array" && parent.parent === null;
}

/** Adds a text; decodes it if it is a URL in base64. Marks `data` and its ancestors if it may name a medium. */
export function addText(data: Data, key: string, text: string): void {
  if (data.fields.length >= maxFields) return;
  const value = decodeUrlInBase64(text);
  data.fields.push({ key, value });
  if (data.isMarked) return;
  if (typeKey.test(key) && typeWord.test(value)) mark(data);
  if (value.length < 5) return;
  const isManifest = value.includes("/") && (manifestKey.test(key) || mediaType.test(value));
  if (isManifest || (value.includes(".") && namesFile(value))) mark(data);
}

/** Whether what has this name may say more about a medium, although it names none itself. */
export function isDescriptive(name: string): boolean {
  return descriptiveName.test(name);
}

/** Adds what has been read to its parent, if it is of use. */
export function addToParent(data: Data): void {
  const { parent, name, fields, isMarked } = data;
  const isOfUse = isMarked || (fields.length > 0 && isDescriptive(name));
  if (parent === null || !isOfUse || parent.fields.length >= maxFields) return;
  parent.fields.push({ key: name, value: data });
}

/** Marks it and what it is in. */
export function mark(data: Data): void {
  let next: Data | null = data;
  for (let n = 0; next !== null && !next.isMarked && n < maxAncestors; n++) {
    next.isMarked = true;
    next = next.parent;
  }
}
