import { text as readText } from "node:stream/consumers";
import { parseDateTime } from "../../../manifests/dash/periods.ts";
import { isUpstreamError } from "../../../model/errors.ts";
import type { HttpResponse } from "../../../net/client.ts";

/** A UTCTiming element of an MPD. */
interface TimeSource {
  schemeIdUri: string;
  value: string;
}

/**
 * Returns how many milliseconds the clock of a site is ahead of this one, by the first of its UTCTiming elements that can
 * be read (ISO/IEC 23009-1 §5.8.4.11; a time, or a URL that returns one); `undefined`: none can.
 *
 * @throws what `get` throws, except upstream errors
 */
export async function readClock(
  sources: readonly TimeSource[],
  manifestUrl: URL,
  get: (url: URL) => Promise<HttpResponse>,
): Promise<number | undefined> {
  for (const { schemeIdUri, value } of sources) {
    const scheme = /^urn:mpeg:dash:utc:(direct|http-head|http-xsdate|http-iso):20(?:12|14)$/.exec(
      schemeIdUri.trim(),
    )?.[1];
    if (scheme === undefined) continue;
    if (scheme === "direct") {
      const ahead = aheadOf(parseDateTime(value));
      if (ahead !== undefined) return ahead;
      continue;
    }
    const [first = ""] = value.trim().split(/\s+/, 1);
    const url = URL.parse(first, manifestUrl);
    if (url === null) continue;
    try {
      const response = await get(url);
      const text = await readText(response.body);
      const ahead = scheme === "http-head" ? aheadByDate(response.headers) : aheadOf(parseDateTime(text));
      if (ahead !== undefined) return ahead;
    } catch (error) {
      if (!isUpstreamError(error)) throw error;
    }
  }
  return undefined;
}

/** Returns how many milliseconds the clock that wrote the `Date` of a response is ahead, at most a second too few. */
export function aheadByDate(headers: HttpResponse["headers"]): number | undefined {
  const date = Date.parse(headers.get("date") ?? "");
  const ageS = Number(headers.get("age") ?? 0);
  return Number.isNaN(date) ? undefined : aheadOf(date + 1000 * (Number.isFinite(ageS) ? ageS : 0));
}

function aheadOf(ms: number | null): number | undefined {
  return ms === null ? undefined : ms - Date.now();
}
