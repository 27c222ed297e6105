import type { Format, TrackRole } from "../../model/page-info.ts";
import { byQuality, hasVideo } from "../../model/format-ranking.ts";
import { parseLine } from "../../parsers/text.ts";
import { languageTag } from "../attributes.ts";
import { hlsRoles, isYes, preferences } from "../tracks.ts";
import { addNames, languageOfName, withNamedRole } from "../track-name.ts";
import type { Attributes } from "./lines.ts";

/** An EXT-X-MEDIA (RFC 8216bis §4.4.6.1). */
export interface Rendition {
  attributes: Attributes;
  roles: readonly TrackRole[];
  language: string | null;
  /** Of audio that nothing else tells apart from other renditions of its group. */
  name?: string;
  /** `null`: its media is in the variants, or its URL is not http(s). */
  url: URL | null;
}

/** Renditions of one type and GROUP-ID, the one to play first. */
export interface Group {
  renditions: readonly RankedRendition[];
  /** The rendition whose media is in the variants. */
  included: RankedRendition | undefined;
}

interface RankedRendition extends Rendition {
  /** 0 for the one to play of its group, less for others. */
  rank: number;
}

/** Reads an EXT-X-MEDIA. */
export function renditionOf(attributes: Attributes, url: URL | null): Rendition {
  const stated = hlsRoles(attributes);
  const name = isOfType(attributes, "AUDIO") ? parseLine(attributes.get("NAME")) : null;
  const language = languageTag(attributes.get("LANGUAGE")) ?? languageOfName(name);
  return { attributes, roles: withNamedRole(stated, name), language, url };
}

/** Adds their names to audio renditions of one group that nothing else tells apart. */
export function nameRenditions(renditions: readonly Rendition[]): void {
  const listed = renditions.filter(({ attributes }) => isOfType(attributes, "AUDIO"));
  addNames(
    listed.map((audio) => {
      const { attributes } = audio;
      return { audio, name: parseLine(attributes.get("NAME")), group: attributes.get("GROUP-ID") ?? "" };
    }),
  );
}

/** Groups the renditions of a type; in a group DEFAULT comes first, then AUTOSELECT, descriptions and the like last. */
export function groupRenditions(renditions: readonly Rendition[], type: "AUDIO" | "VIDEO"): Map<string, Group> {
  const ofType = renditions.filter(({ attributes }) => isOfType(attributes, type));
  const byId = Map.groupBy(ofType, ({ attributes }) => attributes.get("GROUP-ID") ?? "");
  return new Map([...byId].map(([id, group]) => [id, sortGroup(group)]));
}

function sortGroup(group: readonly Rendition[]): Group {
  const values = preferences(
    group.map(({ attributes, roles }) => ({ roles, priority: Number(isYes(attributes.get("AUTOSELECT"))) })),
  );
  const ranked = group.map((rendition, index) => ({ ...rendition, rank: values[index]! }));
  return {
    renditions: ranked.toSorted((a, b) => b.rank - a.rank),
    included: ranked.find(({ attributes }) => !attributes.get("URI")),
  };
}

/**
 * Returns the audio groups that are played, that of the best variant first, and those that are played with none: no variant references
 * them, or, if there is video, only variants without it do. `formats`: those of the variants, in the same order.
 */
export function orderGroups<G extends Group>(
  groups: ReadonlyMap<string, G>,
  variants: readonly { attributes: Attributes }[],
  formats: readonly Format[],
): { played: G[]; aside: G[] } {
  const isVideo = formats.some(hasVideo);
  const users = variants.flatMap(({ attributes }, index) => {
    const group = groups.get(attributes.get("AUDIO") ?? "");
    const format = formats[index];
    const isUser = group !== undefined && format !== undefined && (!isVideo || hasVideo(format));
    return isUser ? [{ group, format }] : [];
  });
  const played = new Set(users.toSorted((a, b) => byQuality(a.format, b.format)).map(({ group }) => group));
  return { played: [...played], aside: [...groups.values()].filter((group) => !played.has(group)) };
}

/** Returns the roles without DEFAULT, which tells apart the renditions of one group only. */
export function rolesBeyondGroup(roles: readonly TrackRole[]): TrackRole[] {
  return roles.filter((role) => role !== "main");
}

/** Whether the TYPE of an EXT-X-MEDIA is `type`, in any case. */
export function isOfType(attributes: Attributes, type: string): boolean {
  return attributes.get("TYPE")?.toUpperCase() === type;
}
