import { invalidResponseError } from "../upstream-error.ts";

/** Servers send one or two. */
const maxInterimResponses = 100;

/**
 * Returns an `onInfo` for a request of undici, named by `what`: it makes the request fail with ServiceError `upstream_invalid`
 * after so many interim responses (RFC 9110 §15.2). Each starts the wait for the header again, and none counts as received.
 */
export function limitInterimResponses(what: string): () => void {
  let count = 0;
  return () => {
    count += 1;
    if (count <= maxInterimResponses) return;
    throw invalidResponseError(what, `it got over ${maxInterimResponses} interim responses`);
  };
}
