import type { ListedFormat } from "./formats.ts";

/**
 * Returns the formats with what yt-dlp's preferences of languages say: separate audio of the highest one above 0, and other audio in
 * that language, is the original; in other languages, or if its note says so, it is dubbed; below −1 it is a description. What a manifest says of audio counts first.
 * Video with dubbed audio is another version, as are dubbed audio and descriptions.
 */
export function withLanguageRoles(formats: readonly ListedFormat[]): ListedFormat[] {
  const best = Math.max(...formats.map(({ languagePreference }) => languagePreference));
  const preferred = formats.filter(({ languagePreference }) => languagePreference === best);
  const original = new Set(best > 0 ? preferred.map(({ language }) => language) : []);
  return formats.map((format) => {
    const { vcodec, acodec, language, languagePreference } = format;
    const isDub = format.isDub || (original.size > 0 && language !== null && !original.has(language));
    if (vcodec !== "none") return isDub && acodec !== "none" ? { ...format, preference: -1 } : format;
    if (format.audio_role) return format;
    if (languagePreference < -1) return { ...format, audio_role: "description", preference: -2 };
    if (isDub) return { ...format, audio_role: "dub", preference: -1 };
    return { ...format, audio_role: original.has(language) ? "original" : null };
  });
}

/** Returns the language that the page is about, as yt-dlp's preference says. */
export function languageOf(formats: readonly ListedFormat[]): string | null {
  const preferred = formats
    .filter(({ language, languagePreference }) => language !== null && languagePreference > 0)
    .toSorted((a, b) => b.languagePreference - a.languagePreference);
  return preferred[0]?.language ?? null;
}
