import { isFrameUrl, mayBePlayer } from "../frames.ts";
import { names } from "../lexicon/words.ts";
import { type Attributes, isDecoration, parseAttributes } from "../markup/attributes.ts";
import type { Markup, PlayerSource } from "../markup/markup.ts";
import {
  addText,
  addToParent,
  createData,
  createRoot,
  type Data,
  maxPageFields,
  type FieldBudget,
} from "../scripts/data.ts";
import { startOfData } from "../scripts/encodings.ts";
import { mayNameMedium } from "../scripts/media-names.ts";
import { readScript } from "../scripts/read-script.ts";

/** Of an attribute's value, UTF-16 code units. */
const maxDataLength = 256 * 1024;
const maxQueryLength = 32 * 1024;
const maxVariables = 100;
const maxHrefLength = 1_000;
const pushStart = 'self.__next_f.push([1,"';
const pushEnd = '"])';
/** Longer streams are read in parts, characters as encoded. */
const maxStreamLength = 1_000_000;

/**
 * Returns what the scripts and tags of a page say that names a medium, in page order. Tags of one name with the same
 * attributes are a list. A tag's data has its `data-*` attributes, the URL of a link to download or to play, of a hidden
 * input or of a custom element, and the variables in the URL of a player in a frame.
 */
export function findData({ playerSources, pageText }: Pick<Markup, "playerSources" | "pageText">): Data[] {
  const found = new Set<Data>();
  const tags = new Map<string, Data>();
  const budget: FieldBudget = { fields: maxPageFields };
  for (const each of searchSources(playerSources)) {
    if (budget.fields === 0) break;
    if ("script" in each) {
      const root = createRoot("block", budget);
      readScript(pageText.decode(each.script), root);
      if (root.isMarked) found.add(root);
      continue;
    }
    const attributes = parseAttributes(pageText.decode(each.source), maxDataLength);
    const kind = [each.name, ...attributes.keys()].join(" ");
    const list = tags.get(kind) ?? createRoot("array", budget);
    tags.set(kind, list);
    const tag = createData("object", "", list);
    readTag(each.name, attributes, tag);
    addToParent(tag);
    if (list.isMarked) found.add(list);
  }
  return [...found];
}

/** Returns the sources that may name a medium. */
function searchSources(sources: readonly PlayerSource[]): PlayerSource[] {
  const found: PlayerSource[] = [];
  const pushes: string[] = [];
  let firstPush = 0;
  for (const each of sources) {
    if ("script" in each) {
      const pushed = pushedText(each.script);
      if (pushed !== null) {
        if (pushes.length === 0) firstPush = found.length;
        pushes.push(pushed);
      } else if (mayNameMedium(each.script)) found.push(each);
    } else if (mayNameMedium(each.source)) found.push(each);
  }
  const streams = joinPushes(pushes).flatMap((script) => (mayNameMedium(script) ? { script } : []));
  return found.toSpliced(firstPush, 0, ...streams);
}

/** Returns the text that a script of Next.js pushes to the stream of its server components; null for other scripts. */
function pushedText(script: string): string | null {
  if (!script.startsWith(pushStart)) return null;
  const text = script.trimEnd();
  return text.endsWith(pushEnd) ? text.slice(pushStart.length, -pushEnd.length) : null;
}

/** Joins the pushes of one stream, which may be cut anywhere, into one script; a long stream into several. */
function joinPushes(texts: readonly string[]): string[] {
  const scripts: string[][] = [];
  let length = Infinity;
  for (const text of texts) {
    if (length + text.length > maxStreamLength) {
      scripts.at(-1)?.push(pushEnd);
      scripts.push([pushStart]);
      length = 0;
    }
    scripts.at(-1)?.push(text);
    length += text.length;
  }
  scripts.at(-1)?.push(pushEnd);
  return scripts.map((parts) => parts.join(""));
}

function readTag(name: string, attributes: Attributes, root: Data): void {
  if (isDecoration(name, attributes)) return;
  for (const [attribute, value] of attributes) {
    if (isPlayerUrl(name, attribute) && mayBePlayer(attributes, value))
      readVariables(value.slice(value.indexOf("?") + 1), root);
    const key = keyOf(name, attribute, attributes);
    if (key === null) continue;
    if (key === "flashvars") readVariables(value, root);
    else readValue(key, value, root, attribute === "x-data");
  }
}

function readValue(key: string, value: string, root: Data, isProgram = false): void {
  if (startOfData(value) !== 0 && !isProgram) {
    addText(root, key, value);
    return;
  }
  const data = createData("block", key, root);
  readScript(value, data);
  addToParent(data);
}

/** Reads the variables of a player, as Flash or the query of its URL has them: `file=…&image=…`. */
function readVariables(value: string, root: Data): void {
  const variables = new URLSearchParams(value.slice(0, maxQueryLength));
  for (const [key, text] of [...variables].slice(0, maxVariables)) readValue(key, text, root);
}

/** Whether an attribute has the URL of a player in a frame, or of a plug-in. */
function isPlayerUrl(name: string, attribute: string): boolean {
  if (name === "object") return attribute === "data";
  return (name === "iframe" || name === "embed") && isFrameUrl(attribute);
}

const statedAttributes = new Set(["title", "id", "poster", "duration"]);

/** Returns the key of an attribute's value in a tag's data; null if the attribute states no medium. */
function keyOf(name: string, attribute: string, attributes: Attributes): string | null {
  if (name === "iframe") return null;
  if (attribute.startsWith("data-")) return attribute.slice(5);
  if (attribute === "x-data") return "data";
  if (attribute === "alt") return "title";
  if (attribute === "flashvars" || statedAttributes.has(attribute)) return attribute;
  if ((attribute === "src" && name === "embed") || (attribute === "data" && name === "object")) return "src";
  if (attribute === "href" && name === "a") return keyOfLink(attributes);
  if (attribute !== "value") return name.includes("-") ? attribute : null;
  const stated = attributes.get("name") ?? attributes.get("id") ?? "";
  if (name === "param") return stated.toLowerCase();
  const isHidden = name === "input" && attributes.get("type")?.toLowerCase() === "hidden";
  return isHidden ? stated : null;
}

/** Returns `download` for a link to download, `src` for one that a player or a lightbox plays; null for any other. */
function keyOfLink(attributes: Attributes): string | null {
  const about = [...attributes.keys(), ...["class", "id", "title", "rel"].map((name) => attributes.get(name) ?? "")];
  const href = attributes.get("href")?.slice(0, maxHrefLength) ?? "";
  if (about.some((name) => names.has(name, "download")) || /[?&/]download\b/i.test(href)) return "download";
  return about.some((name) => names.has(name, "lightbox")) ? "src" : null;
}
