import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";

/**
 * Header fields of every response, whichever part sends it. Each is only what its `Content-Type` says, whatever its bytes look like; and for
 * its client alone unless a route says otherwise: a cache of a reverse proxy would give it to other owners.
 */
export const everyResponse = { "x-content-type-options": "nosniff", "cache-control": "private, no-cache" };

/** The header in which a request's id comes and goes. */
export const requestIdHeader = "x-request-id";

/**
 * Returns the function that gives each request its id: that of its `X-Request-Id`, if it has 1 to 64 of `A-Z a-z 0-9
 * . _ -`, else a new one, which no other process gives.
 */
export function createRequestIds(): (request: IncomingMessage) => string {
  const prefix = randomUUID().slice(-12);
  let last = 0;
  return ({ headers }) => {
    const id = headers[requestIdHeader];
    if (typeof id === "string" && /^[\w.-]{1,64}$/.test(id)) return id;
    return `${prefix}-${(last += 1).toString(36)}`;
  };
}
