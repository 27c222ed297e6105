/** Encodings of text from before UTF-8, each with the languages it was usual for (WHATWG Encoding; HTML §13.2.3.2). */
const encodings: readonly (readonly [encoding: string, languages: string])[] = [
  ["windows-1250", "bs cs hr hu pl ro sk sl sq"],
  ["windows-1251", "be bg kk ky mk mn ru sr tg uk"],
  ["windows-1253", "el"],
  ["windows-1254", "az ku tr"],
  ["windows-1255", "he iw yi"],
  ["windows-1256", "ar fa ur"],
  ["windows-1257", "et lt lv"],
  ["windows-1258", "vi"],
  ["windows-874", "th"],
  ["shift_jis", "ja"],
  ["euc-kr", "ko"],
  ["gb18030", "zh"],
];
const byLanguage = new Map(encodings.flatMap(([name, tags]) => tags.split(" ").map((tag) => [tag, name] as const)));

/** Of Chinese as it is written in Hong Kong, Macao and Taiwan. */
const traditional = /^zh-(?:hant|hk|mo|tw)\b/;

/** Returns the encoding of text in a language (BCP 47) that is not UTF-8: Windows-1252 if that is unknown. */
export function encodingOf(language: string | null): string {
  const tag = language?.toLowerCase() ?? "";
  if (traditional.test(tag)) return "big5";
  return byLanguage.get(tag.split("-", 1)[0]!) ?? "windows-1252";
}

/** Returns the encoding that an XML declaration states (XML 1.0 §4.3.3); undefined: there is none, or it is unknown, or Unicode. */
export function statedEncoding(start: string): string | undefined {
  const label = /^\s*<\?xml\s[^>]{0,200}?\bencoding\s*=\s*["']([\w.:-]{1,40})["']/.exec(start)?.[1];
  if (label === undefined) return undefined;
  try {
    const { encoding } = new TextDecoder(label);
    return encoding.startsWith("utf-") ? undefined : encoding;
  } catch {
    return undefined;
  }
}
