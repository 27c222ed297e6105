/** A JSON object of which nothing is known, as a site writes it, or influences what yt-dlp does. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Returns the object; an empty one for anything else. */
export function asObject(value: unknown): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
}

/** Returns the array; an empty one for anything else. */
export function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Returns the text; `null` for anything else. */
export function asText(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

/** Returns a whole number of at least `least`; `null` for anything else. Makes -0 to 0. */
export function asCount(value: unknown, least: 0 | 1 = 1): number | null {
  return Number.isSafeInteger(value) && Number(value) >= least ? Math.abs(Number(value)) : null;
}

/** Returns a number above 0, rounded to thousandths; `null` for anything else. */
export function asAmount(value: unknown): number | null {
  if (typeof value !== "number" || value <= 0 || value > Number.MAX_SAFE_INTEGER) return null;
  return Math.round(value * 1000) / 1000 || null;
}
