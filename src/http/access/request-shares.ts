import type { FastifyInstance, FastifyRequest } from "fastify";
import { Shares } from "../../async/shares.ts";
import { ServiceError } from "../../model/errors.ts";
import { onClosed } from "../responses/turns.ts";

/**
 * Limits how many requests of a key, or of a link, are served at a time: to half of what the others leave of `total`, the connections that there
 * may be. A request takes a connection until it is served, which may last as long as its client likes. Further ones fail with ServiceError
 * `too_many_requests`. Other requests without a key have no limit here: they are those of a service without keys, or are short.
 *
 * Call it after `requireAccess` and before the routes.
 */
export function shareRequests(app: FastifyInstance, total: number): void {
  const shares = new Shares(total, { leavesHalf: true });
  // Not the URL of a link: it may have any query, and other spellings.
  const sharer = ({ caller, params }: FastifyRequest) => caller?.name ?? (params as { token?: string }).token;
  app.addHook("onRequest", (request, { raw: response }, done) => {
    const name = sharer(request);
    if (name === undefined) return done();
    const release = shares.take(name);
    if (release === undefined) {
      const rule = `${shares.taken} requests are being served, the limit is ${total}, of which a key or a link gets half of what the others leave`;
      return done(new ServiceError("too_many_requests", rule, { retryAfterS: 1 }));
    }
    onClosed(response, release);
    return done();
  });
}
