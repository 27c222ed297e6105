import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { type Release, Shares } from "../../async/shares.ts";
import type { AccessKey } from "../../model/access-key.ts";
import { ServiceError } from "../../model/errors.ts";
import { countWindowMs, type KeyStore } from "../../stores/key-store.ts";
import { onClosed, untilClosed } from "../responses/turns.ts";
import type { RequestTurns } from "./request-turns.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The owner under whose name the request shares what is limited: its key; all links that a key has made; `""`: all others. */
    sharer: string;
  }
}

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
 * Limits how many requests are served at a time: of a key, and of all links that it has made, to half each of what the others leave of
 * `total`, the possible connections; of a single link, to its share of a quarter. A request holds its connection until it is served, as
 * long as its client likes. Further ones fail with ServiceError `too_many_requests`. Those that are served begin in `turns` of their owners. Other
 * requests without a key have no limit here: they are short, or the service has no keys.
 *
 * Call it after `requireAccess` and before the routes.
 *
 * @param makerOf Returns the hash of the key that made the link with this token, `null` if there were no keys; undefined: there is no such link.
 */
export function shareRequests(
  app: FastifyInstance,
  total: number,
  turns: Pick<RequestTurns, "add">,
  makerOf: (token: string) => string | null | undefined,
): void {
  const shares = new Shares(total, "half");
  const links = new Shares(Math.ceil(total / 4));
  app.decorateRequest("sharer", "");

  function takeLink(token: string, owner: string): Release | undefined {
    const release = shares.take(owner);
    const releaseLink = release && links.take(token);
    if (releaseLink === undefined) {
      release?.();
      return undefined;
    }
    return () => {
      releaseLink();
      release?.();
    };
  }

  app.addHook("onRequest", (request, { raw: response }, done) => {
    const { caller, params } = request;
    // Not the URL of a link: it may have any query, and other spellings.
    const { token = "" } = params as { token?: string };
    const maker = caller === null ? makerOf(token) : caller.hash;
    if (maker === undefined) return done();
    // No name of a key has a blank.
    const owner = caller === null ? `links of ${maker}` : caller.name;
    request.sharer = owner;
    const release = caller === null ? takeLink(token, owner) : shares.take(owner);
    if (release === undefined) {
      const rule = `${shares.taken} requests are being served, the limit is ${total}, of which a key, and the links of one, get half of what the others leave, and a link a quarter at most`;
      return done(new ServiceError("too_many_requests", rule, { retryAfterS: 1 }));
    }
    onClosed(response, release);
    return turns.add(owner, response, done);
  });
}

/**
 * How many changes of tasks one owner may have in the store at a time, if no other has any. Changes that wait for a slow disk share one
 * write: with a lower limit, those of a single owner would take much longer.
 */
const maxChanges = 64;

/** Runs the change of a task that a request asks for once its owner has a place; rejects if the client has left before. */
export type ChangeInTurn = <T>(
  request: Pick<FastifyRequest, "sharer">,
  reply: Pick<FastifyReply, "raw">,
  change: () => Promise<T>,
) => Promise<T>;

/**
 * Limits how many changes of tasks are in the store at a time; owners share the places. An owner may ask for thousands at once, each of a
 * long record: the changes of others, the heartbeats of runs and claims would wait for all of them.
 */
export function shareChanges(): ChangeInTurn {
  const shares = new Shares(maxChanges);
  return (request, reply, change) => shares.run(request.sharer, untilClosed(reply), change);
}
