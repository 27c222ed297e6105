import { Parser } from "htmlparser2";
import { isLink } from "./links.ts";
import {
  chooseBaseUrls,
  createNamespaces,
  descriptorNames,
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
  name: "MPD" | "Period" | "AdaptationSet" | "Representation";
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
const tooMany = "it has more Representations or descriptors than are read";
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
  const tree = createTree();
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
      ontext: tree.text,
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

function createTree() {
  const mpd: Omit<Mpd, "root"> & { root: MpdElement | null } = {
    root: null,
    unread: null,
    hasLinks: false,
    refused: null,
    location: { text: "" },
    baseUrls: 0,
  };
  let elements = 0;
  /** The open elements, innermost last; `null` for an ignored one. */
  const stack: (Open | null)[] = [];
  /** What the text goes to. */
  let reading: { text: string } | null = null;
  const steering = { defaultServiceLocation: "" };

  function opened(name: string): Open | null {
    if (mpd.root === null) return (mpd.root = newElement("MPD"));
    const parent = stack.at(-1);
    if (parent === null || parent === undefined || parent.name === "leaf") return null;
    if (parent.name === "SegmentTimeline")
      return name === "S" ? leaf(parent.entries, { t: "", d: "", r: "", n: "" }) : null;
    if ("urls" in parent) return openedIn(parent, name);
    if (descriptorNames.has(name)) {
      if (parent.descriptors.length < maxDescriptors) return descriptorOf(parent, name);
      mpd.unread = tooMany;
      return null;
    }
    const child = childOf[parent.name];
    if (name === "BaseURL" && parent.baseUrls.length < maxBaseUrls) {
      const found = { text: "", fields: { serviceLocation: "" } };
      reading = found;
      mpd.baseUrls = Math.max(mpd.baseUrls, parent.baseUrls.push(found));
      return { name: "leaf", fields: found.fields };
    }
    if (name === "ContentSteering" && parent.name === "MPD") return { name: "leaf", fields: steering };
    if (child === null || child !== name) {
      if (name === "Label" && parent.label.text === "") reading = parent.label;
      if (name === "Location" && parent.name === "MPD" && mpd.location.text === "") reading = mpd.location;
      return recordChild(parent, name);
    }
    if (elements >= maxElements) {
      mpd.unread = tooMany;
      return null;
    }
    elements += 1;
    const element = newElement(child);
    parent.children.push(element);
    return element;
  }

  return {
    mpd,
    steering,
    /** @param name `null`: an element that is ignored. */
    open: (name: string | null) => void stack.push(name === null ? null : opened(name)),
    attribute(name: string, value: string): void {
      const target = stack.at(-1);
      if (target === null || target === undefined) return;
      if ("attributes" in target && usedAttributes.has(name))
        target.attributes.set(name, value.slice(0, maxAttributeLength));
      else if (target.name === "leaf" && Object.hasOwn(target.fields, name)) target.fields[name] = value;
    },
    text(chunk: string): void {
      if (reading !== null) reading.text += chunk.slice(0, maxTextLength - reading.text.length);
    },
    close(): void {
      stack.pop();
      reading = null;
    },
  };
}

function descriptorOf({ descriptors }: MpdElement, name: string): Open {
  const fields = { schemeIdUri: "", value: "" };
  descriptors.push({ name, fields });
  return { name: "leaf", fields };
}

/** The child elements that nest further. */
const childOf = {
  MPD: "Period",
  Period: "AdaptationSet",
  AdaptationSet: "Representation",
  Representation: null,
} as const;

function newElement(name: MpdElement["name"]): MpdElement {
  const found = {
    baseUrl: "",
    baseUrls: [],
    label: { text: "" },
    descriptors: [],
    isProtected: false,
    addressing: null,
  };
  return { name, attributes: new Map(), ...found, children: [] };
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

function openedIn(addressing: Addressing, name: string): Open | null {
  if (name === "SegmentTimeline" && addressing.timeline === null) return { name, entries: (addressing.timeline = []) };
  if (name === "SegmentURL") return leaf(addressing.urls, { media: "", mediaRange: "" });
  if (name !== "Initialization" || addressing.initialization !== null) return null;
  return { name: "leaf", fields: (addressing.initialization = { sourceURL: "", range: "" }) };
}

function leaf<Fields extends Record<string, string>>(list: Fields[], fields: Fields): Open {
  list.push(fields);
  return { name: "leaf", fields };
}
