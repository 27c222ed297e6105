import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from "fastify";
import { ServiceError } from "../../model/errors.ts";

/** Longer texts, which no client needs, are disregarded: to parse one takes quadratic time. */
const maxLength = 2_000;

/**
 * Returns a hook for routes that respond with `mediaType`: it fails with ServiceError `not_acceptable` if
 * the client does not accept that (RFC 9110 §12.5.1, which lets a server disregard the field).
 */
export function requireAccept(mediaType: string) {
  return (request: FastifyRequest, _reply: FastifyReply, done: HookHandlerDoneFunction): void => {
    const { accept } = request.headers;
    if (accept === undefined || accept === "*/*" || accept === mediaType) return done();
    if (accept.length > maxLength) return done();
    // A range with this parameter matches, too.
    if (request.accepts().type([`${mediaType}; charset=utf-8`]) !== false) return done();
    const rule = `the response is ${mediaType}, which "Accept: ${accept.slice(0, 100)}" does not allow`;
    return done(new ServiceError("not_acceptable", rule));
  };
}

export const requireAcceptJson = requireAccept("application/json");
