import type { FastifyReply, FastifyRequest } from "fastify";

/** A handler that sends clients to `path` with method, body and query kept (RFC 9110 §15.4.9). */
export function redirectTo(path: string) {
  return async ({ url }: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const query = url.indexOf("?");
    return reply.redirect(query === -1 ? path : path + url.slice(query), 308);
  };
}
