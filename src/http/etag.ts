import { createHash } from "node:crypto";

/** A strong entity tag (RFC 9110 §8.8.3) of what is sent as JSON. */
export function etagOf(value: object): string {
  return `"${createHash("sha1").update(JSON.stringify(value)).digest("base64url")}"`;
}

/** Whether `If-None-Match` names the tag (RFC 9110 §13.1.2: `*` or a list, compared weakly). */
export function matches(ifNoneMatch: string | undefined, etag: string): boolean {
  const listed = (ifNoneMatch ?? "").split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return listed.some((tag) => tag === "*" || tag === etag);
}
