import { ServiceError } from "../errors.ts";
import { parseHttpUrl } from "../net/http-url.ts";

/**
 * The address of a page as a client gave it, the member `url` of `part`.
 *
 * @throws ServiceError `invalid_url` that points to it.
 */
export function readPageUrl(text: string, part: "query" | "body"): URL {
  try {
    return parseHttpUrl(text);
  } catch (cause) {
    if (!(cause instanceof ServiceError)) throw cause;
    const { code, message } = cause;
    const faults = [{ pointer: "/url", detail: message }];
    throw new ServiceError(code, `/url in the ${part}: ${message}`, { cause, faults });
  }
}
