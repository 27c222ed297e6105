import { LRUCache } from "lru-cache";
import type { AccessKey } from "../../model/access-key.ts";
import { ServiceError } from "../../model/errors.ts";

/** Slows those who guess keys. */
export interface GuessLimit {
  /**
   * Counts what a client has sent, and returns `key`, what was found for it.
   *
   * @param client undefined: a reverse proxy on this machine, with the requests of all its clients. Their right keys
   * always pass.
   * @throws ServiceError `too_many_requests` if the client has sent too many wrong keys, whether or not this one is
   * right: only keys that the same client has used before still pass.
   */
  check(client: string | undefined, key: AccessKey | undefined): AccessKey | undefined;
}

/** Wrong keys of one client that are answered within a minute. */
const maxWrong = 20;
const windowMs = 60_000;

/** Bounds the memory: the clients, and the pairs of client and key, that were seen last. */
const maxEntries = 10_000;

interface Guesses {
  wrong: number;
  endsMs: number;
}

/** @param nowMs A steady clock. */
export function createGuessLimit(nowMs = () => performance.now()): GuessLimit {
  const guesses = new LRUCache<string, Guesses>({ max: maxEntries });
  const used = new LRUCache<string, true>({ max: maxEntries });

  function current(client: string): Guesses {
    const now = nowMs();
    const found = guesses.get(client);
    return found !== undefined && found.endsMs > now ? found : { wrong: 0, endsMs: now + windowMs };
  }

  return {
    check(address, key) {
      if (address === undefined && key !== undefined) return key;
      const client = address ?? "this machine";
      const pair = key && `${client} ${key.hash}`;
      if (pair !== undefined && used.get(pair)) return key;
      const { wrong, endsMs } = current(client);
      if (wrong >= maxWrong) throw tooManyError(endsMs - nowMs());
      if (pair !== undefined) used.set(pair, true);
      else guesses.set(client, { wrong: wrong + 1, endsMs });
      return key;
    },
  };
}

function tooManyError(waitMs: number): ServiceError {
  const rule = `this address has sent ${maxWrong} wrong keys within a minute`;
  return new ServiceError("too_many_requests", rule, { retryAfterS: waitMs / 1_000 });
}
