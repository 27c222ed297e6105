import packageJson from "../../../package.json" with { type: "json" };
import { rangeField } from "../byte-range.ts";
import type { GetOptions } from "../client.ts";
import { acceptEncoding } from "./content-coding.ts";

export const userAgent = `Mozilla/5.0 (compatible; Unreel/${packageJson.version})`;

/** Returns the header fields of the request for one hop; undici adds those of the connection. */
export function requestFields(
  url: URL,
  { accept = "*/*", headers, cookies, identity, range, ifRange }: GetOptions,
  what: string,
): Record<string, string> {
  const isIdentity = identity === true || range !== undefined;
  const cookie = cookies?.fieldFor(url);
  const fields = {
    "user-agent": userAgent,
    accept,
    ...headers?.(url),
    ...(cookie !== undefined && { cookie }),
    "accept-encoding": isIdentity ? "identity" : acceptEncoding,
  };
  if (range === undefined) return fields;
  const ranged = { ...fields, range: rangeField(range, what) };
  return ifRange === undefined ? ranged : { ...ranged, "if-range": ifRange };
}
