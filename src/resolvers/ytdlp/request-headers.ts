import { asDict, asText } from "./info-dict.ts";

/** What sites check, as it is written in a record; the others are the client's own. */
const names: ReadonlyMap<string, string> = new Map(
  ["User-Agent", "Referer", "Origin", "Authorization"].map((name) => [name.toLowerCase(), name]),
);

const maxValueLength = 2_000;
const maxCookiesLength = 16 * 1024;

/** Returns the request headers that a format demands. */
export function readHeaders(headers: unknown): Record<string, string> {
  const fields = Object.entries(asDict(headers)).flatMap(([written, value]) => {
    const name = names.get(written.toLowerCase());
    const text = asText(value)?.trim() ?? "";
    return name !== undefined && isFieldValue(text, maxValueLength) ? [[name, text] as const] : [];
  });
  return Object.fromEntries(fields);
}

/** Returns the cookies of a format as yt-dlp joins them; `null` if there are none or they are invalid. */
export function readCookies(cookies: unknown): string | null {
  const text = asText(cookies) ?? "";
  return isFieldValue(text, maxCookiesLength) ? text : null;
}

/** ASCII without control characters (RFC 9110 §5.5). */
function isFieldValue(text: string, maxLength: number): boolean {
  return text.length <= maxLength && /^[\t\x20-\x7E]+$/.test(text);
}
