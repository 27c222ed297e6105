import { Type } from "@sinclair/typebox";
import { ServiceError } from "../../model/errors.ts";
import { parseHttpUrl, shorten } from "../../net/http-url.ts";

/** The member `url` of a query or body. */
export const PageUrl = Type.String({
  description: "absolute http or https URL of a video page, at most 8 KiB",
  examples: ["https://example.com/watch/42"],
});

/**
 * Parses the URL of a page, which is the parameter `url` of the request's query.
 *
 * @throws ServiceError `invalid_url` with a pointer to it; also if it has a query of its own that is not percent-encoded
 * and another parameter follows: that is most likely a part of the page's URL.
 */
export function pageUrlOfQuery({ url, query }: { url: string; query: { url: string } }): URL {
  const parameters = url.slice(url.indexOf("?") + 1).split("&");
  const at = parameters.findIndex((parameter) => parameter.startsWith("url="));
  const next = parameters[at + 1];
  if (next !== undefined && parameters[at]?.includes("?") === true) {
    const cut = JSON.stringify(shorten(next, 100));
    const rule = "must be percent-encoded (& as %26) if it has a query";
    const detail = `the URL ${rule}: it ends before &, and ${cut} is another parameter`;
    throw pageUrlError("query", new ServiceError("invalid_url", detail));
  }
  return parsePageUrl(query.url, "query");
}

/**
 * Parses the URL of a page, which is the member `url` of the request's `part`.
 *
 * @throws ServiceError `invalid_url` with a pointer to it.
 */
export function parsePageUrl(text: string, part: "query" | "body"): URL {
  try {
    return parseHttpUrl(text);
  } catch (cause) {
    throw cause instanceof ServiceError ? pageUrlError(part, cause) : cause;
  }
}

/** Adds to an error where the URL is. */
function pageUrlError(part: "query" | "body", cause: ServiceError): ServiceError {
  const { code, message } = cause;
  const faults = [{ pointer: "/url", detail: message }];
  return new ServiceError(code, `/url in the ${part}: ${message}`, { cause, faults });
}
