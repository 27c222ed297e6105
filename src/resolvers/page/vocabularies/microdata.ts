import { decodeHTML } from "entities";
import type { Attributes } from "../markup/attributes.ts";
import { localName, type Thing, type Value } from "./thing.ts";

interface Item extends Thing {
  readonly properties: Map<string, Value[]>;
}

/** An open element within an item. */
interface Frame {
  name: string;
  item: Item | null;
  target: Target | null;
}

/** Where an element's text goes. */
interface Target {
  owner: Item;
  names: readonly string[];
  pieces: string[];
  room: number;
}

const maxItems = 500;
const maxFrames = 128;
const maxTargets = 16;
const maxValues = 200;
const maxTextLength = 20_000;

const voidElements = new Set(
  "area base br col embed hr img input link meta param source track wbr".split(" "),
);
const addressAttributes: Readonly<Record<string, string>> = {
  a: "href",
  area: "href",
  audio: "src",
  data: "value",
  embed: "src",
  iframe: "src",
  img: "src",
  link: "href",
  meta: "value",
  meter: "value",
  object: "data",
  source: "src",
  time: "datetime",
  track: "src",
  video: "src",
};
/** Of these the text is meant, also where the element is a link. */
const textProperties = new Set("author creator description headline keywords name".split(" "));

/** Reads microdata (HTML Standard §5.2) from tags as they come; `itemref` is not followed. */
export class MicrodataReader {
  readonly items: Thing[] = [];
  #itemCount = 0;
  /** The open elements, from the outermost item's on. */
  readonly #frames: Frame[] = [];
  /** How many frames there are of each name. */
  readonly #openNames = new Map<string, number>();
  readonly #owners: Item[] = [];
  readonly #targets: Target[] = [];
  /** Open elements beyond `maxFrames`. */
  #deeper = 0;

  /** Within an item: every tag is needed. */
  get isInside(): boolean {
    return this.#owners.length > 0;
  }

  /** Within a property whose value is its element's text. */
  get isListening(): boolean {
    return this.#targets.length > 0;
  }

  /** A start tag; its attributes only where they hold microdata. */
  open(name: string, attributes: Attributes | null): void {
    const frame = attributes === null ? null : this.#frameOf(name, attributes);
    if (voidElements.has(name) || (!this.isInside && !frame?.item)) return;
    if (this.#frames.length === maxFrames) {
      this.#deeper++;
      return;
    }
    this.#frames.push(frame ?? { name, item: null, target: null });
    this.#openNames.set(name, (this.#openNames.get(name) ?? 0) + 1);
    if (frame?.item) this.#owners.push(frame.item);
    if (frame?.target) this.#targets.push(frame.target);
  }

  /** Ends the element and all within it that has not been ended. */
  close(name: string): void {
    if (this.#deeper > 0) {
      this.#deeper--;
      return;
    }
    const isOpen = (this.#openNames.get(name) ?? 0) > 0;
    if (isOpen) this.#closeFrom(this.#frames.findLastIndex((frame) => frame.name === name));
  }

  text(piece: string): void {
    for (const target of this.#targets) {
      if (target.room > 0) target.pieces.push(piece.slice(0, target.room));
      target.room -= piece.length;
    }
  }

  /** Ends all that is open. */
  end(): void {
    this.#closeFrom(0);
  }

  /** Where the element is an item, or its text is a value. */
  #frameOf(name: string, attributes: Attributes): Frame | null {
    const names = (attributes.get("itemprop") ?? "").split(/\s+/).filter(Boolean).map(propertyName);
    const owner = this.#owners.at(-1) ?? null;
    if (attributes.has("itemscope") && this.#itemCount < maxItems) {
      const item = newItem(attributes);
      this.#itemCount++;
      if (names.length > 0 && owner !== null) addValue(owner, names, item);
      else this.items.push(item);
      return { name, item, target: null };
    }
    if (names.length === 0 || owner === null) return null;
    const value = attributeValue(name, attributes, names);
    if (value !== null) addValue(owner, names, value);
    if (value !== null || voidElements.has(name) || this.#targets.length === maxTargets)
      return null;
    return { name, item: null, target: { owner, names, pieces: [], room: maxTextLength } };
  }

  #closeFrom(index: number): void {
    for (const { name, item, target } of this.#frames.splice(index).toReversed()) {
      this.#openNames.set(name, (this.#openNames.get(name) ?? 1) - 1);
      if (item !== null) this.#owners.pop();
      if (target === null) continue;
      this.#targets.pop();
      const text = target.pieces.join("").trim();
      if (text !== "") addValue(target.owner, target.names, decodeHTML(text));
    }
  }
}

function newItem(attributes: Attributes): Item {
  const types = (attributes.get("itemtype") ?? "").split(/\s+/).filter(Boolean).map(localName);
  return { types, id: attributes.get("itemid")?.trim() || null, properties: new Map() };
}

function propertyName(name: string): string {
  return localName(name).toLowerCase();
}

/** An attribute's value, `content` first: pages put it on all kinds of elements. */
function attributeValue(name: string, attributes: Attributes, names: string[]): string | null {
  const content = attributes.get("content")?.trim();
  if (content !== undefined && content !== "") return content;
  if (name === "a" && names.some((property) => textProperties.has(property))) return null;
  return attributes.get(addressAttributes[name] ?? "")?.trim() || null;
}

function addValue(item: Item, names: readonly string[], value: Value): void {
  for (const name of names) {
    const values = item.properties.get(name) ?? [];
    if (values.length === 0 && item.properties.size < maxValues) item.properties.set(name, values);
    if (values.length < maxValues) values.push(value);
  }
}
