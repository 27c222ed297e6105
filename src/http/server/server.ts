import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import type { FastifyBaseLogger } from "fastify";
import { ServiceError } from "../../model/errors.ts";
import { type ConnectionLimits, limitConnections } from "./connections.ts";
import { closeWithProblem } from "./last-response.ts";

/** Creates the server of an app: with limits that keep a slow or endless request from taking resources. */
export function createHttpServer(
  handler: RequestListener,
  limits: ConnectionLimits,
  log: FastifyBaseLogger | undefined,
): Server {
  const server = createServer(serverOptions, handler);
  limitConnections(server, limits, log);
  // Node would respond without a problem document; the app has its own rule.
  server.on("checkExpectation", (request, response) => server.emit("request", request, response));
  server.on("connect", ({ socket }: IncomingMessage) => {
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
