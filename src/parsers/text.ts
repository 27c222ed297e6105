/** Limits of a page's texts, UTF-16 code units. */
const maxTitleLength = 2_000;
const maxDescriptionLength = 10_000;

/** Returns one line: white space collapsed, cut to `maxTitleLength`; `null` if empty. */
export function parseLine(value: string | null | undefined): string | null {
  const line = cut(value, maxTitleLength)?.replace(/\s+/g, " ").trim();
  return line === undefined || line === "" ? null : line;
}

/** Returns text with its line breaks, cut to `maxDescriptionLength`; `null` if empty. */
export function parseParagraphs(value: string | null | undefined): string | null {
  const text = cut(value, maxDescriptionLength)?.trim();
  return text === undefined || text === "" ? null : text;
}

/** Like `parseParagraphs`, but removes HTML tags, which schema.org descriptions often have. */
export function parseProse(value: string | null | undefined): string | null {
  const text = parseParagraphs(value);
  if (text === null || !/<\/?(?:a|b|br|div|em|i|li|p|span|strong|ul)\b/i.test(text)) return text;
  const lines = text.replace(/<(?:br|\/p|\/div|\/li)\b[^<>]*>/gi, "\n");
  return parseParagraphs(lines.replace(/<\/?[a-z][^<>]*>/gi, ""));
}

const maxTags = 100;
const maxTagLength = 200;
/** With white space that is collapsed. */
const maxRawTagLength = 500;
/** Of the values that are looked at, and of the characters of texts with several. */
const maxValues = 1_000;
const maxKeywordsLength = 10_000;

/**
 * Returns the tags without duplicates, in order, of the first 1,000 values; at most 100, without those over
 * 200 characters.
 */
export function parseTags(values: readonly string[]): string[] {
  const tags = new Map<string, string>();
  for (const value of values.slice(0, maxValues)) {
    const tag = value.length > maxRawTagLength ? null : parseLine(value);
    if (tag === null || tag.length > maxTagLength || tags.size === maxTags) continue;
    if (!tags.has(tag.toLowerCase())) tags.set(tag.toLowerCase(), tag);
  }
  return [...tags.values()];
}

/** Returns the tags of texts that separate them by comma or semicolon, of the first 1,000 as `parseTags`. */
export function parseKeywords(values: readonly string[]): string[] {
  const found: string[] = [];
  for (const value of values) {
    if (found.length >= maxValues) break;
    found.push(...value.slice(0, maxKeywordsLength).split(/[,;]/, maxValues));
  }
  return parseTags(found);
}

/** Returns the encoding that a label names (WHATWG Encoding §4.2); undefined if there is none. */
export function encodingNamed(label: string): string | undefined {
  try {
    return new TextDecoder(label).encoding;
  } catch {
    return undefined;
  }
}

/** Characters that change the reading direction of what comes after them, also beyond the text, or control a terminal. */
const controls = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\0-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]/g;

/**
 * Removes `controls`, trims the start, of at most `length` characters, and cuts between code points; replaces lone
 * surrogates.
 */
function cut(value: string | null | undefined, length: number): string | undefined {
  const start = value
    ?.slice(0, 2 * length)
    .replace(controls, "")
    .trimStart();
  if (start === undefined || start.length <= length) return start?.toWellFormed();
  return start
    .slice(0, length)
    .replace(/[\uD800-\uDBFF]$/, "")
    .toWellFormed();
}

/** Returns the canonical BCP 47 tag of a `lang` attribute or `og:locale` (`en_US`: `en-US`); else `null`. */
export function parseLanguage(value: string | null | undefined): string | null {
  const tag = value?.slice(0, 60).trim().replaceAll("_", "-") ?? "";
  // RFC 5646 §2.2.7: of private use, which `Intl` does not take alone.
  if (/^x(?:-[a-z0-9]{1,8})+$/i.test(tag)) return tag.toLowerCase();
  if (!/^[a-z]{2,3}(?:-[a-z0-9]{1,8})*$/i.test(tag)) return null;
  try {
    return Intl.getCanonicalLocales(tag)[0] ?? null;
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}
