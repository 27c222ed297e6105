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
