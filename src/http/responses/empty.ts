import { Type } from "@sinclair/typebox";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";

/** Returns the schema of a response without content. Send it with `send()`: `send(null)` would send JSON. */
export function noContent(description: string) {
  return Type.Unsafe<void>({ type: "null", description });
}

/**
 * Returns a handler that redirects to `path`, which is relative to the request's, keeping method, body and query
 * (RFC 9110 §15.4.9). The text is for people whose client does not follow it.
 */
export function redirectTo(path: string) {
  return async ({ url }: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const query = url.indexOf("?");
    reply
      .code(308)
      .header("location", query === -1 ? path : path + url.slice(query))
      .type("text/plain; charset=utf-8");
    return reply.send(`the path is ${path}; follow the redirect, as curl -L does\n`);
  };
}

/**
 * Removes the length from 304 responses to HEAD. Fastify's HEAD routes say 0, but it would have to be the length
 * of the 200 response (RFC 9110 §8.6). Call it before the routes.
 */
export function dropLengthOf304(app: FastifyInstance): void {
  app.addHook("onRoute", (route) => {
    if (route.method !== "HEAD") return;
    route.onSend = [
      ...[route.onSend ?? []].flat(),
      (_request, reply, payload, done) => {
        if (reply.statusCode === 304) reply.removeHeader("content-length");
        done(null, payload);
      },
    ];
  });
}
