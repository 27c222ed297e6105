import { purposeKey } from "../model/format-ranking.ts";
import type { AudioRole, TrackRole } from "../model/track-roles.ts";
import type { ManifestFormat } from "./manifest.ts";

/**
 * Returns the formats, each separate audio with what it is to listeners. The original is `main` (DEFAULT in HLS), unless that is said of
 * several languages.
 */
export function withAudioRoles(formats: readonly ManifestFormat[]): ManifestFormat[] {
  const mains = formats.filter(({ vcodec, roles = [] }) => {
    return vcodec === "none" && roles.includes("main") && versionOf(roles) === null;
  });
  const isDecided = new Set(mains.map(({ language }) => language)).size === 1;
  const originals = new Set(isDecided ? mains : []);
  return formats.map((format) => {
    if (format.vcodec !== "none") return format;
    const stated = originals.has(format) ? "original" : (format.audio_role ?? null);
    return { ...format, audio_role: versionOf(format.roles ?? []) ?? stated };
  });
}

/** The first that is stated is what it is. */
const versions = ["description", "commentary", "dub"] as const satisfies readonly (AudioRole & TrackRole)[];

function versionOf(roles: readonly TrackRole[]): AudioRole | null {
  return versions.find((version) => roles.includes(version)) ?? null;
}

/** Audio, and what its manifest calls it. */
export interface ListedAudio {
  audio: { language: string | null; roles?: readonly TrackRole[]; name?: string };
  name: string | null;
  /** Audio of one group differs in what it is, that of several groups may differ in quality only. */
  group: string;
}

/**
 * Adds its name to all audio that nothing else tells apart: a group has several in one language and for the same purpose, with
 * different names. Of other groups, those with such a name get it too.
 */
export function addNames(listed: readonly ListedAudio[]): void {
  const keyOf = ({ audio, name }: ListedAudio) => JSON.stringify([purposeKey(audio), name]);
  const named = listed.filter(({ name }) => name !== null);
  const groups = Map.groupBy(named, ({ audio, group }) => JSON.stringify([purposeKey(audio), group]));
  const keys = [...groups.values()].map((same) => new Set(same.map(keyOf)));
  const telling = new Set(keys.filter(({ size }) => size > 1).flatMap((each) => [...each]));
  for (const each of named) if (each.name !== null && telling.has(keyOf(each))) each.audio.name = each.name;
}
