import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { FastifyInstance } from "fastify";
import { shutdownError } from "../../model/errors.ts";
import { problemHeaders, problemOf } from "../responses/problem.ts";
import { pendingResponse } from "./connections.ts";
import { earlyCorsHeaders, type Origins } from "./origins.ts";
import { endResponse } from "./server.ts";

/** Once `drainSignal` is aborted, each response closes its connection. */
export function closeConnectionsOnDrain(app: FastifyInstance, drainSignal: AbortSignal | undefined): void {
  app.addHook("onRequest", (_request, { raw }, done) => {
    if (drainSignal?.aborted) raw.setHeader("connection", "close");
    done();
  });
}

/**
 * Lets requests in flight finish when the app closes: new ones are refused with `unavailable`, and
 * connections are closed when they become idle. After `finishMs` calls `stop`, refuses what has no response yet, and closes the rest; those
 * whose response has begun are reset, as their mere end could be taken for that of the response. Pages of `origins` may read refusals.
 */
export function drainOnClose(app: FastifyInstance, finishMs: number, stop: () => void, origins: Origins): void {
  let idleCheck: NodeJS.Timeout | undefined;
  let timer: NodeJS.Timeout | undefined;
  const sockets = new Set<Socket>();
  app.server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  function closeAll(): void {
    for (const socket of sockets) {
      const response = pendingResponse(socket);
      if (response !== undefined) endResponse(response, shutdownError(), origins);
    }
    app.server.closeAllConnections();
  }
  app.addHook("preClose", async () => {
    app.server.removeAllListeners("request");
    app.server.on("request", (request: IncomingMessage, response: ServerResponse) =>
      refuse(request, response, origins),
    );
    idleCheck = setInterval(() => app.server.closeIdleConnections(), 50);
    timer = setTimeout(() => {
      stop();
      setImmediate(closeAll);
    }, finishMs);
  });
  app.addHook("onClose", async () => {
    clearInterval(idleCheck);
    clearTimeout(timer);
  });
}

function refuse({ headers }: IncomingMessage, response: ServerResponse, origins: Origins): void {
  const error = shutdownError();
  const problem = problemOf(error);
  const fields = { ...problemHeaders(error), ...earlyCorsHeaders(origins, headers.origin), connection: "close" };
  response.writeHead(problem.status, fields).end(JSON.stringify(problem));
}
