import type { FastifyReply, FastifyRequest } from "fastify";

/** Returns a handler that redirects to `path`, keeping method, body and query (RFC 9110 §15.4.9). */
export function redirectTo(path: string) {
  return async ({ url }: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const query = url.indexOf("?");
    return reply.redirect(query === -1 ? path : path + url.slice(query), 308);
  };
}
