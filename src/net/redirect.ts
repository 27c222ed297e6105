import { ServiceError } from "../errors.ts";
import { httpUrlProblem, urlForMessage } from "./http-url.ts";

/** RFC 9110 §15.4; 300 offers a choice that nobody is there to make, 304 to 306 redirect nothing. */
const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

export const isRedirect = (status: number): boolean => redirectStatuses.has(status);

/**
 * Where a redirect from `from` leads: its `Location` (RFC 9110 §10.2.2), absolute or relative, with
 * the fragment of `from` unless it has its own. A step from https down to http is followed: nothing
 * secret is ever sent, and pages do it. `location` is text with a character for each byte.
 *
 * @throws ServiceError `upstream_invalid` where it is missing, is no URL, or breaks a rule of
 *   `httpUrlFault`, which is then the `cause`
 */
export function redirectTarget(from: URL, location: string | undefined): URL {
  if (location === undefined) throw badRedirect(from, "does not say where to");
  const target = URL.parse(Buffer.from(location, "latin1").toString("utf8"), from);
  if (target === null) throw badRedirect(from, "leads to something that is not a URL");
  if (target.hash === "") target.hash = from.hash;
  const fault = httpUrlProblem(target);
  if (fault !== undefined) throw badRedirect(from, `is refused: ${fault.message}`, fault);
  return target;
}

/** An error of a later request of the chain, with the way there put before its message. */
export function afterRedirects(error: unknown, start: URL, redirects: number): unknown {
  if (!(error instanceof ServiceError)) return error;
  const { code, message, retryable, retryAfterS, upstreamStatus } = error;
  return new ServiceError(code, `redirect ${redirects} of ${urlForMessage(start)}: ${message}`, {
    cause: error,
    retryable,
    ...(retryAfterS !== undefined && { retryAfterS }),
    ...(upstreamStatus !== undefined && { upstreamStatus }),
  });
}

function badRedirect(from: URL, why: string, cause?: unknown): ServiceError {
  return new ServiceError("upstream_invalid", `the redirect of ${urlForMessage(from)} ${why}`, {
    cause,
  });
}
