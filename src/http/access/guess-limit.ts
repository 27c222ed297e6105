import { LRUCache } from "lru-cache";
import { ServiceError } from "../../model/errors.ts";

/** Wrong keys of one client that are answered within a minute. */
const maxWrong = 20;
const windowMs = 60_000;

/** Bounds the memory: the clients that sent the last wrong keys. */
const maxClients = 10_000;

interface Guesses {
  wrong: number;
  endsMs: number;
}

/**
 * Returns a function that counts a wrong key of a client, undefined: one on this machine, to slow those who guess keys. It throws
 * ServiceError `too_many_requests` if the client has sent too many.
 *
 * @param nowMs A steady clock.
 */
export function createGuessLimit(nowMs = () => performance.now()) {
  const guesses = new LRUCache<string, Guesses>({ max: maxClients });

  return (client = "this machine"): void => {
    const now = nowMs();
    const found = guesses.get(client);
    const { wrong, endsMs } = found !== undefined && found.endsMs > now ? found : { wrong: 0, endsMs: now + windowMs };
    if (wrong >= maxWrong) throw tooManyError(endsMs - now);
    guesses.set(client, { wrong: wrong + 1, endsMs });
  };
}

function tooManyError(waitMs: number): ServiceError {
  const rule = `this address has sent ${maxWrong} wrong keys within a minute`;
  return new ServiceError("too_many_requests", rule, { retryAfterS: waitMs / 1_000 });
}
