import { parseLanguage } from "../parsers/text.ts";

/** Returns a BCP 47 tag in canonical spelling; `null` for `und`, `mis`, `mul`, `zxx` and invalid tags. */
export function languageTag(value: string | undefined): string | null {
  const tag = parseLanguage(value);
  return tag === null || noLanguage.has(tag) ? null : tag;
}

/** Converts bit/s in decimal digits to kbit/s; `null` unless it is a number above 0. */
export function kilobits(bitsPerSecond: string | undefined): number | null {
  if (bitsPerSecond === undefined || !/^\d{1,12}(?:\.\d{0,9})?$/.test(bitsPerSecond)) return null;
  return Math.trunc(Number(bitsPerSecond)) / 1_000 || null;
}

/** Parses a frame rate such as `25`, `59.940` or `30000/1001`; `null` unless above 0 and at most 1,000. */
export function framesPerSecond(value: string | undefined): number | null {
  const parts = /^(\d{1,9}(?:\.\d{0,30})?)(?:\/(\d{1,9}))?$/.exec(value ?? "");
  if (parts === null) return null;
  const rate = Math.round((Number(parts[1]) / Number(parts[2] ?? 1)) * 1_000) / 1_000;
  return rate > 0 && rate <= 1_000 ? rate : null;
}

/** Rounds to microseconds; `null` for 0 and numbers that are not finite. */
export function roundSeconds(seconds: number): number | null {
  return Number.isFinite(seconds) ? Math.round(seconds * 1e6) / 1e6 || null : null;
}

const noLanguage: ReadonlySet<string> = new Set(["und", "mis", "mul", "zxx"]);
