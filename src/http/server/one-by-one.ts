import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { pendingResponse } from "./connections.ts";

/** Requests of one connection that may wait for the response to the one before. */
const maxWaiting = 16;

type Exchange = [request: IncomingMessage, response: ServerResponse];

/**
 * Returns a listener that serves the requests of a connection one after the other, also if its client sends further ones before it has the
 * response (pipelining, RFC 9112 §9.3.2). Node would start all of them at once: two thousand fit into what it reads at a time. A connection
 * on which more than 16 wait is closed.
 */
export function oneByOne(serve: RequestListener): RequestListener {
  const waiting = new WeakMap<Socket, Exchange[]>();

  function serveNext(exchanges: Exchange[]): void {
    const [next] = exchanges.splice(0, 1);
    if (next === undefined) return;
    const [request, response] = next;
    response.once("close", () => serveNext(exchanges));
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
