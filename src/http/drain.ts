import type { FastifyInstance } from "fastify";
import { ServiceError } from "../errors.ts";

/**
 * Lets requests in flight finish when the app closes: new ones are refused with `unavailable`,
 * connections are closed as they fall idle, and after `drainMs` the rest is stopped and cut off.
 */
export function drainOnClose(app: FastifyInstance, drainMs: number, stop: () => void): void {
  let isClosing = false;
  let sweep: NodeJS.Timeout | undefined;
  let timer: NodeJS.Timeout | undefined;
  app.addHook("onRequest", (_request, reply, done) => {
    if (!isClosing) return done();
    reply.header("connection", "close");
    return done(new ServiceError("unavailable", "the service is shutting down"));
  });
  app.addHook("preClose", async () => {
    isClosing = true;
    sweep = setInterval(() => app.server.closeIdleConnections(), 50);
    timer = setTimeout(() => {
      stop();
      setImmediate(() => app.server.closeAllConnections());
    }, drainMs);
  });
  app.addHook("onClose", async () => {
    clearInterval(sweep);
    clearTimeout(timer);
  });
}
