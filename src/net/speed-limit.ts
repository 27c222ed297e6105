import { TokenBucket } from "./token-bucket.ts";

/** Bytes per second; 0: any speed. */
export interface MaxSpeeds {
  /** Of everything together. */
  maxSpeedBps: number;
  maxSpeedPerHostBps: number;
}

/** What one task may receive of the speed that all tasks share. */
export interface SpeedShare {
  /** Returns whether it had to wait within the last second, or since it was asked before. */
  hasWaited(): boolean;
  /** Resolves with how many bytes may be received from `host` now: 1 to `bytes`. Never after `close`. */
  take(host: string, bytes: number): Promise<number>;
  /** Gives up what it waits for; safe to call twice. */
  close(): void;
}

/** What a process wants of a limit that processes share. */
export interface SpeedDemand {
  /** Tasks that wait for more. */
  waiting: number;
  /** Other tasks that received something. */
  others: number;
  /** Bytes per second that these received. */
  bps: number;
}

interface Take {
  bytes: number;
  grant: (bytes: number) => void;
}

interface Share {
  /** By host, in the order of the calls. */
  waiting: Map<string, Take[]>;
  /** Bytes that it has had, as far as they count: of the shares that wait, the one with the least is next. */
  had: number;
  waitedMs: number;
  /** Since it was asked. */
  hasWaited: boolean;
}

/** The limit of all hosts together; no host has this name. */
const everything = "";

/** Returns how fast this process may receive from a host, or `everything`, if that is limited to `maxBps`. */
type SpeedOf = (key: string, maxBps: number) => number;

interface Limit {
  /** A host, or `everything`. */
  readonly key: string;
  readonly bucket: TokenBucket;
  /** Bytes since it was measured. */
  received: Map<Share, number>;
}

/**
 * Limits how fast tasks receive bytes, all together and from each host, by token buckets of a second. The share
 * that has had the least is next; one that was idle saves nothing up. Bytes are granted in pieces of 50 ms of the limit, at most.
 */
export class SpeedLimit {
  readonly #max: MaxSpeeds;
  readonly #all: Limit;
  readonly #hosts = new Map<string, Limit>();
  readonly #shares = new Set<Share>();
  #speedOf: SpeedOf = (_, maxBps) => maxBps;
  #had = 0;
  /** Absent: nothing is measured or counted. */
  #measuredMs: number | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor({ maxSpeedBps, maxSpeedPerHostBps }: MaxSpeeds) {
    this.#max = { maxSpeedBps: maxSpeedBps || Infinity, maxSpeedPerHostBps: maxSpeedPerHostBps || Infinity };
    this.#all = this.#createLimit(everything);
  }

  get isLimited(): boolean {
    return Math.min(this.#max.maxSpeedBps, this.#max.maxSpeedPerHostBps) < Infinity;
  }

  /** Opens the share of a task. */
  open(): SpeedShare {
    const share: Share = { waiting: new Map(), had: 0, waitedMs: -Infinity, hasWaited: false };
    this.#shares.add(share);
    return {
      hasWaited() {
        const isWaiting = share.waiting.size > 0;
        const hasWaited = isWaiting || share.hasWaited || performance.now() - share.waitedMs < 1_000;
        share.hasWaited = isWaiting;
        return hasWaited;
      },
      take: (host, bytes) => {
        const { promise, resolve: grant } = Promise.withResolvers<number>();
        if (share.waiting.size === 0) share.had = Math.max(share.had, this.#had);
        share.waiting.getOrInsertComputed(host, () => []).push({ bytes, grant });
        this.#serve();
        if (share.waiting.size > 0) Object.assign(share, { waitedMs: performance.now(), hasWaited: true });
        return promise;
      },
      close: () => {
        this.#shares.delete(share);
        this.#serve();
      },
    };
  }

  /**
   * Returns what is wanted of each limit, `everything` or a host, of those that were used since it was asked before; what was
   * received counts from the first call on.
   */
  measure(): Map<string, SpeedDemand> {
    const nowMs = performance.now();
    const seconds = (nowMs - (this.#measuredMs ?? nowMs)) / 1_000 || 1;
    const waiting = this.#findWaiting(nowMs);
    const found = new Map<string, SpeedDemand>();
    for (const limit of [this.#all, ...this.#hosts.values()]) {
      const own = waiting.get(limit) ?? new Set();
      const others = [...limit.received].filter(([share]) => !own.has(share));
      const bps = others.reduce((sum, [, bytes]) => sum + bytes, 0) / seconds;
      const isUsed = own.size + others.length > 0;
      if (isUsed && this.#maxOf(limit.key) < Infinity) {
        found.set(limit.key, { waiting: own.size, others: others.length, bps });
      }
      limit.received = new Map();
    }
    this.#measuredMs = nowMs;
    return found;
  }

  #findWaiting(nowMs: number): ReadonlyMap<Limit, ReadonlySet<Share>> {
    const waiting = new Map<Limit, Set<Share>>();
    for (const share of this.#shares) {
      for (const [host, [take]] of share.waiting) {
        if (take === undefined) continue;
        const { bucket } = this.#limitOf(host);
        const isOfHost = bucket.waitMs(Math.min(take.bytes, bucket.unit), nowMs) > 0;
        waiting.getOrInsertComputed(isOfHost ? this.#limitOf(host) : this.#all, () => new Set()).add(share);
      }
    }
    return waiting;
  }

  /** Limits what is received as `speedOf` says from now on. */
  adjust(speedOf: SpeedOf): void {
    this.#speedOf = speedOf;
    const nowMs = performance.now();
    for (const { key, bucket } of [this.#all, ...this.#hosts.values()]) bucket.setSpeed(this.#speed(key), nowMs);
    this.#serve();
  }

  #createLimit(key: string): Limit {
    return { key, bucket: new TokenBucket(this.#speed(key)), received: new Map() };
  }

  #speed(key: string): number {
    const maxBps = this.#maxOf(key);
    return maxBps === Infinity ? maxBps : this.#speedOf(key, maxBps);
  }

  #maxOf(key: string): number {
    return key === everything ? this.#max.maxSpeedBps : this.#max.maxSpeedPerHostBps;
  }

  /** Grants what may be received now, and comes back when there will be more. */
  #serve(): void {
    clearTimeout(this.#timer);
    for (;;) {
      const nowMs = performance.now();
      const { next, waitMs } = this.#findNext(nowMs);
      const pauseMs = next === undefined ? waitMs : this.#all.bucket.waitMs(next.bytes, nowMs);
      if (next === undefined || pauseMs > 0) {
        if (pauseMs < Infinity) this.#timer = setTimeout(() => this.#serve(), Math.ceil(pauseMs));
        this.#forgetHosts(nowMs);
        return;
      }
      this.#grant(next);
    }
  }

  /** Returns whose turn it is of those whose hosts allow it, and when another host will. */
  #findNext(nowMs: number) {
    let next: Next | undefined;
    let waitMs = Infinity;
    for (const share of this.#shares) {
      for (const [host, [take]] of share.waiting) {
        if (take === undefined) continue;
        const limit = this.#limitOf(host);
        const bytes = Math.min(take.bytes, this.#all.bucket.unit, limit.bucket.unit);
        const hostMs = limit.bucket.waitMs(bytes, nowMs);
        if (hostMs > 0) waitMs = Math.min(waitMs, hostMs);
        else if (next === undefined || share.had < next.share.had) next = { share, host, limit, bytes };
      }
    }
    return { next, waitMs };
  }

  #grant({ share, host, limit, bytes }: Next): void {
    const takes = share.waiting.get(host) ?? [];
    const take = takes.shift();
    if (takes.length === 0) share.waiting.delete(host);
    this.#had = share.had;
    share.had += bytes;
    for (const each of [limit, this.#all]) {
      each.bucket.take(bytes);
      if (this.#measuredMs !== undefined) each.received.set(share, (each.received.get(share) ?? 0) + bytes);
    }
    take?.grant(bytes);
  }

  #limitOf(host: string): Limit {
    return this.#hosts.getOrInsertComputed(host, () => this.#createLimit(host));
  }

  /** A new bucket is empty, so that nothing is gained by being forgotten. */
  #forgetHosts(nowMs: number): void {
    if (this.#hosts.size <= maxIdleHosts) return;
    for (const [host, { bucket }] of this.#hosts) if (bucket.isFull(nowMs)) this.#hosts.delete(host);
  }
}

const maxIdleHosts = 100;

interface Next {
  share: Share;
  host: string;
  limit: Limit;
  bytes: number;
}
