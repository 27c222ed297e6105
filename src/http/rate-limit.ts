import rateLimit, { type FastifyRateLimitStore } from "@fastify/rate-limit";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { ServiceError } from "../errors.ts";
import type { KeyStore } from "../stores/key-store.ts";
import { countWindowMs } from "../stores/request-counter.ts";

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
      done(error instanceof Error ? error : new Error(String(error)));
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
    allowList: (request) => rateOf(request) === Infinity,
  });
  app.addHook("onRequest", async (request, reply) => {
    const result = await check(request);
    if (result.isAllowed) return;
    const { max, remaining, ttlInSeconds } = result;
    reply.headers({
      "ratelimit-policy": `"key";q=${max};w=${countWindowMs / 1_000}`,
      ratelimit: `"key";r=${remaining};t=${ttlInSeconds}`,
    });
    if (!result.isExceeded) return;
    const rule = `this key may send ${max} requests per minute`;
    throw new ServiceError("too_many_requests", rule, { retryAfterS: ttlInSeconds });
  });
}

type Done = Parameters<FastifyRateLimitStore["incr"]>[1];

function rateOf({ caller }: FastifyRequest): number {
  return caller?.limits.rate ?? Infinity;
}
