import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Shares } from "../../async/shares.ts";
import type { AccessKey } from "../../model/access-key.ts";
import { ServiceError } from "../../model/errors.ts";
import { countWindowMs, type KeyStore } from "../../stores/key-store.ts";
import { onClosed } from "../responses/turns.ts";

/**
 * Makes requests of a key fail with ServiceError `too_many_requests` once it has sent as many within a minute as its
 * `limits.rate` allows, through whichever process. Responses to such keys have `RateLimit` and `RateLimit-Policy`
 * (draft-ietf-httpapi-ratelimit-headers-10). While the store cannot count, every request passes.
 *
 * Call it after `requireAccess` and before the routes.
 */
export function limitRates(app: FastifyInstance, keys: KeyStore): void {
  /** Calls `done` with the error of a request that is one too many. */
  async function count({ name }: AccessKey, rate: number, reply: FastifyReply, done: Done): Promise<void> {
    const counted = await keys.countRequest(name).catch(() => undefined);
    if (counted === undefined) return done();
    const seconds = Math.ceil(counted.endsInMs / 1_000);
    reply.headers({
      "ratelimit-policy": `"key";q=${rate};w=${countWindowMs / 1_000}`,
      ratelimit: `"key";r=${Math.max(0, rate - counted.count)};t=${seconds}`,
    });
    if (counted.count <= rate) return done();
    const rule = `this key may send ${rate} requests per minute`;
    return done(new ServiceError("too_many_requests", rule, { retryAfterS: seconds }));
  }

  app.addHook("onRequest", ({ caller }, reply, done) => {
    const rate = caller?.limits.rate;
    // Without a promise for the requests that have no limit, which are most of them.
    if (caller === null || rate === undefined) done();
    else void count(caller, rate, reply, done);
  });
}

type Done = (error?: ServiceError) => void;

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
