import type { Socket } from "node:net";
import { type ErrorCode, ServiceError } from "../../model/errors.ts";
import { closeAfterLinger, closeWithProblem } from "./last-response.ts";
import { pendingResponse } from "./pending-response.ts";

/**
 * Returns the handler of bytes that are not an HTTP request (RFC 9112 §2.2), and of requests that take too
 * long: it responds with a problem document and closes the connection within about a second. If the
 * response to an earlier request of the connection is pending, only that one is sent, within that second.
 */
export function createClientErrorHandler() {
  // What is wrong with a connection is reported again when its client closes it.
  const closing = new WeakSet<Socket>();

  return (error: NodeJS.ErrnoException, socket: Socket): void => {
    if (closing.has(socket)) return;
    closing.add(socket);
    const pending = pendingResponse(socket);
    if (error.code === "ECONNRESET" || !socket.writable) {
      socket.destroy();
    } else if (pending?.req.complete) {
      closeAfterLinger(socket);
      pending.once("close", () => socket.end());
    } else if (pending?.headersSent) {
      socket.destroy();
    } else {
      const [code, detail] = clientErrors[error.code ?? ""] ?? notHttp;
      closeWithProblem(socket, new ServiceError(code, detail, { cause: error }));
    }
  };
}

type ClientError = readonly [code: ErrorCode, detail: string];

const notHttp: ClientError = ["invalid_request", "the bytes received are not an HTTP/1.1 request"];

const clientErrors: Readonly<Record<string, ClientError>> = {
  HPE_INVALID_METHOD: ["invalid_request", "the request method is unknown"],
  HPE_HEADER_OVERFLOW: [
    "headers_too_large",
    "request line, headers and trailers may have at most 16 KiB and 1000 fields",
  ],
  HPE_INVALID_EOF_STATE: ["invalid_request", "the connection was closed within the request"],
  ERR_HTTP_REQUEST_TIMEOUT: [
    "request_timeout",
    "the headers must arrive within 15 s and the whole request within 30 s",
  ],
};
