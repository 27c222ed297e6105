import rateLimit, { type FastifyRateLimitStore } from "@fastify/rate-limit";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { asError, ServiceError } from "../../model/errors.ts";
import { countWindowMs, type KeyStore } from "../../stores/key-store.ts";
import { Shares } from "../../async/shares.ts";
import { onClosed } from "../responses/turns.ts";

/**
 * Makes requests of a key fail with ServiceError `too_many_requests` once it has sent as many within a minute as its
 * `limits.rate` allows, through whichever process. Responses to such keys have `RateLimit` and `RateLimit-Policy`
 * (draft-ietf-httpapi-ratelimit-headers-10). While the store cannot count, every request passes.
 *
 * Call it after `requireAccess` and before the routes.
 */
export async function limitRates(app: FastifyInstance, keys: KeyStore): Promise<void> {
  async function count(name: string, done: Done): Promise<void> {
    try {
      const { count: current, endsInMs } = await keys.countRequest(name);
      done(null, { current, ttl: endsInMs });
    } catch (error) {
      done(asError(error));
    }
  }

  /** The shape that the plug-in wants. */
  class CountInStore implements FastifyRateLimitStore {
    incr(name: string, callback: Done): void {
      void count(name, callback);
    }
    child(): FastifyRateLimitStore {
      return this;
    }
  }

  await app.register(rateLimit, { global: false, store: CountInStore, skipOnError: true });
  const check = app.createRateLimit({
    timeWindow: countWindowMs,
    keyGenerator: ({ caller }) => caller?.name ?? "",
    max: rateOf,
  });

  /** Returns the error of a request that is one too many. */
  async function refusalOf(request: FastifyRequest, reply: FastifyReply): Promise<Error | undefined> {
    const result = await check(request);
    if (result.isAllowed) return undefined;
    const { max, remaining, ttlInSeconds } = result;
    reply.headers({
      "ratelimit-policy": `"key";q=${max};w=${countWindowMs / 1_000}`,
      ratelimit: `"key";r=${remaining};t=${ttlInSeconds}`,
    });
    if (!result.isExceeded) return undefined;
    const rule = `this key may send ${max} requests per minute`;
    return new ServiceError("too_many_requests", rule, { retryAfterS: ttlInSeconds });
  }

  async function limit(request: FastifyRequest, reply: FastifyReply, next: Next): Promise<void> {
    next(await refusalOf(request, reply).catch(asError));
  }

  // Without a promise for the requests that have no limit, which are most of them.
  app.addHook("onRequest", (request, reply, done) => {
    if (rateOf(request) === Infinity) done();
    else void limit(request, reply, done);
  });
}

type Next = (error?: Error) => void;
type Done = Parameters<FastifyRateLimitStore["incr"]>[1];

function rateOf({ caller }: FastifyRequest): number {
  return caller?.limits.rate ?? Infinity;
}

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
