import { createHash } from "node:crypto";
import { ServiceError } from "../errors.ts";

/** Returns a strong entity tag (RFC 9110 §8.8.3) of `value` as JSON. */
export function etagOf(value: object): string {
  return `"${createHash("sha1").update(JSON.stringify(value)).digest("base64url")}"`;
}

/** Returns whether `If-None-Match` (`*` or a list) matches the tag, compared weakly (RFC 9110 §13.1.2). */
export function matches(ifNoneMatch: string | undefined, etag: string): boolean {
  return tagsOf(ifNoneMatch ?? "").some((tag) => tag === "*" || tag.replace(/^W\//, "") === etag);
}

/**
 * Checks `If-Match` (`*` or a list), compared strongly (RFC 9110 §13.1.1).
 *
 * @throws ServiceError `precondition_failed` if it is given and does not match the tag.
 */
export function assertIfMatch(ifMatch: string | undefined, etag: string): void {
  if (ifMatch === undefined) return;
  if (tagsOf(ifMatch).some((tag) => tag === "*" || tag === etag)) return;
  const got = `If-Match: ${ifMatch.slice(0, 100)}`;
  throw new ServiceError("precondition_failed", `the entity tag is ${etag}; got ${got}`);
}

function tagsOf(list: string): string[] {
  return list.split(",").map((tag) => tag.trim());
}
