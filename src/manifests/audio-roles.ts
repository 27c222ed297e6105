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
