import { Type } from "@sinclair/typebox";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";

/** Returns the schema of a response without content. Send it with `send()`: `send(null)` would send JSON. */
export function noContent(description: string) {
  return Type.Unsafe<void>({ type: "null", description });
}

/**
 * Redirects to the same path with a slash at its end, or without it, keeping method, body and query (RFC 9110 §15.4.9). The text is for
 * people whose client does not follow it.
 */
export async function redirectOverSlash({ url }: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const [asked = ""] = url.split("?", 1);
  const bare = asked.endsWith("/") ? asked.slice(0, -1) : asked;
  const name = bare.slice(bare.lastIndexOf("/") + 1);
  const path = bare === asked ? `${name}/` : `../${name}`;
  reply
    .code(308)
    .header("location", path + url.slice(asked.length))
    .type("text/plain; charset=utf-8");
  return reply.send(`the path is ${path}; follow the redirect, as curl -L does\n`);
}

/**
 * Corrects the length in responses to HEAD: Fastify's HEAD routes say 0 if nothing is sent. It is as the handler has stated, which is that of the
 * 200 response to GET, and absent if that is unknown, and from a 304 (RFC 9110 §8.6). Call it before the routes.
 */
export function correctLengthOfHead(app: FastifyInstance): void {
  /** Of responses for which nothing is sent. */
  const stated = new WeakMap<FastifyReply, ReturnType<FastifyReply["getHeader"]>>();
  app.addHook("onRoute", (route) => {
    if (route.method !== "HEAD") return;
    route.onSend = [
      (_request, reply, payload, done) => {
        if (payload === undefined) stated.set(reply, reply.getHeader("content-length"));
        done(null, payload);
      },
      ...[route.onSend ?? []].flat(),
      (_request, reply, payload, done) => {
        const length = stated.get(reply);
        if (length !== undefined && reply.statusCode !== 304) reply.header("content-length", length);
        else if (stated.has(reply)) reply.removeHeader("content-length");
        done(null, payload);
      },
    ];
  });
}
