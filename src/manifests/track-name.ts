import { purposeKey } from "../model/format-ranking.ts";
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

/** Audio, and what its manifest calls it. */
export interface ListedAudio {
  audio: { language: string | null; roles?: readonly TrackRole[]; name?: string };
  name: string | null;
  /** Audio of one group differs in what it is, that of several groups may differ in quality only. */
  group: string;
}

/**
 * Adds its name to all audio that nothing else tells apart: a group has several in one language and for the same purpose, with
 * different names, or others beside one whose language is unknown. Of other groups, those with such a name get it too.
 */
export function addNames(listed: readonly ListedAudio[]): void {
  const keyOf = ({ audio, name }: ListedAudio) => JSON.stringify([purposeKey(audio), name]);
  const named = listed.filter(({ name }) => name !== null);
  const alike = Map.groupBy(named, ({ audio, group }) => JSON.stringify([purposeKey(audio), group]));
  const keys = [...alike.values()].map((same) => new Set(same.map(keyOf)));
  const telling = new Set(keys.filter(({ size }) => size > 1).flatMap((each) => [...each]));
  for (const together of Map.groupBy(named, ({ group }) => group).values()) {
    if (new Set(together.map(keyOf)).size < 2) continue;
    for (const each of together) if (each.audio.language === null) telling.add(keyOf(each));
  }
  for (const each of named) if (each.name !== null && telling.has(keyOf(each))) each.audio.name = each.name;
}
