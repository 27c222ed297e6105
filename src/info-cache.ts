import { LRUCache } from "lru-cache";
import type { Static, TObject } from "@sinclair/typebox";
import { ServiceError, shutdownError } from "./errors.ts";
import { untilAborted } from "./net/deadline.ts";
import type { Resolver } from "./resolvers/resolver.ts";

export interface InfoCache {
  /**
   * Returns what is on the page, from the cache if it was read less than `ttlS` and `maxAgeS` ago.
   * Concurrent calls for one URL share one read (single flight), which is aborted with the last of them.
   *
   * @throws ServiceError `too_many_requests` while `concurrency` other pages are being read,
   * `upstream_timeout` after `timeoutMs`, `unavailable` once `stop` was called, and what the resolver
   * throws; errors are not cached. `signal.reason` when `signal` is aborted.
   */
  get(url: URL, options: InfoQuery): Promise<CachedInfo>;
  /** Aborts the reads in flight and refuses new ones; safe to call twice. */
  stop(): void;
}

export interface InfoQuery {
  signal: AbortSignal;
  /** Oldest cached result to return, seconds; 0: always read the page. */
  maxAgeS: number;
}

export interface CachedInfo {
  info: Info;
  /** Whole seconds since the page was read. */
  ageS: number;
}

export interface InfoCacheOptions {
  resolver: Resolver;
  ttlS: number;
  timeoutMs: number;
  /** Pages that are read at a time. */
  concurrency: number;
}

/** Size of all cached results, in characters of JSON. */
const maxSize = 64 * 1024 * 1024;

/** Matches the resolver's `output`. */
type Info = Static<TObject>;

interface InFlightRead {
  promise: Promise<Info>;
  abort: AbortController;
  waiting: number;
}

export function createInfoCache(options: InfoCacheOptions): InfoCache {
  const { resolver, ttlS, timeoutMs, concurrency } = options;
  const cache = new LRUCache<string, { info: Info; readAt: number }>({
    maxSize,
    maxEntrySize: maxSize,
  });
  const inFlight = new Map<string, InFlightRead>();
  let isStopped = false;

  async function readPage(url: URL, abort: AbortController): Promise<Info> {
    const readAt = performance.now();
    const timer = setTimeout(() => abort.abort(timeoutError(url, timeoutMs)), timeoutMs);
    try {
      const deadlineMs = readAt + timeoutMs;
      const info = await resolver.resolve(url, { signal: abort.signal, deadlineMs });
      if (ttlS > 0) cache.set(url.href, { info, readAt }, { size: JSON.stringify(info).length });
      return info;
    } finally {
      clearTimeout(timer);
    }
  }

  function start(url: URL): InFlightRead {
    if (isStopped) throw shutdownError();
    if (inFlight.size >= concurrency) {
      throw new ServiceError(
        "too_many_requests",
        `${inFlight.size} pages are being read, the limit is ${concurrency}`,
        { retryAfterS: 1 },
      );
    }
    const abort = new AbortController();
    const promise = readPage(url, abort).finally(() => remove(url.href, read));
    const read: InFlightRead = { promise, abort, waiting: 0 };
    inFlight.set(url.href, read);
    return read;
  }

  /** Returns whether `read` was still in flight. */
  function remove(key: string, read: InFlightRead): boolean {
    return inFlight.get(key) === read && inFlight.delete(key);
  }

  function leave(key: string, read: InFlightRead, reason: unknown): void {
    read.waiting -= 1;
    if (read.waiting === 0 && remove(key, read)) read.abort.abort(reason);
  }

  return {
    async get(url, query) {
      const hit = cache.get(url.href);
      const ageS = hit && (performance.now() - hit.readAt) / 1000;
      if (hit && ageS !== undefined && ageS < Math.min(ttlS, query.maxAgeS)) {
        return { info: hit.info, ageS: Math.floor(ageS) };
      }
      const { signal } = query;
      signal.throwIfAborted();
      const read = inFlight.get(url.href) ?? start(url);
      read.waiting += 1;
      try {
        return { info: await untilAborted(read.promise, signal), ageS: 0 };
      } finally {
        leave(url.href, read, signal.reason);
      }
    },
    stop() {
      isStopped = true;
      for (const { abort } of inFlight.values()) abort.abort(shutdownError());
    },
  };
}

function timeoutError(url: URL, timeoutMs: number): ServiceError {
  const message = `reading the page at ${url.host} took longer than ${timeoutMs} ms`;
  return new ServiceError("upstream_timeout", message);
}
