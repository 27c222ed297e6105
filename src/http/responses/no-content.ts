import { Type } from "@sinclair/typebox";
import type { FastifyInstance } from "fastify";

/** Returns the schema of a response without content. Send it with `send()`: `send(null)` would send JSON. */
export function noContent(description: string) {
  return Type.Unsafe<void>({ type: "null", description });
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
