import { setTimeout as sleep } from "node:timers/promises";
import type { HostPauses } from "../net/host-pauses.ts";
import { urlForMessage } from "../net/http-url.ts";
import type { Resolver } from "./resolver.ts";

/** Longest wait for the end of a pause, as that of a request for a page. */
const maxPauseMs = 1_000;

/**
 * Returns a resolver that behaves as `resolver` does, but reads no page of a host that has asked for a pause: it waits for up to a
 * second. That holds for programs too whose requests cannot be seen, such as yt-dlp.
 */
export function pauseHosts<R extends Resolver>(resolver: R, pauses: HostPauses): R {
  return {
    ...resolver,
    async resolve(url: URL, context: Parameters<R["resolve"]>[1]) {
      await pauses.wait(url.host, {
        what: `the request for ${urlForMessage(url)}`,
        maxWaitMs: maxPauseMs,
        signal: context.signal,
      });
      return resolver.resolve(url, context);
    },
  };
}

/**
 * Returns a resolver that behaves as `resolver` does, but begins to read the pages of one host (`URL.host`) at least `delayMs`
 * after one another, in the order of the calls; closing it closes `resolver`. A call that is aborted while it waits keeps its turn.
 */
export function delayHosts<R extends Resolver>(resolver: R, delayMs: number): R {
  if (delayMs === 0) return resolver;
  /** When the next page of a host may be read, by `performance.now()`. */
  const turns = new Map<string, number>();

  function takeTurn(host: string): number {
    const nowMs = performance.now();
    for (const [other, endMs] of turns) if (endMs <= nowMs) turns.delete(other);
    const startMs = Math.max(nowMs, turns.get(host) ?? 0);
    turns.set(host, startMs + delayMs);
    return startMs - nowMs;
  }

  return {
    ...resolver,
    async resolve(url: URL, context: Parameters<R["resolve"]>[1]) {
      const { signal, onWaiting } = context;
      signal.throwIfAborted();
      const waitMs = takeTurn(url.host);
      if (waitMs > 0) {
        const turn = sleep(waitMs, undefined, { signal }).catch(() => signal.throwIfAborted());
        await Promise.all([turn, onWaiting?.(true)]);
        await onWaiting?.(false);
      }
      return resolver.resolve(url, context);
    },
  };
}
