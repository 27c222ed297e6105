import type { FastifyInstance, FastifyRequest } from "fastify";

/** What is observed of an app. */
export interface AppObserver {
  /** Called once for each request. */
  onRequest(request: SeenRequest): void;
  /** Called with the size of each piece of a task's file that is sent, bytes. */
  onFileBytes(bytes: number): void;
  /** As `onBlocked` of an address guard. */
  onBlocked(reason: string): void;
}

export interface SeenRequest {
  /** `GET` for HEAD too; `other` if `route` is. */
  method: string;
  /** The pattern of a documented route, as `/tasks/:id`; `other` for everything else. */
  route: string;
  /** `aborted` if the client disconnected before the response was sent. */
  status: number | "aborted";
  /** Until the response was sent, or the client disconnected. */
  seconds: number;
}

/** Reports each request. The number of methods and routes is bounded, whatever clients send. */
export function observeRequests(app: FastifyInstance, observe: AppObserver["onRequest"]): void {
  app.addHook("onResponse", (request, reply, done) => {
    const seconds = reply.elapsedTime / 1000;
    observe({ ...operationOf(request), status: reply.statusCode, seconds });
    done();
  });
  app.addHook("onRequestAbort", (request, done) => {
    observe({ ...operationOf(request), status: "aborted", seconds: 0 });
    done();
  });
}

const other = { method: "other", route: "other" };

function operationOf(request: FastifyRequest): Pick<SeenRequest, "method" | "route"> {
  const { url, schema } = request.routeOptions;
  if (url === undefined || schema?.operationId === undefined) return other;
  const { method } = request;
  return { method: method === "HEAD" ? "GET" : method, route: url };
}
