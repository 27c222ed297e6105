/** What changes which media there are, and is not understood: byte ranges in URLs, and parts and patterns of segments. */
const refused: ReadonlySet<string> = new Set(["BaseURL@byteRange", "S@k", "S@p", "Pattern", "ImportedMPD"]);

/**
 * Returns the name of an element or of its attribute if an MPD that has it is refused: without it, other media would be
 * taken. `null` if it may be read.
 */
export function refusedName(element: string, attribute?: { name: string; value: string }): string | null {
  // A sequence of one segment is that segment.
  if (attribute?.name === "k" && attribute.value.trim() === "1") return null;
  const name = attribute === undefined ? element : `${element}@${attribute.name}`;
  return refused.has(name) ? name : null;
}

/** The elements that describe their parent by a scheme and a value. */
export const descriptorNames: ReadonlySet<string> = new Set(
  "EssentialProperty SupplementalProperty Role Accessibility UTCTiming FramePacking AudioChannelConfiguration".split(
    " ",
  ),
);

/** Elements whose attributes and children are kept. */
export type ElementName = "MPD" | "Period" | "AdaptationSet" | "ContentComponent" | "Preselection" | "Representation";

/** The child elements that nest further, and what describes them. */
export const childOf: Readonly<Record<ElementName, { child?: ElementName; component?: ElementName }>> = {
  MPD: { child: "Period" },
  Period: { child: "AdaptationSet", component: "Preselection" },
  AdaptationSet: { child: "Representation", component: "ContentComponent" },
  ContentComponent: {},
  Preselection: {},
  Representation: {},
};

/** Attributes that are kept of MPD, Period, AdaptationSet, Representation and of what addresses segments; all others are dropped. */
export const usedAttributes: ReadonlySet<string> = new Set(
  (
    "type mediaPresentationDuration start duration id label contentType mimeType codecs width height " +
    "frameRate bandwidth lang media initialization timescale startNumber endNumber presentationTimeOffset " +
    "dependencyId associationType selectionPriority audioSamplingRate availabilityStartTime timeShiftBufferDepth minimumUpdatePeriod " +
    "preselectionComponents"
  ).split(" "),
);

/** How deep the elements of an MPD may nest: it takes the parser longer for each level to open one more. */
export const maxLevels = 64;

/** Returns the name of an element without its prefix. */
export function localName(qualifiedName: string): string {
  return qualifiedName.slice(qualifiedName.indexOf(":") + 1);
}

/** The namespaces that an element declares, and those of the elements around it. */
interface Scope {
  declared: ReadonlyMap<string, string> | null;
  outer: Scope | null;
}

const dashNamespace = /^urn:mpeg:dash:schema:mpd:/i;

/**
 * Finds out which elements of an MPD, in the order of the text, are of another namespace than its root (Namespaces
 * in XML §6): whatever their names are, they say nothing about media (ISO/IEC 23009-1 §5.11.1). A prefix that nothing declares and
 * a missing namespace count as the MPD's own.
 */
export function createNamespaces() {
  let scope: Scope | null = null;
  let ofRoot: string | null = null;
  return {
    /** Opens an element; returns whether it is foreign. */
    open(name: string, attributes: Readonly<Record<string, string>>): boolean {
      scope = { declared: declaredBy(attributes), outer: scope };
      const namespace = namespaceOf(name, scope);
      ofRoot ??= namespace;
      return namespace !== "" && namespace !== ofRoot && !dashNamespace.test(namespace);
    },
    close(): void {
      scope = scope?.outer ?? null;
    },
  };
}

function declaredBy(attributes: Readonly<Record<string, string>>): ReadonlyMap<string, string> | null {
  let declared: Map<string, string> | null = null;
  for (const [name, value] of Object.entries(attributes)) {
    if (name !== "xmlns" && !name.startsWith("xmlns:")) continue;
    declared ??= new Map();
    declared.set(name.slice(6), value.trim());
  }
  return declared;
}

function namespaceOf(name: string, innermost: Scope): string {
  const prefix = name.slice(0, Math.max(0, name.indexOf(":")));
  for (let scope: Scope | null = innermost; scope !== null; scope = scope.outer) {
    const found = scope.declared?.get(prefix);
    if (found !== undefined) return found;
  }
  return "";
}

interface BaseUrl {
  text: string;
  /** `""` for one that it does not have. */
  fields: Record<"serviceLocation", string>;
}

/** An element that may have BaseURLs. */
export interface WithBaseUrls {
  /** Text of the BaseURL that is used; `""`: there is none. */
  baseUrl: string;
  /** All that it has, at most `maxBaseUrls`. */
  baseUrls: BaseUrl[];
  readonly children: readonly WithBaseUrls[];
}

/** Of one element; further ones are left out. */
export const maxBaseUrls = 64;

/**
 * Sets the `baseUrl` of an MPD and all elements in it to that of its BaseURLs that is at index `base`, or to the last one.
 * Those whose service location is one of the space-separated `defaultLocations` of content steering (ISO/IEC 23009-1
 * annex K, ETSI TS 103 998) come first, in the order of that list; all others are in the order of the MPD.
 */
export function chooseBaseUrls(mpd: WithBaseUrls, base: number, defaultLocations: string): void {
  const locations = [...new Set(defaultLocations.split(/\s+/).filter((name) => name !== ""))].slice(0, maxBaseUrls);
  const ranks = new Map(locations.map((location, rank) => [location, rank]));
  const rankOf = ({ fields }: BaseUrl) => ranks.get(fields.serviceLocation.trim()) ?? locations.length;
  const choose = (element: WithBaseUrls): void => {
    const ordered = element.baseUrls.toSorted((a, b) => rankOf(a) - rankOf(b));
    element.baseUrl = ordered[Math.min(base, ordered.length - 1)]?.text ?? "";
  };
  choose(mpd);
  for (const period of mpd.children) {
    choose(period);
    for (const set of period.children) {
      choose(set);
      for (const representation of set.children) choose(representation);
    }
  }
}
