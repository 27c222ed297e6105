import type { TrackRole } from "../model/page-info.ts";

/** Names of audio description, in languages that have it on television; `AD` alone is its sign if it ends a name. */
const described =
  /audio[- ]?(?:descri|deskr[iy]|beskrivelse)|descriptive|described (?:audio|video|service)|video descri(?:ption|bed)|descripci[oó]n de audio|h[oö]rfilm|bildbeschreibung|syns?tolk|kuvailutulkkaus/i;
const sign = /(?:^|[\s_([-])AD[\])]?$/;

/** Longest name that is looked at; no menu shows more. */
const maxLength = 200;

/**
 * Returns the roles of audio, with that of a description if only its name says so, as in many manifests. What is to play by default (`main`)
 * is the programme, whatever its name is.
 */
export function withNamedRole(roles: readonly TrackRole[], name: string | null): readonly TrackRole[] {
  const text = (name ?? "").slice(0, maxLength).normalize().trim();
  const isDescription = described.test(text) || sign.test(text);
  return !isDescription || roles.includes("main") || roles.includes("description") ? roles : [...roles, "description"];
}
