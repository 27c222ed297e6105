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

/** Names of languages in English and in the language itself, in lower case, with their tags. */
let languages: ReadonlyMap<string, string> | undefined;

/** Returns the language (BCP 47) that a name is alone, in English or in that language, such as `Deutsch` or `german`; `null`: it is more, or none. */
export function languageOfName(name: string | null): string | null {
  const text = (name ?? "").slice(0, maxLength).normalize().trim().toLowerCase();
  if (text === "") return null;
  languages ??= nameLanguages();
  return languages.get(text) ?? null;
}

function nameLanguages(): Map<string, string> {
  const named = new Map<string, string>();
  const letters = "abcdefghijklmnopqrstuvwxyz".split("");
  const nameIn = (locale: string) => new Intl.DisplayNames([locale], { type: "language", fallback: "none" });
  const english = nameIn("en");
  for (const code of letters.flatMap((first) => letters.map((second) => first + second))) {
    const name = english.of(code)?.toLowerCase();
    if (name !== undefined) named.getOrInsert(name, new Intl.Locale(code).language);
  }
  for (const tag of new Set(named.values())) {
    const own = nameIn(tag).of(tag)?.normalize().toLowerCase();
    if (own !== undefined) named.getOrInsert(own, tag);
  }
  return named;
}
