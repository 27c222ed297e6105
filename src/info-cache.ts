import { LRUCache } from "lru-cache";
import type { Static, TObject } from "@sinclair/typebox";
import { ServiceError } from "./errors.ts";
import type { Resolver } from "./resolvers/resolver.ts";

export interface InfoCache {
  /**
   * What is on the page, from memory where it was read less than `ttlS` ago. Calls for one address
   * that overlap share one reading, which stops when the last of them is aborted.
   *
   * @throws ServiceError `too_many_requests` while `concurrency` other pages are being read,
   * `upstream_timeout` after `timeoutMs`, `unavailable` once `stop` was called, and what the resolver
   * throws. Failures are not remembered. `signal.reason` when `signal` is aborted.
   */
  get(url: URL, options: InfoQuery): Promise<CachedInfo>;
  /** Ends the readings that are under way and refuses new ones; safe to call twice. */
  stop(): void;
}

export interface InfoQuery {
  signal: AbortSignal;
  /** What was read longer ago is read again, seconds; 0: nothing from memory will do. */
  maxAgeS: number;
}

export interface CachedInfo {
  info: Info;
  /** Whole seconds since it was read. */
  ageS: number;
}

export interface InfoCacheOptions {
  resolver: Resolver;
  ttlS: number;
  timeoutMs: number;
  /** Pages read at a time. */
  concurrency: number;
  /** Memory for remembered answers, in characters of JSON; default 64 Mi. */
  maxSize?: number;
}

/** Matches the resolver's `output`. */
type Info = Static<TObject>;

interface InFlightRead {
  promise: Promise<Info>;
  abort: AbortController;
  waiting: number;
}

export function createInfoCache(options: InfoCacheOptions): InfoCache {
  const { resolver, ttlS, timeoutMs, concurrency, maxSize = 64 * 1024 * 1024 } = options;
  const remembered = new LRUCache<string, { info: Info; readAt: number }>({
    maxSize,
    maxEntrySize: maxSize,
  });
  const readings = new Map<string, InFlightRead>();
  let stopped = false;

  function start(url: URL): InFlightRead {
    if (stopped) throw new ServiceError("unavailable", "the service is shutting down");
    if (readings.size >= concurrency) {
      throw new ServiceError(
        "too_many_requests",
        `${readings.size} pages are being read, the limit is ${concurrency}`,
        { retryAfterS: 1 },
      );
    }
    const abort = new AbortController();
    const readAt = performance.now();
    const promise = withDeadline(abort, timeoutMs, url, () =>
      resolver.resolve(url, { signal: abort.signal }),
    ).then(
      (info) => {
        finish(url.href, reading);
        if (ttlS > 0) {
          const size = JSON.stringify(info).length;
          remembered.set(url.href, { info, readAt }, { size });
        }
        return info;
      },
      (error: unknown) => {
        finish(url.href, reading);
        throw error;
      },
    );
    const reading: InFlightRead = { promise, abort, waiting: 0 };
    readings.set(url.href, reading);
    return reading;
  }

  function finish(key: string, reading: InFlightRead): void {
    if (readings.get(key) === reading) readings.delete(key);
  }

  function leave(key: string, reading: InFlightRead, reason: unknown): void {
    reading.waiting -= 1;
    if (reading.waiting > 0 || readings.get(key) !== reading) return;
    readings.delete(key);
    reading.abort.abort(reason);
  }

  return {
    async get(url, query) {
      const hit = remembered.get(url.href);
      const ageS = hit && (performance.now() - hit.readAt) / 1000;
      if (hit && ageS !== undefined && ageS < Math.min(ttlS, query.maxAgeS)) {
        return { info: hit.info, ageS: Math.floor(ageS) };
      }
      const { signal } = query;
      signal.throwIfAborted();
      const reading = readings.get(url.href) ?? start(url);
      reading.waiting += 1;
      const gone = Promise.withResolvers<never>();
      const onAbort = () => gone.reject(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
      try {
        return { info: await Promise.race([reading.promise, gone.promise]), ageS: 0 };
      } finally {
        signal.removeEventListener("abort", onAbort);
        leave(url.href, reading, signal.reason);
      }
    },
    stop() {
      stopped = true;
      for (const { abort } of readings.values()) {
        abort.abort(new ServiceError("unavailable", "the service is shutting down"));
      }
    },
  };
}

/** Runs `work` and aborts it with `upstream_timeout` when `timeoutMs` have passed. */
async function withDeadline<T>(
  abort: AbortController,
  timeoutMs: number,
  url: URL,
  work: () => Promise<T>,
): Promise<T> {
  const timer = setTimeout(() => {
    abort.abort(
      new ServiceError(
        "upstream_timeout",
        `reading the page at ${url.host} took longer than ${timeoutMs} ms`,
      ),
    );
  }, timeoutMs);
  try {
    return await work();
  } finally {
    clearTimeout(timer);
  }
}
