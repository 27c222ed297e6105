import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyInstance } from "fastify";
import { shutdownError } from "../../model/errors.ts";
import { everyResponse } from "../responses/every-response.ts";
import { problemMediaType, problemOf, unavailableRetryAfterS } from "../responses/problem.ts";

/** Once `drainSignal` is aborted, each response closes its connection. */
export function closeConnectionsOnDrain(app: FastifyInstance, drainSignal: AbortSignal | undefined): void {
  app.addHook("onRequest", (_request, { raw }, done) => {
    if (drainSignal?.aborted) raw.setHeader("connection", "close");
    done();
  });
}

/**
 * Lets requests in flight finish when the app closes: new ones are refused with `unavailable`, and
 * connections are closed when they become idle. After `finishMs` calls `stop`, then closes the rest.
 */
export function drainOnClose(app: FastifyInstance, finishMs: number, stop: () => void): void {
  let idleCheck: NodeJS.Timeout | undefined;
  let timer: NodeJS.Timeout | undefined;
  app.addHook("preClose", async () => {
    app.server.removeAllListeners("request");
    app.server.on("request", refuse);
    idleCheck = setInterval(() => app.server.closeIdleConnections(), 50);
    timer = setTimeout(() => {
      stop();
      setImmediate(() => app.server.closeAllConnections());
    }, finishMs);
  });
  app.addHook("onClose", async () => {
    clearInterval(idleCheck);
    clearTimeout(timer);
  });
}

function refuse(_request: IncomingMessage, response: ServerResponse): void {
  const problem = problemOf(shutdownError());
  response
    .writeHead(problem.status, {
      ...everyResponse,
      connection: "close",
      "content-type": problemMediaType,
      "retry-after": `${unavailableRetryAfterS}`,
    })
    .end(JSON.stringify(problem));
}
