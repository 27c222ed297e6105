/**
 * Returns a count as pages write it: digits, also in groups of three (`1,234,567`, `1.234`, `1 234`);
 * `null` if it is none, also for rounded ones (`1.2M`).
 */
export function parseCount(value: string | null | undefined): number | null {
  const text = value?.slice(0, 60).trim() ?? "";
  if (!/^(?:\d{1,15}|\d{1,3}(?:([,. '\u00A0\u202F])\d{3})(?:\1\d{3})*)$/.test(text)) return null;
  const count = Number(text.replace(/\D/g, ""));
  return Number.isSafeInteger(count) ? count : null;
}

/** Returns a length in pixels: a positive whole number, also with `px`; else `null`. */
export function parsePixels(value: string | null | undefined): number | null {
  const match = /^(\d{1,5})(?:\.0+)?(?:px)?$/.exec(value?.slice(0, 30).trim() ?? "");
  const pixels = Number(match?.[1] ?? 0);
  return pixels > 0 ? pixels : null;
}
