import { createHash } from "node:crypto";
import { ServiceError } from "../../model/errors.ts";

/** Returns a strong entity tag (RFC 9110 §8.8.3) of `value` as JSON. */
export function etagOf(value: object): string {
  return `"${createHash("sha1").update(JSON.stringify(value)).digest("base64url")}"`;
}

/** Returns the entity tag of the same content, compressed with gzip. */
export function gzipTagOf(etag: string): string {
  return etag.replace(/"$/, '-gzip"');
}

/**
 * Returns the tag in `If-None-Match` (`*` or a list) that matches `etag`, with or without gzip, compared weakly (RFC 9110
 * §13.1.2); for `*` the tag itself; undefined if none matches.
 */
export function findMatch(ifNoneMatch: string | undefined, etag: string): string | undefined {
  const tags = new Set([etag, gzipTagOf(etag)]);
  for (const given of tagsOf(ifNoneMatch ?? "")) {
    const tag = given === "*" ? etag : given.replace(/^W\//, "");
    if (tags.has(tag)) return tag;
  }
  return undefined;
}

/**
 * Checks `If-Match` (`*` or a list), compared strongly (RFC 9110 §13.1.1); the tag may be that of the content with gzip.
 *
 * @throws ServiceError `precondition_failed` if it is given and does not match the tag.
 */
export function assertIfMatch(ifMatch: string | undefined, etag: string): void {
  if (ifMatch === undefined) return;
  const tags = new Set(["*", etag, gzipTagOf(etag)]);
  if (tagsOf(ifMatch).some((tag) => tags.has(tag))) return;
  const got = `If-Match: ${ifMatch.slice(0, 100)}`;
  throw new ServiceError("precondition_failed", `the entity tag is ${etag}; got ${got}`);
}

function tagsOf(list: string): string[] {
  return list.split(",").map((tag) => tag.trim());
}
