import type { Static, TObject } from "@sinclair/typebox";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { boundInfo, maxInfoBytes } from "../model/bounded-info.ts";
import { PageInfo } from "../model/page-info.ts";
import { withNativeKinds } from "../model/schema.ts";
import { ServiceError, shutdownError } from "../model/errors.ts";
import { urlForMessage } from "../net/http-url.ts";
import type { Resolver } from "./resolver.ts";
import { SharedCache } from "../async/shared-cache.ts";
import { Shares } from "../async/shares.ts";
import { memoryBytes } from "../system/memory.ts";
import { createSingleFlight } from "../async/single-flight.ts";

export interface InfoCache {
  /**
   * Returns what is on the page, as `boundInfo` thins it, from the cache if it was read less than `ttlS` and `maxAgeS` ago.
   * Concurrent calls of an owner for one URL and cursor share one read (single flight), which is aborted with the last of them. Owners
   * share nothing: from an age or a time that it did not cause, an owner could tell what others read.
   *
   * @throws ServiceError `too_many_requests` while `concurrency` other pages are being read and the owner has its share of
   * them, `upstream_timeout` after `timeoutMs`, `unavailable` once `stop` was called, and what the resolver
   * throws; errors are not cached. `signal.reason` when `signal` is aborted.
   */
  get(url: URL, options: InfoRequest): Promise<CachedInfo>;
  /** Returns what `get` would return without a read; else undefined. */
  find(url: URL, options: Omit<InfoRequest, "signal">): CachedInfo | undefined;
  /** Aborts the reads in flight and refuses new ones; safe to call twice. */
  stop(): void;
}

interface InfoRequest {
  /** Who asks; the pages that are read at a time are shared by owners. */
  owner: string;
  signal: AbortSignal;
  /** Oldest cached result to return, seconds; 0: always read the page. */
  maxAgeS: number;
  /** As in `ResolveContext`. */
  entriesCursor?: string | undefined;
}

interface CachedInfo extends ReadInfo {
  /** Whole seconds since the page was read. */
  ageS: number;
}

interface InfoCacheOptions {
  resolver: Resolver;
  ttlS: number;
  timeoutMs: number;
  /** Pages that are read at a time, as the `total` of `Shares`. */
  concurrency: number;
}

interface ReadInfo {
  info: Info;
  /** About how long it is, characters of JSON. */
  length: number;
}

/** Size of all cached results, in characters of JSON, of which each takes about two bytes; owners share it. */
const maxSize = Math.min(64 * 1024 * 1024, Math.floor(memoryBytes / 16));

/** Matches the resolver's `output`. */
type Info = Static<TObject>;

/** Creates a cache of what `resolver` reads, empty at first. */
export function createInfoCache(options: InfoCacheOptions): InfoCache {
  const { resolver, ttlS, timeoutMs, concurrency } = options;
  const cache = new SharedCache<ReadInfo & { readAt: number }>({ maxSize });
  const inFlight = createSingleFlight<ReadInfo>();
  const shares = new Shares(concurrency);
  let isStopped = false;

  function find(url: URL, query: Omit<InfoRequest, "signal">): CachedInfo | undefined {
    const hit = cache.get(query.owner, keyOf(url, query));
    if (hit === undefined) return undefined;
    const { info, length, readAt } = hit;
    const ageS = (performance.now() - readAt) / 1000;
    return ageS < Math.min(ttlS, query.maxAgeS) ? { info, length, ageS: Math.floor(ageS) } : undefined;
  }

  async function readPage(url: URL, query: InfoRequest, abort: AbortController): Promise<ReadInfo> {
    if (isStopped) throw shutdownError();
    const { owner, entriesCursor } = query;
    const release = shares.take(owner);
    if (release === undefined) throw tooManyError(shares.taken, concurrency);
    const readAt = performance.now();
    const timer = setTimeout(() => abort.abort(timeoutError(url, timeoutMs)), timeoutMs);
    try {
      const deadlineMs = readAt + timeoutMs;
      const read = await resolver.resolve(url, { signal: abort.signal, owner, deadlineMs, entriesCursor });
      const readLength = JSON.stringify(read).length;
      const info = readLength > maxInfoBytes / 3 ? bounded(read) : read;
      const length = Math.min(readLength, maxInfoBytes);
      if (ttlS > 0) cache.set(owner, keyOf(url, query), { info, length, readAt }, length);
      return { info, length };
    } finally {
      clearTimeout(timer);
      release();
    }
  }

  return {
    find,
    async get(url, query) {
      const found = find(url, query);
      if (found !== undefined) return found;
      const read = await inFlight.run(keyOf(url, query), query.signal, (abort) => readPage(url, query, abort));
      return { ...read, ageS: 0 };
    },
    stop() {
      isStopped = true;
      inFlight.abort(shutdownError());
    },
  };
}

function keyOf(url: URL, { owner, entriesCursor = "" }: Pick<InfoRequest, "owner" | "entriesCursor">): string {
  return `${owner} ${entriesCursor} ${url.href}`;
}

const pageInfoCheck = TypeCompiler.Compile(withNativeKinds(PageInfo));

/** Thins a record of videos to `maxInfoBytes`; records of another form stay as they are. */
function bounded(info: Info): Info {
  return pageInfoCheck.Check(info) ? boundInfo(info as PageInfo, maxInfoBytes) : info;
}

function tooManyError(taken: number, concurrency: number): ServiceError {
  const rule = `${taken} pages are being read, the limit is ${concurrency}, of which each key has its share`;
  return new ServiceError("too_many_requests", rule, { retryAfterS: 1 });
}

function timeoutError(url: URL, timeoutMs: number): ServiceError {
  const message = `reading ${urlForMessage(url)} took longer than ${timeoutMs} ms (INFO_TIMEOUT_MS)`;
  return new ServiceError("upstream_timeout", message);
}
