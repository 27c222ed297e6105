import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type ErrorCode, ServiceError } from "../errors.ts";
import { problemMediaType, problemOf } from "./problem.ts";

/**
 * Responds to bytes that are not an HTTP request (RFC 9112 §2.2) with a problem document, and closes the
 * connection. If the response to an earlier request of the connection is still being written, only that
 * one is sent.
 */
export function handleClientError(error: NodeJS.ErrnoException, socket: Socket): void {
  const pending = pendingResponse(socket);
  if (pending !== undefined) {
    pending.once("close", () => socket.destroy());
  } else if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
  } else {
    const [reason, code, detail] = clientErrors[error.code ?? ""] ?? notHttp;
    const problem = problemOf(new ServiceError(code, detail));
    const body = JSON.stringify(problem);
    socket.end(
      `HTTP/1.1 ${problem.status} ${reason}\r\nConnection: close\r\n` +
        `Content-Type: ${problemMediaType}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
  }
}

/** Node keeps the response that is being written on the socket, and reads it in its own handler too. */
function pendingResponse(socket: Socket): ServerResponse | undefined {
  const { _httpMessage: response } = socket as Socket & { _httpMessage?: ServerResponse | null };
  return response ?? undefined;
}

type ClientError = readonly [reason: string, code: ErrorCode, detail: string];

const notHttp: ClientError = [
  "Bad Request",
  "invalid_request",
  "the bytes received are not an HTTP/1.1 request",
];

const clientErrors: Readonly<Record<string, ClientError>> = {
  HPE_INVALID_METHOD: ["Bad Request", "invalid_request", "the request method is unknown"],
  HPE_HEADER_OVERFLOW: [
    "Request Header Fields Too Large",
    "headers_too_large",
    "request line and headers may have at most 16 KiB and 1000 fields",
  ],
  ERR_HTTP_REQUEST_TIMEOUT: [
    "Request Timeout",
    "request_timeout",
    "the headers must arrive within 15 s and the whole request within 30 s",
  ],
};
