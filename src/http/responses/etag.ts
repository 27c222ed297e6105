import { createHash } from "node:crypto";
import { Type } from "@sinclair/typebox";
import { ServiceError } from "../../model/errors.ts";

const tagList = "an entity tag, several with commas between them, or `*`";

/**
 * Header fields of conditional and range requests (RFC 9110 §13, §14), for the schemas of routes that follow them.
 * Any text passes: what a route does with one that breaks the rules is not an error.
 */
export const ConditionHeaders = Type.Object({
  "if-match": Type.Optional(Type.String({ description: `${tagList}; 412 if none matches` })),
  "if-none-match": Type.Optional(Type.String({ description: `${tagList}; 304 if one matches` })),
  range: Type.Optional(Type.String({ description: "the bytes to send", examples: ["bytes=0-1023"] })),
  "if-range": Type.Optional(Type.String({ description: "the entity tag without which `Range` is ignored" })),
});

/** Returns a strong entity tag (RFC 9110 §8.8.3) of JSON. */
export function etagOf(text: string): string {
  return `"${createHash("sha1").update(text).digest("base64url")}"`;
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
