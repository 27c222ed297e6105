import { Shares } from "../async/shares.ts";
import type { HostPauses } from "../net/host-pauses.ts";
import { urlForMessage } from "../net/http-url.ts";
import type { Resolver } from "./resolver.ts";

type ResolveOutcome = "succeeded" | "failed" | "aborted";

/** Called after each call of a resolver; `name` is the resolver's. */
export type ResolverObserver = (name: string, outcome: ResolveOutcome, seconds: number) => void;

/** Returns a resolver that behaves as `resolver` does and reports its calls; closing it closes `resolver`. */
export function measureResolver<R extends Resolver>(resolver: R, observe: ResolverObserver | undefined): R {
  if (observe === undefined) return resolver;
  return {
    ...resolver,
    async resolve(url: URL, context: Parameters<R["resolve"]>[1]) {
      const startMs = performance.now();
      const report = (outcome: ResolveOutcome) => observe(resolver.name, outcome, (performance.now() - startMs) / 1000);
      try {
        const info = await resolver.resolve(url, context);
        report("succeeded");
        return info;
      } catch (error) {
        report(context.signal.aborted ? "aborted" : "failed");
        throw error;
      }
    },
  };
}

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
 * after one another; closing it closes `resolver`. Owners take turns, each one's calls in their order. A call that is aborted while it waits
 * leaves no gap.
 */
export function delayHosts<R extends Resolver>(resolver: R, delayMs: number): R {
  if (delayMs === 0) return resolver;
  /** Of the hosts of which a page was begun to be read less than `delayMs` ago. */
  const turns = new Map<string, Shares>();

  /** Resolves once it is the turn of `owner`, which lasts for the delay. */
  async function waitForTurn(host: string, shares: Shares, owner: string, signal: AbortSignal): Promise<void> {
    const release = await shares.wait(owner, signal);
    const end = () => {
      release();
      if (shares.taken === 0) turns.delete(host);
    };
    setTimeout(end, delayMs).unref();
  }

  return {
    ...resolver,
    async resolve(url: URL, context: Parameters<R["resolve"]>[1]) {
      const { signal, owner = "", onWaiting } = context;
      signal.throwIfAborted();
      const shares = turns.getOrInsertComputed(url.host, () => new Shares(1, "firm"));
      const isWaiting = shares.free(owner) === 0;
      await Promise.all([waitForTurn(url.host, shares, owner, signal), isWaiting && onWaiting?.(true)]);
      if (isWaiting) await onWaiting?.(false);
      return resolver.resolve(url, context);
    },
  };
}
