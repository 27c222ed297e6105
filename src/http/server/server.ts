import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from "node:http";
import { Socket } from "node:net";
import type { FastifyBaseLogger } from "fastify";
import { type ErrorCode, ServiceError } from "../../model/errors.ts";
import { resetConnection } from "../responses/file-streams.ts";
import { problemHeaders, problemOf } from "../responses/problem.ts";
import { type ConnectionLimits, limitConnections, pendingResponse } from "./connections.ts";
import { earlyCorsHeaders, type Origins } from "./origins.ts";

/** Creates the server of an app: with limits that keep a slow or endless request from taking resources. */
export function createHttpServer(
  handler: RequestListener,
  limits: ConnectionLimits,
  log: FastifyBaseLogger | undefined,
): Server {
  const serve = oneByOne(handler);
  const server = createServer(serverOptions, (request, response) => {
    limitChunks(request, () => server.emit("clientError", tooManyChunksError, request.socket));
    // Node ignores the field, but drops what came in one packet after this request: so its client learns that it has to ask again.
    if (request.headers.upgrade !== undefined) response.shouldKeepAlive = false;
    serve(request, response);
  });
  limitConnections(server, limits, log);
  // Node would respond without a problem document; the app has its own rule.
  server.on("checkExpectation", (request, response) => server.emit("request", request, response));
  server.on("connect", ({ socket }) => {
    const rule = "the method CONNECT is for proxies, which this service is not";
    closeWithProblem(socket, new ServiceError("invalid_request", rule));
  });
  return server;
}

const serverOptions = {
  // What a connection buffers of a response while its client does not read; Node's default is 64 KiB.
  highWaterMark: 16 * 1024,
  headersTimeout: 15_000,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 1_000,
  keepAliveTimeout: 72_000,
  maxHeaderSize: 16 * 1024,
  // The app checks the header itself, and responds with a problem document.
  requireHostHeader: false,
};

/**
 * Returns the handler of bytes that are not an HTTP request (RFC 9112 §2.2), and of requests that take too
 * long: it responds with a problem document and closes the connection within about a second. If the
 * response to an earlier request of the connection is pending, only that one is sent, within that second.
 * Pages of `origins` may read the problem.
 */
export function createClientErrorHandler(origins: Origins) {
  // What is wrong with a connection is reported again when its client closes it.
  const closing = new WeakSet<Socket>();

  return (error: ClientError, socket: Socket): void => {
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
      const origin = pending?.req.headers.origin ?? originIn(error.rawPacket, code);
      const own = earlyCorsHeaders(origins, origin);
      closeWithProblem(socket, new ServiceError(code, detail, { cause: error }), own, pending?.req.method);
    }
  };
}

/** `rawPacket`: the bytes that were received last. */
type ClientError = NodeJS.ErrnoException & { rawPacket?: unknown };

/**
 * Returns the `Origin` of a request that could not be parsed, if it is in these bytes. Whatever else they are, no page gains by it: a browser
 * compares what the response says with the page's own origin. `null` of a header that is too large: it may have come before.
 */
function originIn(bytes: unknown, code: ErrorCode): string | null | undefined {
  const found = Buffer.isBuffer(bytes) ? /\r\norigin:([^\r\n]*)/i.exec(bytes.toString("latin1")) : null;
  return found?.[1]?.trim() ?? (code === "headers_too_large" ? null : undefined);
}

/** Chunks that the body of a request may have: one can be as short as a byte, and takes the process 10 µs. */
const maxChunks = 4_096;

type Refusal = readonly [code: ErrorCode, detail: string];

const notHttp: Refusal = ["invalid_request", "the bytes received are not an HTTP/1.1 request"];

const tooManyChunksError = Object.assign(new Error("too many chunks"), { code: "TOO_MANY_CHUNKS" });

const clientErrors: Readonly<Record<string, Refusal>> = {
  HPE_INVALID_METHOD: ["invalid_request", "the request method is unknown"],
  HPE_HEADER_OVERFLOW: [
    "headers_too_large",
    "request line, headers and trailers may have at most 16 KiB and 1000 fields",
  ],
  [tooManyChunksError.code]: ["payload_too_large", `the body comes in over ${maxChunks} chunks`],
  HPE_INVALID_EOF_STATE: ["invalid_request", "the connection was closed within the request"],
  ERR_HTTP_REQUEST_TIMEOUT: [
    "request_timeout",
    "the headers must arrive within 15 s and the whole request within 30 s",
  ],
};

/** How long a connection stays open for its client to read the last response, milliseconds. */
const lingerMs = 1_000;

/**
 * Sends `error`, with these header fields, as the last response of a connection, whatever was read of a request, and closes it. To HEAD it has
 * no content (RFC 9110 §9.3.2).
 */
function closeWithProblem(socket: Socket, error: ServiceError, own: Record<string, string> = {}, method = "GET"): void {
  const problem = problemOf(error);
  const body = JSON.stringify(problem);
  const fields = {
    connection: "close",
    date: new Date().toUTCString(),
    "content-length": Buffer.byteLength(body),
    ...problemHeaders(error),
    ...own,
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  closeAfterLinger(socket);
  const head = `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}\r\n${lines.join("")}\r\n`;
  socket.end(method === "HEAD" ? head : head + body);
}

/**
 * Ends a response that cannot be sent: with `error`, as above, which pages of `origins` may read, if it has not begun; else its connection is
 * reset, as the mere end could be taken for that of the response. The log says the error.
 */
export function endResponse(response: ServerResponse, error: ServiceError, origins: Origins): void {
  const { socket, headersSent, req } = response;
  if (headersSent) resetConnection(response);
  else if (socket instanceof Socket) {
    closeWithProblem(socket, error, earlyCorsHeaders(origins, req.headers.origin), req.method);
  }
  response.destroy(error);
}

/**
 * Ignores what else the client sends, and destroys the socket after a second, unless both sides have
 * closed it before. If it were destroyed at once, bytes that were not read would make the system reset the
 * connection, and the client could lose the last response (RFC 9112 §9.6).
 */
function closeAfterLinger(socket: Socket): void {
  socket.removeAllListeners("data");
  // With a listener, Node stops passing the bytes to its HTTP parser.
  socket.on("data", () => {}).resume();
  socket.on("error", () => {});
  const timer = setTimeout(() => socket.destroy(), lingerMs).unref();
  socket.once("close", () => clearTimeout(timer));
}

/** Calls `refuse` once if the body of `request` comes in more than `maxChunks` chunks (RFC 9112 §7.1), whether or not it is read. */
function limitChunks(request: IncomingMessage, refuse: () => void): void {
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

/** Requests of one connection that may wait for the response to the one before. */
const maxWaiting = 16;

type Exchange = [request: IncomingMessage, response: ServerResponse];

/**
 * Returns a listener that serves the requests of a connection one after the other, also if its client sends further ones before it has the
 * response (pipelining, RFC 9112 §9.3.2). Node would start all of them at once: two thousand fit into what it reads at a time. A connection
 * on which more than 16 wait is closed.
 */
function oneByOne(serve: RequestListener): RequestListener {
  const waiting = new WeakMap<Socket, Exchange[]>();

  function serveNext(exchanges: Exchange[]): void {
    const [next] = exchanges.splice(0, 1);
    if (next === undefined) return;
    const [request, response] = next;
    // The last response has said that the connection closes (RFC 9112 §9.6).
    if (!request.socket.writable) return;
    if (exchanges.length > 0) response.once("close", () => serveNext(exchanges));
    serve(request, response);
  }

  return (request, response) => {
    const { socket } = request;
    const pending = pendingResponse(socket);
    // Most clients wait for each response.
    if (pending === response) return serve(request, response);
    if (pending === undefined || socket.destroyed) return;
    const exchanges = waiting.get(socket) ?? [];
    if (exchanges.length === maxWaiting) return void socket.destroy();
    if (exchanges.length === 0) pending.once("close", () => serveNext(exchanges));
    exchanges.push([request, response]);
    waiting.set(socket, exchanges);
  };
}
