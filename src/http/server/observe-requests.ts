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
  /** Until the response was sent; 0 if the client disconnected before. */
  seconds: number;
}

/**
 * Reports each request. The number of methods and routes is bounded, whatever clients send. Each route has a hook that
 * knows its name: looking it up takes longer than everything else here.
 */
export function observeRequests(app: FastifyInstance, observe: AppObserver["onRequest"]): void {
  app.addHook("onRoute", (options) => {
    const { url, schema, onResponse = [], onRequestAbort = [] } = options;
    const route = schema?.operationId === undefined ? other : url;
    options.onResponse = [
      (request, reply, done) => {
        const seconds = reply.elapsedTime / 1000;
        observe({ method: methodOf(request, route), route, status: reply.statusCode, seconds });
        done();
      },
      ...[onResponse].flat(),
    ];
    options.onRequestAbort = [
      (request, done) => {
        observe({ method: methodOf(request, route), route, status: "aborted", seconds: 0 });
        done();
      },
      ...[onRequestAbort].flat(),
    ];
  });
  app.addHook("onResponse", (request, reply, done) => {
    if (request.is404) {
      const seconds = reply.elapsedTime / 1000;
      observe({ method: other, route: other, status: reply.statusCode, seconds });
    }
    done();
  });
}

const other = "other";

function methodOf({ method }: FastifyRequest, route: string): string {
  if (route === other) return other;
  return method === "HEAD" ? "GET" : method;
}
