import { createHash } from "node:crypto";

/** Returns a strong entity tag (RFC 9110 §8.8.3) of `value` as JSON. */
export function etagOf(value: object): string {
  return `"${createHash("sha1").update(JSON.stringify(value)).digest("base64url")}"`;
}

/** Returns whether `If-None-Match` (`*` or a list) matches the tag, compared weakly (RFC 9110 §13.1.2). */
export function matches(ifNoneMatch: string | undefined, etag: string): boolean {
  const listed = (ifNoneMatch ?? "").split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return listed.some((tag) => tag === "*" || tag === etag);
}
