import { isFieldValue, siteHeaderNames } from "../../net/http/site-headers.ts";
import { asDict, asText } from "./info-dict.ts";

/** Thousands of formats may repeat a value. */
const maxValueLength = 2_000;
const maxCookiesLength = 16 * 1024;

/** Returns the request headers that a format demands. */
export function readHeaders(headers: unknown): Record<string, string> {
  const fields = Object.entries(asDict(headers)).flatMap(([written, value]) => {
    const name = siteHeaderNames.get(written.toLowerCase());
    const text = asText(value)?.trim() ?? "";
    const isDemand = name !== undefined && text !== "" && isFieldValue(text, maxValueLength);
    return isDemand ? [[name, text] as const] : [];
  });
  return Object.fromEntries(fields);
}

/** Returns the cookies of a format as yt-dlp joins them; `null` if there are none or they are invalid. */
export function readCookies(cookies: unknown): string | null {
  const text = asText(cookies) ?? "";
  return text !== "" && isFieldValue(text, maxCookiesLength) ? text : null;
}
