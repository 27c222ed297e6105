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
