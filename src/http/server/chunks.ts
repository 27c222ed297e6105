import type { IncomingMessage } from "node:http";

/** Chunks that the body of a request may have: one can be as short as a byte, and takes the process 10 µs. */
export const maxChunks = 4_096;

/** Calls `refuse` once if the body of `request` comes in more than `maxChunks` chunks (RFC 9112 §7.1), whether or not it is read. */
export function limitChunks(request: IncomingMessage, refuse: () => void): void {
  if (request.headers["transfer-encoding"] === undefined) return;
  const push = request.push.bind(request);
  let chunks = 0;
  request.push = (chunk, encoding) => {
    if (chunk !== null) chunks += 1;
    if (chunks <= maxChunks) return push(chunk, encoding);
    if (chunks === maxChunks + 1) refuse();
    return false;
  };
  // Undocumented: Node calls it once the response has been sent, and then drops the rest of the body without `push`.
  Object.assign(request, {
    _dump() {
      request.removeAllListeners("data");
      request.resume();
    },
  });
}
