import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from "fastify";
import { ServiceError } from "../errors.ts";

/**
 * A hook of routes that answer with `mediaType`: refuses a client that does not accept it (RFC 9110
 * §12.5.1).
 *
 * Fails with ServiceError `not_acceptable`.
 */
export function requireAccept(mediaType: string) {
  return (request: FastifyRequest, _reply: FastifyReply, done: HookHandlerDoneFunction): void => {
    const { accept } = request.headers;
    if (accept === undefined || accept === "*/*" || accept === mediaType) return done();
    if (request.accepts().type([mediaType]) !== false) return done();
    const rule = `the answer is ${mediaType}, which "Accept: ${accept.slice(0, 100)}" does not allow`;
    return done(new ServiceError("not_acceptable", rule));
  };
}

export const requireAcceptJson = requireAccept("application/json");
