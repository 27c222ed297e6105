import { Type } from "@sinclair/typebox";
import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from "fastify";
import { ServiceError } from "../../model/errors.ts";
import { parseHttpUrl, shorten } from "../../net/http-url.ts";

/** The member `url` of a query or body. */
export const PageUrl = Type.String({
  description: "absolute http or https URL of a video page, at most 8 KiB",
  examples: ["https://example.com/watch/42"],
});

/**
 * Hook that fails with ServiceError `invalid_url` if the parameter `url` has a query of its own that is not
 * percent-encoded and another parameter follows: that is most likely a part of the page's URL.
 */
export function refuseCutUrl({ url }: FastifyRequest, _reply: FastifyReply, done: HookHandlerDoneFunction): void {
  const parameters = url.slice(url.indexOf("?") + 1).split("&");
  const at = parameters.findIndex((parameter) => parameter.startsWith("url="));
  const next = parameters[at + 1];
  if (next === undefined || parameters[at]?.includes("?") !== true) return done();
  const cut = JSON.stringify(shorten(next, 100));
  const rule = "must be percent-encoded (& as %26) if it has a query";
  const detail = `the URL ${rule}: it ends before &, and ${cut} is another parameter`;
  return done(pageUrlError("query", new ServiceError("invalid_url", detail)));
}

/**
 * Parses the URL of a page, which is the member at `pointer` of the request's `part`.
 *
 * @throws ServiceError `invalid_url` with that pointer.
 */
export function parsePageUrl(text: string, part: "query" | "body", pointer = "/url"): URL {
  try {
    return parseHttpUrl(text);
  } catch (cause) {
    throw cause instanceof ServiceError ? pageUrlError(part, cause, pointer) : cause;
  }
}

/** Adds to an error where the URL is. */
function pageUrlError(part: "query" | "body", cause: ServiceError, pointer = "/url"): ServiceError {
  const { code, message } = cause;
  const faults = [{ pointer, detail: message }];
  return new ServiceError(code, `${pointer} in the ${part}: ${message}`, { cause, faults });
}
