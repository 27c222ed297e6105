import { Parser } from "htmlparser2";

/** An element of an MPD that hands its attributes and base address down to its children. */
export interface MpdElement {
  name: "MPD" | "Period" | "AdaptationSet" | "Representation";
  /** Only those that formats are made of. */
  attributes: Map<string, string>;
  /** Text of the first BaseURL, `""` where there is none. */
  baseUrl: string;
  /** Text of the first Label. */
  label: string;
  /** It has a ContentProtection of its own. */
  isProtected: boolean;
  /** It has a SegmentTemplate or SegmentList: its medium is not one file. */
  isSegmented: boolean;
  children: MpdElement[];
}

/** What formats are made of below each element; `null`: nothing. */
const childOf = {
  MPD: "Period",
  Period: "AdaptationSet",
  AdaptationSet: "Representation",
  Representation: null,
} as const;

const usedAttributes: ReadonlySet<string> = new Set(
  (
    "type mediaPresentationDuration start duration id label contentType mimeType codecs width height " +
    "frameRate bandwidth lang"
  ).split(" "),
);

const maxDepth = 64;
const maxElements = 10_000;
const maxTextLength = 8_192;

/**
 * The MPD (ISO/IEC 23009-1) in `text`, reduced to what formats are made of; at most 10,000 elements
 * of it. `undefined` where `text` is something else or nests deeper than 64. Name space prefixes
 * are ignored, entities other than XML's own are never expanded, and what is not closed is closed
 * at the end. One pass.
 */
export function readMpd(text: string): MpdElement | undefined {
  let root: MpdElement | undefined;
  let isRefused = false;
  let elements = 0;
  /** The open elements, innermost last; `null` for those without formats below them. */
  const stack: (MpdElement | null)[] = [];
  let reading: { element: MpdElement; field: "baseUrl" | "label" } | null = null;

  function open(name: string): MpdElement | null {
    if (root === undefined) return (root = newElement("MPD"));
    const parent = stack.at(-1) ?? null;
    if (parent === null) return null;
    const child = childOf[parent.name];
    if (child !== name || elements >= maxElements) {
      reading = note(parent, name);
      return null;
    }
    elements += 1;
    const element = newElement(child);
    parent.children.push(element);
    return element;
  }

  const parser = new Parser(
    {
      onopentagname(qualifiedName) {
        const name = qualifiedName.slice(qualifiedName.indexOf(":") + 1);
        isRefused = stack.length >= maxDepth || (root === undefined && name !== "MPD");
        if (isRefused) parser.pause();
        else stack.push(open(name));
      },
      onattribute(name, value) {
        const { attributes } = stack.at(-1) ?? {};
        if (usedAttributes.has(name) && !attributes?.has(name)) attributes?.set(name, value);
      },
      ontext(piece) {
        if (reading === null) return;
        const { element, field } = reading;
        element[field] += piece.slice(0, maxTextLength - element[field].length);
      },
      onclosetag() {
        stack.pop();
        reading = null;
      },
    },
    { xmlMode: true },
  );
  parser.write(text);
  return isRefused ? undefined : root;
}

function newElement(name: MpdElement["name"]): MpdElement {
  const found = { baseUrl: "", label: "", isProtected: false, isSegmented: false };
  return { name, attributes: new Map(), ...found, children: [] };
}

/** Notes what a child says about its parent; gives the text that is to be read from it, if any. */
function note(element: MpdElement, child: string) {
  if (child === "BaseURL" && element.baseUrl === "") return { element, field: "baseUrl" } as const;
  if (child === "Label" && element.label === "") return { element, field: "label" } as const;
  if (child === "ContentProtection") element.isProtected = true;
  if (child === "SegmentTemplate" || child === "SegmentList") element.isSegmented = true;
  return null;
}
