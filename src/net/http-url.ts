import { ServiceError } from "../errors.ts";

/** Longest URL, in characters of its ASCII form (`href`), which are also its bytes. */
export const maxUrlLength = 8192;

/**
 * Reads what a user gave as the address of a page: an absolute http or https URL (WHATWG URL)
 * without user name and password, of at most 8192 characters both as written and percent-encoded.
 * Control characters are refused, where WHATWG drops some of them silently.
 *
 * @throws ServiceError `invalid_url` with the rule and the value, never with a password.
 */
export function parseHttpUrl(text: string): URL {
  if (text.trim() === "") throw invalid("is empty; give the address of a page");
  if (text.length > maxUrlLength) throw tooLong(text.length);
  if (/[\u0000-\u001f\u007f-\u009f]/.test(text))
    throw invalid(`must not contain control characters`, text);
  const url = URL.parse(text);
  if (url !== null) {
    const fault = httpUrlProblem(url);
    if (fault === undefined) return url;
    throw fault;
  }
  if (/^\s*[a-z][a-z\d+.-]*:/i.test(text)) throw invalid("is not a valid URL", text);
  throw invalid("must be absolute, beginning with https:// or http://", text);
}

/** The `invalid_url` of a parsed URL that breaks one of these rules. */
export function httpUrlProblem(url: URL): ServiceError | undefined {
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    return invalid(
      `must have the scheme http or https, not ${shorten(url.protocol, 40)}`,
      url.href,
    );
  }
  if (url.username !== "" || url.password !== "") {
    return invalid("must not contain a user name or password", url.href);
  }
  return url.href.length > maxUrlLength ? tooLong(url.href.length) : undefined;
}

/** A URL for messages: without query and fragment, which may hold secrets, and not too long. */
export function urlForMessage(url: URL): string {
  return shorten(url.origin + url.pathname, 200);
}

export function shorten(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}…` : text;
}

function tooLong(length: number): ServiceError {
  return invalid(
    `must be at most ${maxUrlLength} characters long, percent-encoded; it has ${length}`,
  );
}

function invalid(rule: string, text?: string): ServiceError {
  const value = text === undefined ? "" : `, got ${JSON.stringify(shorten(redacted(text), 100))}`;
  return new ServiceError("invalid_url", `the URL ${rule}${value}`);
}

/** Leaves nothing of what stands before an `@`: however it is written, no password passes. */
function redacted(text: string): string {
  const at = text.lastIndexOf("@");
  return at === -1 ? text : `…${text.slice(at)}`;
}
