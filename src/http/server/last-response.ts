import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { ServiceError } from "../../model/errors.ts";
import { problemMediaType, problemOf } from "../responses/problem.ts";

/** How long a connection stays open for its client to read the last response, milliseconds. */
const lingerMs = 1_000;

/** Sends `error` as the last response of a connection, whatever was read of a request, and closes it. */
export function closeWithProblem(socket: Socket, error: ServiceError): void {
  const problem = problemOf(error);
  const body = JSON.stringify(problem);
  closeAfterLinger(socket);
  socket.end(
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\nConnection: close\r\n` +
      `Content-Type: ${problemMediaType}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n` +
      `X-Content-Type-Options: nosniff\r\n\r\n${body}`,
  );
}

/**
 * Ignores what else the client sends, and destroys the socket after a second, unless both sides have
 * closed it before. If it were destroyed at once, bytes that were not read would make the system reset the
 * connection, and the client could lose the last response (RFC 9112 §9.6).
 */
export function closeAfterLinger(socket: Socket): void {
  socket.removeAllListeners("data");
  // With a listener, Node stops passing the bytes to its HTTP parser.
  socket.on("data", () => {}).resume();
  socket.on("error", () => {});
  const timer = setTimeout(() => socket.destroy(), lingerMs).unref();
  socket.once("close", () => clearTimeout(timer));
}
