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
  "EssentialProperty SupplementalProperty Role Accessibility UTCTiming FramePacking".split(" "),
);

/** Attributes that are kept of MPD, Period, AdaptationSet, Representation and of what addresses segments; all others are dropped. */
export const usedAttributes: ReadonlySet<string> = new Set(
  (
    "type mediaPresentationDuration start duration id label contentType mimeType codecs width height " +
    "frameRate bandwidth lang media initialization timescale startNumber endNumber presentationTimeOffset " +
    "dependencyId selectionPriority availabilityStartTime timeShiftBufferDepth minimumUpdatePeriod"
  ).split(" "),
);

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
