import { readAttributes } from "./hls-lines.ts";

/**
 * Whether an EXT-X-KEY or EXT-X-SESSION-KEY (RFC 8216 §4.3.2.4) names a key that only a licence
 * server gives: a KEYFORMAT other than `identity`, or FairPlay's `skd:` address.
 */
export function isLicensedKey(list: string): boolean {
  const attributes = readAttributes(list);
  if (attributes.get("METHOD")?.toUpperCase() === "NONE") return false;
  const format = attributes.get("KEYFORMAT")?.toLowerCase() || "identity";
  return format !== "identity" || /^skd:/i.test(attributes.get("URI") ?? "");
}
