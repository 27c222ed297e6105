import { Type } from "@sinclair/typebox";
import { ServiceError } from "../errors.ts";
import { parseHttpUrl } from "../net/http-url.ts";

/** The member `url` of a query or body. */
export const PageUrl = Type.String({
  description: "absolute http or https URL of a video page, at most 8 KiB",
  examples: ["https://example.com/watch/42"],
});

/**
 * Parses the URL of a page, which is the member `url` of the request's `part`.
 *
 * @throws ServiceError `invalid_url` with a pointer to it.
 */
export function parsePageUrl(text: string, part: "query" | "body"): URL {
  try {
    return parseHttpUrl(text);
  } catch (cause) {
    if (!(cause instanceof ServiceError)) throw cause;
    const { code, message } = cause;
    const faults = [{ pointer: "/url", detail: message }];
    throw new ServiceError(code, `/url in the ${part}: ${message}`, { cause, faults });
  }
}
