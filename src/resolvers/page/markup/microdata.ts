import { decodeHTML } from "entities";
import type { Attributes } from "./attributes.ts";
import { maxBytesPerUnit, type PageText } from "./charset.ts";
import { localName, maxTypes, type Thing, type Value } from "./thing.ts";

interface Item extends Thing {
  readonly properties: Map<string, Value[]>;
}

/** An open element that is an item or within one. */
interface Frame {
  name: string;
  item: Item | null;
  target: Target | null;
}

/** Collects an element's text as the value of properties. */
interface Target {
  owner: Item;
  names: readonly string[];
  chunks: string[];
  /** How much more text is kept, as encoded. */
  remaining: number;
}

const maxItems = 500;
const maxFrames = 128;
const maxTargets = 16;
const maxValues = 200;
const maxTextLength = 20_000;
/** Of all texts of a page, as encoded: nested properties have the same text. */
const maxTextsLength = 4 * 1024 * 1024;

const voidElements = new Set("area base br col embed hr img input link meta param source track wbr".split(" "));
/** The attribute that states an element's value, by the element. */
const valueAttributes: ReadonlyMap<string, string> = new Map(
  Object.entries({
    src: "audio embed iframe img source track video",
    href: "a area link",
    value: "data meta meter",
    data: "object",
    datetime: "time",
  }).flatMap(([attribute, elements]) => elements.split(" ").map((element) => [element, attribute] as const)),
);
/** Properties whose value is the element's text even if the element is a link. */
const textProperties = new Set("author creator description headline keywords name".split(" "));

/** Collects microdata (HTML Standard §5.2) from tags in page order; `itemref` is ignored. */
export class MicrodataReader {
  /** The items that are no value of another item. */
  readonly items: Thing[] = [];
  #itemCount = 0;
  /** The open elements from the outermost item on. */
  readonly #frames: Frame[] = [];
  /** The number of frames by element name. */
  readonly #openNames = new Map<string, number>();
  readonly #owners: Item[] = [];
  readonly #targets: Target[] = [];
  /** The number of open elements beyond `maxFrames`. */
  #excessDepth = 0;
  readonly #pageText: PageText;
  /** How much more text of the page is kept, as encoded. */
  #remaining = maxTextsLength;

  constructor(pageText: PageText) {
    this.#pageText = pageText;
  }

  /** Whether an item is open; then `open` and `close` need every tag. */
  get isInItem(): boolean {
    return this.#owners.length > 0;
  }

  /** Whether a property is open whose value is its element's text. */
  get wantsText(): boolean {
    return this.#targets.length > 0;
  }

  /** Takes a start tag; `attributes` is null if they have no microdata. */
  open(name: string, attributes: Attributes | null): void {
    const frame = attributes === null ? null : this.#createFrame(name, attributes);
    if (voidElements.has(name) || (!this.isInItem && !frame?.item)) return;
    if (this.#frames.length === maxFrames) {
      this.#excessDepth++;
      return;
    }
    this.#frames.push(frame ?? { name, item: null, target: null });
    this.#openNames.set(name, (this.#openNames.get(name) ?? 0) + 1);
    if (frame?.item) this.#owners.push(frame.item);
    if (frame?.target) this.#targets.push(frame.target);
  }

  /** Takes an end tag; closes the innermost element of this name and all elements in it. */
  close(name: string): void {
    if (this.#excessDepth > 0) {
      this.#excessDepth--;
      return;
    }
    const isOpen = (this.#openNames.get(name) ?? 0) > 0;
    if (isOpen) this.#closeFrom(this.#frames.findLastIndex((frame) => frame.name === name));
  }

  text(chunk: string): void {
    for (const target of this.#targets) {
      const kept = chunk.slice(0, Math.max(0, Math.min(target.remaining, this.#remaining)));
      if (kept !== "") target.chunks.push(kept);
      this.#remaining -= kept.length;
      target.remaining -= chunk.length;
    }
  }

  /** Closes all open elements. */
  end(): void {
    this.#closeFrom(0);
  }

  /** Adds the element's value. Returns a frame if the element is an item or its text is the value. */
  #createFrame(name: string, attributes: Attributes): Frame | null {
    const names = localNamesIn(attributes.get("itemprop")?.toLowerCase());
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
    if (value !== null || voidElements.has(name) || this.#targets.length === maxTargets) return null;
    const remaining = maxTextLength * maxBytesPerUnit;
    return { name, item: null, target: { owner, names, chunks: [], remaining } };
  }

  #closeFrom(index: number): void {
    for (const { name, item, target } of this.#frames.splice(index).toReversed()) {
      this.#openNames.set(name, (this.#openNames.get(name) ?? 1) - 1);
      if (item !== null) this.#owners.pop();
      if (target === null) continue;
      this.#targets.pop();
      const source = this.#pageText.decode(target.chunks.join(""));
      const text = source.slice(0, maxTextLength).trim();
      if (text !== "") addValue(target.owner, target.names, decodeHTML(text));
    }
  }
}

function newItem(attributes: Attributes): Item {
  const types = localNamesIn(attributes.get("itemtype")).slice(0, maxTypes);
  return { types, id: attributes.get("itemid")?.trim() || null, properties: new Map() };
}

function localNamesIn(value = ""): string[] {
  return Array.from(value.matchAll(/\S+/g), ([name]) => localName(name));
}

/** Returns the value that an attribute states, `content` first: pages use it on all elements. */
function attributeValue(name: string, attributes: Attributes, names: string[]): string | null {
  const content = attributes.get("content")?.trim();
  if (content !== undefined && content !== "") return content;
  if (name === "a" && names.some((property) => textProperties.has(property))) return null;
  return attributes.get(valueAttributes.get(name) ?? "")?.trim() || null;
}

function addValue(item: Item, names: readonly string[], value: Value): void {
  for (const name of names) {
    const values = item.properties.get(name) ?? [];
    if (values.length === 0 && item.properties.size < maxValues) item.properties.set(name, values);
    if (values.length < maxValues) values.push(value);
  }
}
