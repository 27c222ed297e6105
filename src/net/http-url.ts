import { ServiceError } from "../model/errors.ts";

/** Longest URL, in characters of its percent-encoded form (`href`), which are also its bytes. */
export const maxUrlLength = 8192;

/** Also for `example.com:8080/film`, whose host reads as a scheme. */
const schemeRule = "must begin with https:// or http://";

/**
 * Parses a page's URL as a user entered it: absolute, http or https (WHATWG URL), without user name
 * and password, at most 8192 characters long, both as written and percent-encoded. Control characters
 * are refused: WHATWG silently drops some of them.
 *
 * @throws ServiceError `invalid_url` with the rule and the value, never with a password
 */
export function parseHttpUrl(text: string): URL {
  if (text.trim() === "") throw invalidUrlError("is empty; give the URL of a page");
  if (text.length > maxUrlLength) throw urlTooLongError(text.length);
  if (/[\u0000-\u001f\u007f-\u009f]/.test(text)) throw invalidUrlError(`must not contain control characters`, text);
  const url = URL.parse(text);
  if (url !== null) {
    const problem = findUrlProblem(url);
    if (problem === undefined) return url;
    throw problem;
  }
  if (/^\s*https?:/i.test(text)) throw invalidUrlError("is not a valid URL", text);
  throw invalidUrlError(schemeRule, text);
}

/**
 * Returns an `invalid_url` error if a parsed URL is not http or https, has a user name or password, or
 * is too long; else undefined.
 */
export function findUrlProblem(url: URL): ServiceError | undefined {
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    return invalidUrlError(schemeRule, url.href);
  }
  if (url.username !== "" || url.password !== "") {
    return invalidUrlError("must not contain a user name or password", url.href);
  }
  return url.href.length > maxUrlLength ? urlTooLongError(url.href.length) : undefined;
}

/** Returns a URL for messages: at most 200 characters, without query and fragment, which may be secret. */
export function urlForMessage(url: URL): string {
  return shorten(url.origin + url.pathname, 200);
}

/** Cuts `text` to `length` UTF-16 code units, with an ellipsis if it was longer. */
export function shorten(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}…` : text;
}

function urlTooLongError(length: number): ServiceError {
  return invalidUrlError(`must be at most ${maxUrlLength} characters long, percent-encoded; it has ${length}`);
}

function invalidUrlError(rule: string, text?: string): ServiceError {
  const value = text === undefined ? "" : `, got ${JSON.stringify(shorten(redacted(text), 100))}`;
  return new ServiceError("invalid_url", `the URL ${rule}${value}`);
}

/** Removes everything before the last `@`, and with it a password however it is written. */
function redacted(text: string): string {
  const at = text.lastIndexOf("@");
  return at === -1 ? text : `…${text.slice(at)}`;
}
