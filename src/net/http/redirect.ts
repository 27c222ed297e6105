import { ServiceError } from "../../model/errors.ts";
import { findUrlProblem, urlForMessage } from "../http-url.ts";

/** RFC 9110 §15.4. Of the others, 300 needs a user to choose, and 304 to 306 are not redirects. */
const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Whether a response of this status is a redirect to follow. */
export const isRedirect = (status: number): boolean => redirectStatuses.has(status);

/**
 * Returns the target of a redirect of `from`: its `Location` (RFC 9110 §10.2.2), absolute or relative,
 * with the fragment of `from` unless it has its own. `location` has one character per byte (latin1).
 * Redirects from https to http are allowed: pages use them, and secrets are sent only where they
 * apply.
 *
 * @throws ServiceError `upstream_invalid` if it is missing, not a URL, or refused by `findUrlProblem`,
 *   whose error is then the `cause`
 */
export function redirectTarget(from: URL, location: string | undefined): URL {
  if (location === undefined) throw redirectError(from, "has no Location");
  const target = URL.parse(Buffer.from(location, "latin1").toString("utf8"), from);
  if (target === null) throw redirectError(from, "has a Location that is not a URL");
  if (target.hash === "") target.hash = from.hash;
  const problem = findUrlProblem(target);
  if (problem !== undefined) throw redirectError(from, `is refused: ${problem.message}`, problem);
  return target;
}

/** Returns the error of a request after redirects, with their number and start before its message. */
export function withRedirects(error: unknown, start: URL, redirects: number): unknown {
  if (!(error instanceof ServiceError)) return error;
  const { code, message, retryable, retryAfterS, upstreamStatus, resourceBytes, isUntried } = error;
  return new ServiceError(code, `redirect ${redirects} of ${urlForMessage(start)}: ${message}`, {
    cause: error,
    retryable,
    retryAfterS,
    upstreamStatus,
    resourceBytes,
    isUntried,
  });
}

function redirectError(from: URL, why: string, cause?: unknown): ServiceError {
  return new ServiceError("upstream_invalid", `the redirect of ${urlForMessage(from)} ${why}`, { cause });
}
