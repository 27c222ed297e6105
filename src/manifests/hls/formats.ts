import { parsePixels } from "../../parsers/quantities.ts";
import { parseLine } from "../../parsers/text.ts";
import { framesPerSecond, kilobits } from "../attributes.ts";
import type { Format } from "../../model/page-info.ts";
import { createFormatIds, type ManifestFormat, maxFormats } from "../manifest.ts";
import { isFlat, preferences, type TrackStatement } from "../tracks.ts";
import {
  type Group,
  groupRenditions,
  nameRenditions,
  orderGroups,
  type Rendition,
  rolesBeyondGroup,
} from "./groups.ts";
import { unknownHlsFormat } from "./media.ts";
import { scoresOf, statesVideo, type Variant, withPossibleAudio } from "./variants.ts";

interface AudioGroup extends Group {
  acodec: string | null;
  /** Of the best variant that references the group, kbit/s; 0: unknown. */
  tbr: number;
  /** Of the variant whose audio is the rendition without a URL, if another one is to play; `null`: there is none. */
  includedUrl: URL | null;
  /** What its formats say of it: nothing if there is no other. */
  named: Pick<Format, "audio_group">;
}

/** What all formats of a playlist have. */
type CommonPart = Pick<ManifestFormat, "manifest_url" | "has_drm">;
type FormatPart = Omit<ManifestFormat, keyof CommonPart>;

/** A format before its `preference` among those of its kind is known. */
type Listed = [format: FormatPart, statement: TrackStatement];

/** Lists the formats of a multivariant playlist. */
export function listHlsFormats(
  { variants, renditions }: { variants: readonly Variant[]; renditions: readonly Rendition[] },
  common: CommonPart,
): ManifestFormat[] {
  nameRenditions(renditions);
  const audioGroups = groupAudio(variants, renditions);
  const listed = listVideos(withPossibleAudio(variants), groupRenditions(renditions, "VIDEO"), audioGroups);
  const ordered = orderGroups(
    audioGroups,
    variants,
    withPreferences(listed).map((format) => ({ ...common, ...format })),
  );
  const isReplaced = ([format]: Listed, index: number) => {
    const group = audioGroups.get(variants[index]?.attributes.get("AUDIO") ?? "");
    return format.vcodec === "none" && group?.renditions[0] !== undefined && group.renditions[0].url !== null;
  };
  const videos = listed.filter((each, index) => !isReplaced(each, index));
  // Of a variant that has audio alone, its group's audio is played instead (RFC 8216bis §4.4.6.2.1).
  const replaced = listed.filter(isReplaced).map(([format, { roles }]): Listed => [format, { roles, priority: 0 }]);
  const audios = [...listAudios(ordered), ...replaced];
  const formatId = createFormatIds("-");
  return [...withPreferences(videos), ...withPreferences(audios)].slice(0, maxFormats).map((format) => {
    return { ...common, ...format, format_id: formatId(format.format_id) };
  });
}

function withPreferences(listed: readonly Listed[]): FormatPart[] {
  const values = preferences(listed.map(([, statement]) => statement));
  return listed.map(([format], index) => {
    const preference = values[index]!;
    return preference < 0 ? { ...format, preference } : format;
  });
}

/** Lists the variants, then the renditions of their VIDEO groups that are not the default one. */
function listVideos(
  variants: readonly Variant[],
  groups: ReadonlyMap<string, Group>,
  audioGroups: ReadonlyMap<string, AudioGroup>,
): Listed[] {
  const angles: Listed[] = [];
  const seen = new Set<Group>();
  const scores = scoresOf(variants);
  const isTold = variants.some(statesVideo);
  const listed = variants.map((variant, index): Listed => {
    const format = variantFormat(variant, audioGroups.get(variant.attributes.get("AUDIO") ?? ""), isTold);
    const statement = { roles: format.roles ?? [], priority: scores[index] ?? 0 };
    const group = groups.get(variant.attributes.get("VIDEO") ?? "");
    const own = { ...format, format_id: `hls-${Math.floor(format.tbr ?? index)}` };
    if (group === undefined) return [own, statement];
    const url = mainUrlOf(group, variant.url);
    if (!seen.has(group)) angles.push(...listAngles(group, { ...own, url }, variant.url));
    seen.add(group);
    return [{ ...own, url }, statement];
  });
  return [...listed, ...angles];
}

/** The default rendition of a VIDEO group is played, whatever the variant itself has (RFC 8216bis §4.4.6.1). */
function mainUrlOf({ renditions: [first] }: Group, variantUrl: URL): string {
  const isDefault = first?.roles.includes("main") === true;
  return (isDefault && first.url !== null ? first.url : variantUrl).href;
}

function listAngles({ renditions }: Group, main: FormatPart, variantUrl: URL): Listed[] {
  return renditions.flatMap((rendition): Listed[] => {
    const url = (rendition.url ?? variantUrl).href;
    if (url === main.url) return [];
    const roles = [...new Set(["alternate" as const, ...rolesBeyondGroup(rendition.roles)])];
    const format_id = ["hls-video", ...namesOf(rendition)].join("-");
    const statement = { roles, priority: 0 };
    return [[{ ...main, url, format_id, roles }, statement]];
  });
}

/** Above the number of a group's renditions. */
const manyRenditions = 10_000;

/**
 * Lists the renditions that have a URL, or are not the audio that is listed with the variants, in the order of the groups. A group
 * that no variant references is played with none, whatever is the default in it, unless that is all groups. A default in a group is none
 * for the first one, which has none.
 */
function listAudios({ played, aside }: Record<"played" | "aside", readonly AudioGroup[]>): Listed[] {
  const hasDefault = played[0]?.renditions.some(({ roles }) => roles.includes("main")) ?? true;
  return [...played, ...aside].flatMap((group, index) =>
    group.renditions.flatMap((rendition): Listed[] => {
      const url = rendition === group.included ? group.includedUrl : rendition.url;
      if (url === null) return [];
      const roles = rolesBeyondGroup(rendition.roles);
      const isAside = played.length > 0 && index >= played.length;
      const named = hasDefault && !isAside ? rendition : { ...rendition, roles };
      const priority = isAside ? 0 : manyRenditions + rendition.rank;
      return [[renditionFormat(named, url, group), { roles, priority }]];
    }),
  );
}

/** Assumed ratio of peak to mean bit rate if only the peak is known, as ffmpeg writes it for constant bit rates. */
const peakToAverage = 1.1;

/**
 * Converts a variant with its audio group; leaves `format_id` empty. A size or a frame rate says video although CODECS name audio alone; a
 * frame rate does not if `isTold`: the CODECS of the playlist name video where it is.
 */
function variantFormat(
  { attributes, codecs, url }: Variant,
  group: AudioGroup | undefined,
  isTold: boolean,
): FormatPart {
  const [, width, height] = /^(\d+)[x*](\d+)$/i.exec(attributes.get("RESOLUTION") ?? "") ?? [];
  const fps = framesPerSecond(attributes.get("FRAME-RATE"));
  const hasPicture = parsePixels(width) !== null || (fps !== null && !isTold);
  const vcodec = codecs.vcodec === "none" && hasPicture ? null : codecs.vcodec;
  const peakTbr = kilobits(attributes.get("BANDWIDTH"));
  const listedTbr = kilobits(attributes.get("AVERAGE-BANDWIDTH"));
  const averageTbr = listedTbr ?? (peakTbr === null ? null : peakTbr / peakToAverage);
  const included = group?.included;
  // A rendition with a URL replaces audio that a variant may have (RFC 8216bis §4.4.6.2.1); without CODECS it has any if there is none.
  const isReplaced = included === undefined && (attributes.has("CODECS") || group?.renditions[0]?.url != null);
  const isAudioSeparate = group !== undefined && (isReplaced || isIncludedBehind(group));
  const acodec = isAudioSeparate && vcodec !== "none" ? "none" : codecs.acodec;
  const roles = acodec === "none" ? [] : rolesBeyondGroup(included?.roles ?? []);
  if (!isFlat(attributes.get("REQ-VIDEO-LAYOUT"))) roles.push("alternate");
  return {
    ...unknownHlsFormat,
    format_id: "",
    url: url.href,
    ext: vcodec === "none" ? "m4a" : "mp4",
    width: parsePixels(width),
    height: parsePixels(height),
    fps: vcodec === "none" ? null : fps,
    vcodec,
    acodec,
    tbr: peakTbr ?? listedTbr,
    ...(averageTbr !== null && { averageTbr }),
    ...(acodec === "none" ? { language: null } : labelOf(included)),
    ...group?.named,
    ...(roles.length > 0 && { roles }),
    ...(acodec !== "none" && includesOriginal(group) && { audio_role: "original" as const }),
  };
}

/** Whether a rendition with a URL is to play rather than the one in the variants. */
function isIncludedBehind({ included, renditions: [first] }: Group): boolean {
  return included !== undefined && included.rank < 0 && first?.url !== null;
}

/** Whether the audio in the variants is the one to play, and others have URLs. */
function includesOriginal(group: Group | undefined): boolean {
  const [first, ...others] = group?.renditions ?? [];
  return first === group?.included && others.some(({ url }) => url !== null);
}

function renditionFormat(rendition: Rendition, url: URL, { acodec, named }: AudioGroup): FormatPart {
  const { attributes, roles } = rendition;
  return {
    ...unknownHlsFormat,
    format_id: ["hls-audio", ...namesOf(rendition)].join("-"),
    url: url.href,
    ext: "m4a",
    vcodec: "none",
    acodec,
    tbr: kilobits(attributes.get("BANDWIDTH")),
    ...labelOf(rendition),
    ...named,
    ...(roles.length > 0 && { roles: [...roles] }),
  };
}

function labelOf({ language = null, name }: Partial<Rendition> = {}): Pick<Format, "language" | "name"> {
  return { language, ...(name !== undefined && { name }) };
}

function namesOf({ attributes }: Rendition): string[] {
  return [attributes.get("GROUP-ID") ?? "", attributes.get("NAME") ?? ""].filter(Boolean);
}

/** Groups audio renditions; a variant's CODECS cover its group (RFC 8216 §4.3.4.2). */
function groupAudio(variants: readonly Variant[], renditions: readonly Rendition[]): Map<string, AudioGroup> {
  const groups = new Map<string, AudioGroup>();
  const used = new Set(variants.flatMap(({ attributes }) => attributes.get("AUDIO") ?? []));
  for (const [id, group] of groupRenditions(renditions, "AUDIO")) {
    const name = parseLine(id);
    const named = used.size > 1 && name !== null ? { audio_group: name } : {};
    groups.set(id, { ...group, acodec: null, tbr: 0, includedUrl: null, named });
  }
  for (const { attributes, codecs, url } of variants) {
    const group = groups.get(attributes.get("AUDIO") ?? "");
    if (group === undefined) continue;
    const tbr = kilobits(attributes.get("BANDWIDTH")) ?? 0;
    const isBest = group.includedUrl === null || tbr > group.tbr;
    if (codecs.acodec !== "none") {
      group.acodec ??= codecs.acodec;
      if (isBest && isIncludedBehind(group)) group.includedUrl = url;
    }
    group.tbr = Math.max(group.tbr, tbr);
  }
  return groups;
}
