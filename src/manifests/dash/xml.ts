import { Parser } from "htmlparser2";
import { isLink } from "./links.ts";
import {
  childOf,
  chooseBaseUrls,
  createNamespaces,
  descriptorNames,
  type ElementName,
  localName,
  maxBaseUrls,
  maxLevels,
  refusedName,
  usedAttributes,
  type WithBaseUrls,
} from "./names.ts";
import type { Descriptor } from "../tracks.ts";
import { checkLength, cutOffError, invalidManifestError } from "../manifest.ts";

/** An element of an MPD whose children inherit its attributes and base URL. */
export interface MpdElement extends WithBaseUrls {
  name: ElementName;
  /** Only those in `usedAttributes`. */
  attributes: Map<string, string>;
  /** Its first Label. */
  label: { text: string };
  /** Its elements that have one of `descriptorNames`. */
  descriptors: Descriptor[];
  /** It has a ContentProtection child. */
  isProtected: boolean;
  /** How it addresses the segments of its Representations. */
  addressing: Addressing | null;
  children: MpdElement[];
  /** Its ContentComponents, of a Period its Preselections. */
  components: MpdElement[];
}

/** The first SegmentTemplate or SegmentList of an element, else its SegmentBase. */
export interface Addressing {
  name: "SegmentBase" | "SegmentList" | "SegmentTemplate";
  attributes: Map<string, string>;
  initialization: Initialization | null;
  timeline: TimelineEntry[] | null;
  urls: SegmentUrl[];
}

/** Attributes as written, `""` for a missing one; also in the next two. */
export type Initialization = Record<"sourceURL" | "range", string>;
export type SegmentUrl = Record<"media" | "mediaRange", string>;
/** An S element of a SegmentTimeline. */
export type TimelineEntry = Record<"t" | "d" | "r" | "n", string>;

export interface Mpd {
  root: MpdElement;
  /** Why not all of it is read; `null`: all is. */
  unread: string | null;
  /** It has links to remote elements (`xlink:href`), which `resolveLinks` would replace. */
  hasLinks: boolean;
  /** The first thing in it that is refused (`refusedName`). */
  refused: string | null;
  /** Its first Location. */
  location: { text: string };
  /** The most that an element has: further ones are other places of the same (ISO/IEC 23009-1 §5.6.5). */
  baseUrls: number;
}

const maxElements = 10_000;
/** Of one element; each Representation inherits all. */
const maxDescriptors = 64;
const maxTextLength = 8_192;
/** More than a URL may have, so that too long ones are still refused. */
const maxAttributeLength = 2 * maxTextLength;

/**
 * Parses an MPD (ISO/IEC 23009-1) in one pass and keeps what describes formats and segments, at most
 * 10,000 Periods, AdaptationSets and Representations. Ignores elements of other namespaces, expands no
 * entities but XML's own. Of several BaseURLs of an element, the one at index
 * `base` is used, or the last one; those that its ContentSteering names come first (`chooseBaseUrls`).
 *
 * @throws ServiceError as `openMpd`
 */
export function parseMpd(text: string, url: URL, base: number): Mpd {
  checkLength(text, url);
  const tree = new MpdTree();
  const namespaces = createNamespaces();
  let isRefused = false;
  let depth = 0;
  const parser = new Parser(
    {
      onopentag(qualifiedName, attributes) {
        const element = localName(qualifiedName);
        isRefused = depth >= maxLevels || (tree.mpd.root === null && element !== "MPD");
        depth += 1;
        if (isRefused) return parser.pause();
        if (namespaces.open(qualifiedName, attributes)) return tree.open(null);
        tree.open(element);
        tree.mpd.refused ??= refusedName(element);
        for (const [name, value] of Object.entries(attributes)) {
          tree.mpd.hasLinks ||= isLink(element, name);
          tree.mpd.refused ??= refusedName(element, { name, value });
          tree.attribute(name, value);
        }
      },
      ontext: (chunk) => tree.text(chunk),
      onclosetag() {
        depth -= 1;
        namespaces.close();
        tree.close();
      },
    },
    { xmlMode: true },
  );
  parser.write(text);
  const { root, ...rest } = tree.mpd;
  const rule = `a DASH manifest must be an MPD element, at most ${maxLevels} levels deep`;
  if (root === null || isRefused) throw invalidManifestError(url, rule);
  if (depth > 0) throw cutOffError(url, "it ends within an element");
  chooseBaseUrls(root, base, tree.steering.defaultServiceLocation);
  return { ...rest, root };
}

/** An open element; a `leaf` has nothing but attributes. */
type Open =
  | MpdElement
  | Addressing
  | { name: "SegmentTimeline"; entries: TimelineEntry[] }
  | { name: "leaf"; fields: Record<string, string> };

/** Builds an MPD of its elements as they open and close. */
class MpdTree {
  readonly mpd: Omit<Mpd, "root"> & { root: MpdElement | null } = {
    root: null,
    unread: null,
    hasLinks: false,
    refused: null,
    location: { text: "" },
    baseUrls: 0,
  };
  readonly steering = { defaultServiceLocation: "" };
  #elements = 0;
  /** The open elements, innermost last; `null` for an ignored one. */
  readonly #stack: (Open | null)[] = [];
  /** What the text goes to. */
  #reading: { text: string } | null = null;

  /** @param name `null`: an element that is ignored. */
  open(name: string | null): void {
    this.#stack.push(name === null ? null : this.#opened(name));
  }

  attribute(name: string, value: string): void {
    const target = this.#stack.at(-1);
    if (target === null || target === undefined) return;
    if ("attributes" in target && usedAttributes.has(name))
      target.attributes.set(name, value.slice(0, maxAttributeLength));
    else if (target.name === "leaf" && Object.hasOwn(target.fields, name)) target.fields[name] = value;
  }

  text(chunk: string): void {
    const reading = this.#reading;
    if (reading !== null) reading.text += chunk.slice(0, maxTextLength - reading.text.length);
  }

  close(): void {
    this.#stack.pop();
    this.#reading = null;
  }

  #opened(name: string): Open | null {
    const { mpd } = this;
    if (mpd.root === null) return (mpd.root = newElement("MPD"));
    const parent = this.#stack.at(-1);
    if (parent === null || parent === undefined || parent.name === "leaf") return null;
    if (parent.name === "SegmentTimeline")
      return name === "S" ? leaf(parent.entries, { t: "", d: "", r: "", n: "" }) : null;
    return "urls" in parent ? openedInAddressing(parent, name) : this.#openedIn(parent, name);
  }

  #openedIn(parent: MpdElement, name: string): Open | null {
    const { mpd } = this;
    if (descriptorNames.has(name)) {
      return parent.descriptors.length < maxDescriptors ? descriptorOf(parent, name) : this.#leaveOut();
    }
    if (name === "BaseURL" && parent.baseUrls.length < maxBaseUrls) {
      const found = { text: "", fields: { serviceLocation: "" } };
      this.#reading = found;
      mpd.baseUrls = Math.max(mpd.baseUrls, parent.baseUrls.push(found));
      return { name: "leaf", fields: found.fields };
    }
    if (name === "ContentSteering" && parent.name === "MPD") return { name: "leaf", fields: this.steering };
    const { child, component } = childOf[parent.name];
    if (child === name) return this.#openedChild(parent.children, child);
    if (component === name) return this.#openedChild(parent.components, component);
    if (name === "Label" && parent.label.text === "") this.#reading = parent.label;
    if (name === "Location" && parent.name === "MPD" && mpd.location.text === "") this.#reading = mpd.location;
    return recordChild(parent, name);
  }

  #openedChild(siblings: MpdElement[], name: ElementName): Open | null {
    if (this.#elements >= maxElements) return this.#leaveOut();
    this.#elements += 1;
    const element = newElement(name);
    siblings.push(element);
    return element;
  }

  #leaveOut(): null {
    this.mpd.unread = "it has more Representations or descriptors than are read";
    return null;
  }
}

function descriptorOf({ descriptors }: MpdElement, name: string): Open {
  const fields = { schemeIdUri: "", value: "" };
  descriptors.push({ name, fields });
  return { name: "leaf", fields };
}

function newElement(name: ElementName): MpdElement {
  const read = { label: { text: "" }, descriptors: [], isProtected: false, addressing: null };
  return { name, attributes: new Map(), baseUrl: "", baseUrls: [], ...read, children: [], components: [] };
}

/** Records what a child says about its parent; returns it if its own children are read too. */
function recordChild(element: MpdElement, child: string): Addressing | null {
  if (child === "ContentProtection") element.isProtected = true;
  if (child !== "SegmentTemplate" && child !== "SegmentList" && child !== "SegmentBase") return null;
  const known = element.addressing;
  if (known !== null && (known.name !== "SegmentBase" || child === "SegmentBase")) return null;
  const found = { initialization: null, timeline: null, urls: [] };
  return (element.addressing = { name: child, attributes: new Map(), ...found });
}

function openedInAddressing(addressing: Addressing, name: string): Open | null {
  if (name === "SegmentTimeline" && addressing.timeline === null) return { name, entries: (addressing.timeline = []) };
  if (name === "SegmentURL") return leaf(addressing.urls, { media: "", mediaRange: "" });
  if (name !== "Initialization" || addressing.initialization !== null) return null;
  return { name: "leaf", fields: (addressing.initialization = { sourceURL: "", range: "" }) };
}

function leaf<Fields extends Record<string, string>>(list: Fields[], fields: Fields): Open {
  list.push(fields);
  return { name: "leaf", fields };
}
