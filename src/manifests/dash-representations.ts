import { tryParseUrl } from "../parsers/url.ts";
import { bareMediaType } from "../parsers/media-type.ts";
import { readLine } from "../parsers/text.ts";
import type { MpdElement } from "./dash-xml.ts";
import { type Codecs, languageTag, splitCodecs } from "./manifest.ts";

/** A Representation and what it stands in: AdaptationSet, Period, MPD. */
export type Chain = readonly [MpdElement, MpdElement, MpdElement, MpdElement];

/** What one Representation is. */
export interface DashRepresentation {
  chain: Chain;
  /** Index of its Period. */
  period: number;
  kind: "video" | "audio" | "text" | null;
  id: string | null;
  codecs: Codecs;
  mime_type: string | null;
  language: string | null;
  /** Address of the one file that it is; `null`: it comes in segments. */
  file: URL | null;
  has_drm: boolean;
  label: string | null;
  /** An attribute of the Representation or, where it lacks it, of what it stands in. */
  attribute: (name: string) => string | undefined;
}

/**
 * The Representations of the MPD that was found at `url`, in its order, but for files that may not
 * be fetched.
 */
export function* representationsOf(mpd: MpdElement, url: URL): Generator<DashRepresentation> {
  const mpdBase = resolve(mpd, url);
  for (const [index, period] of mpd.children.entries()) {
    const periodBase = resolve(period, mpdBase);
    for (const set of period.children) {
      const setBase = resolve(set, periodBase);
      for (const representation of set.children) {
        const base = resolve(representation, setBase);
        const track = trackOf([representation, set, period, mpd], index, base);
        if (track !== null) yield track;
      }
    }
  }
}

/** `null`: it may not be fetched. */
function trackOf(chain: Chain, period: number, base: URL | null): DashRepresentation | null {
  const [representation, set, , mpd] = chain;
  const isSegmented = mpd.children.length > 1 || chain.some(hasSegments);
  const isAddressed = chain.some((element) => element.baseUrl !== "");
  if (!isSegmented && isAddressed && base === null) return null;
  const isFile = !isSegmented && isAddressed && base?.pathname.endsWith("/") === false;
  const attribute = (name: string) =>
    chain.find(({ attributes }) => attributes.has(name))?.attributes.get(name);
  const codecs = splitCodecs(attribute("codecs"));
  const mime_type = bareMediaType(attribute("mimeType") ?? null);
  return {
    chain,
    period,
    kind: kindOf(attribute("contentType"), mime_type, codecs),
    id: representation.attributes.get("id") ?? null,
    codecs,
    mime_type,
    language: languageTag(attribute("lang")),
    file: isFile ? base : null,
    has_drm: chain.some((element) => element.isProtected),
    label: readLine(set.label) ?? readLine(attribute("label")),
    attribute,
  };
}

/** A SegmentBase is about one file. */
function hasSegments({ addressing }: MpdElement): boolean {
  return addressing !== null && addressing.name !== "SegmentBase";
}

/** Base address of what is in `element`; `null` where it leads away from http(s). */
function resolve(element: MpdElement, base: URL | null): URL | null {
  return base === null || element.baseUrl === "" ? base : tryParseUrl(element.baseUrl, base);
}

function kindOf(
  contentType: string | undefined,
  mimeType: string | null,
  codecs: Codecs,
): DashRepresentation["kind"] {
  for (const kind of ["video", "audio", "text"] as const) {
    if (contentType === kind || mimeType?.startsWith(`${kind}/`)) return kind;
  }
  if (mimeType?.startsWith("image/")) return null;
  if (codecs.vcodec !== null && codecs.vcodec !== "none") return "video";
  if (codecs.acodec !== null && codecs.acodec !== "none") return "audio";
  return codecs.text || textExtensions.has(mimeType ?? "") ? "text" : null;
}

/** File name extensions of text, by media type or codec. */
export const textExtensions: ReadonlyMap<string, string> = new Map([
  ["text/vtt", "vtt"],
  ["wvtt", "vtt"],
  ["application/ttml+xml", "ttml"],
  ["stpp", "ttml"],
  ["application/x-subrip", "srt"],
]);
