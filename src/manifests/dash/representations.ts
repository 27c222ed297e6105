import { tryParseUrl } from "../../parsers/url.ts";
import { bareMediaType } from "../../parsers/media-type.ts";
import { parseLine } from "../../parsers/text.ts";
import { type Codecs, languageTag, splitCodecs } from "../attributes.ts";
import { type TrackKind, trackKind } from "../track-kind.ts";
import { languageOfName } from "../track-name.ts";
import type { Descriptor } from "../tracks.ts";
import type { MpdElement } from "./xml.ts";

/** A Representation and its ancestors: AdaptationSet, Period, MPD. */
export type Chain = readonly [MpdElement, MpdElement, MpdElement, MpdElement];

export interface DashRepresentation {
  chain: Chain;
  /** Index of its Period. */
  period: number;
  /** Its index in the MPD. */
  index: number;
  kind: TrackKind | null;
  /** Of it, its ancestors and their ContentComponent. */
  descriptors: readonly Descriptor[];
  id: string | null;
  codecs: Codecs;
  mime_type: string | null;
  language: string | null;
  /** URL, if it is one file; `null`: it is segmented. */
  file: URL | null;
  has_drm: boolean;
  /** It cannot be decoded without another Representation, or adds to one. */
  isLayer: boolean;
  label: string | null;
  /** Returns the attribute of the Representation or of its nearest ancestor that has it, a ContentComponent included. */
  attribute: (name: string) => string | undefined;
}

/** Yields the Representations of an MPD fetched from `url`, except files whose URL is not http(s). */
export function* representationsOf(mpd: MpdElement, url: URL): Generator<DashRepresentation> {
  const mpdBase = resolve(mpd, url);
  const isTimed = mpd.children.length > 1 || hasOffset(mpd);
  let count = 0;
  for (const [periodIndex, period] of mpd.children.entries()) {
    const periodBase = resolve(period, mpdBase);
    const preselected = preselectedRoles(period);
    for (const set of period.children) {
      const setBase = resolve(set, periodBase);
      const roles = preselected.get(set.attributes.get("id")?.trim() ?? "") ?? [];
      for (const representation of set.children) {
        const base = resolve(representation, setBase);
        const found = representationOf([representation, set, period, mpd], { base, roles, isTimed });
        if (found !== null) yield { ...found, period: periodIndex, index: count };
        count += 1;
      }
    }
  }
}

interface RepresentationPlace {
  /** `null`: a BaseURL is not http(s). */
  base: URL | null;
  /** Those of a set that states none itself. */
  roles: readonly Descriptor[];
  /** The times of some media differ from those of the presentation: all count from there. */
  isTimed: boolean;
}

function representationOf(
  chain: Chain,
  { base, roles, isTimed }: RepresentationPlace,
): Omit<DashRepresentation, "period" | "index"> | null {
  const [representation, set] = chain;
  const isSegmented = isTimed || chain.some((element) => hasSegments(element, base));
  const hasBaseUrl = chain.some((element) => element.baseUrl !== "");
  if (!isSegmented && hasBaseUrl && base === null) return null;
  const isFile = !isSegmented && hasBaseUrl && base?.pathname.endsWith("/") === false;
  const described = chain.flatMap((element) => (element === set ? [set, ...componentOf(set)] : [element]));
  // White space around a value is not part of it (XML Schema, §4.3.6).
  const attribute = (name: string) =>
    described
      .find(({ attributes }) => attributes.has(name))
      ?.attributes.get(name)
      ?.trim();
  const own = described.flatMap((element) => element.descriptors);
  const descriptors = own.some(isRole) ? own : [...own, ...roles];
  const codecs = splitCodecs(attribute("codecs"));
  const mime_type = bareMediaType(attribute("mimeType") ?? null);
  const isSized = attribute("width") !== undefined || attribute("height") !== undefined;
  const hasChannels = descriptors.some(({ name }) => name === "AudioChannelConfiguration");
  const isSampled = hasChannels || attribute("audioSamplingRate") !== undefined;
  const kind = trackKind({ contentType: attribute("contentType"), mimeType: mime_type, codecs, isSized, isSampled });
  const label = parseLine(set.label.text) ?? parseLine(attribute("label"));
  return {
    chain,
    kind,
    id: representation.attributes.get("id") ?? null,
    descriptors,
    codecs,
    mime_type,
    language: languageTag(attribute("lang")) ?? (kind === "video" ? null : languageOfName(label)),
    file: isFile ? base : null,
    has_drm: chain.some((element) => element.isProtected),
    isLayer: isLayer(representation, attribute("codecs")),
    label,
    attribute,
  };
}

/**
 * Returns the ContentComponent that describes a set (ISO/IEC 23009-1 §5.3.4): of several, which are multiplexed, that of the
 * video.
 */
function componentOf({ components }: MpdElement): MpdElement[] {
  const found = components.find(({ attributes }) => attributes.get("contentType")?.trim().toLowerCase() === "video");
  return [found ?? components[0]].filter((component) => component !== undefined);
}

const isRole = ({ name }: Descriptor): boolean => name === "Role" || name === "Accessibility";

/** Returns the roles of the only Preselection (ISO/IEC 23009-1 §5.3.11) that has a set, by the set's id, if it has nothing else: then they are those of the set. */
function preselectedRoles({ components }: MpdElement): ReadonlyMap<string, readonly Descriptor[]> {
  const found = new Map<string, readonly Descriptor[]>();
  for (const { attributes, descriptors } of components) {
    const sets = new Set((attributes.get("preselectionComponents") ?? "").split(/\s+/).filter((each) => each !== ""));
    for (const id of sets) found.set(id, found.has(id) || sets.size > 1 ? [] : descriptors.filter(isRole));
  }
  return found;
}

/** Enhancement layers and views: LCEVC, SVC, MVC, layered HEVC. */
const layerCodecs = /^\s*(?:lvc1|svc[12]|mvc[1-4]|mvd[1-4]|lhv1|lhe1)\b/i;

/** Types of tracks that add to another one: auxiliary pictures, depth, parallax, thumbnails (ISO/IEC 14496-12 §8.3.3); some name the handler `auxv` (§12.1.1). */
const addingTypes = /(?:^|\s)(?:auxl|auxv|vdep|vplx|thmb)(?:\s|$)/;

/** It depends on other Representations, or adds to them (ISO/IEC 23009-1 §5.3.5), or depends on another stream by its codec. */
function isLayer({ attributes }: MpdElement, codecs: string | undefined): boolean {
  const isAdding = addingTypes.test(attributes.get("associationType") ?? "");
  return isAdding || (attributes.get("dependencyId") ?? "").trim() !== "" || layerCodecs.test(codecs ?? "");
}

/** Whether media of an element are to be presented at other times than their own. */
function hasOffset({ addressing, children }: MpdElement): boolean {
  const offset = addressing?.attributes.get("presentationTimeOffset") ?? "";
  return /[1-9]/.test(offset) || children.some(hasOffset);
}

/** A SegmentBase describes one file, unless its init section is elsewhere. */
function hasSegments({ addressing }: MpdElement, base: URL | null): boolean {
  if (addressing === null || addressing.name !== "SegmentBase") return addressing !== null;
  const { sourceURL = "" } = addressing.initialization ?? {};
  return sourceURL.trim() !== "" && URL.parse(sourceURL.trim(), base ?? undefined)?.href !== base?.href;
}

/** Returns the base URL of the children of `element`; `null` if it is not http(s). */
function resolve(element: MpdElement, base: URL | null): URL | null {
  return base === null || element.baseUrl === "" ? base : tryParseUrl(element.baseUrl, base);
}

/** File name extensions of subtitles, by media type or codec. */
export const textExtensions: ReadonlyMap<string, string> = new Map([
  ["text/vtt", "vtt"],
  ["wvtt", "vtt"],
  ["application/ttml+xml", "ttml"],
  ["stpp", "ttml"],
  ["application/x-subrip", "srt"],
]);
