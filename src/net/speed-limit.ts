/** Bytes per second; 0: any speed. */
export interface MaxSpeeds {
  /** Of everything together. */
  maxSpeedBps: number;
  /** Of each host. */
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

/**
 * Limits how fast tasks receive bytes, all together and from each host, by token buckets of a quarter of a second. The share
 * that has had the least is next; one that was idle saves nothing up. Bytes are granted in pieces of 50 ms of the limit, at most.
 */
export class SpeedLimit {
  readonly #all: TokenBucket;
  readonly #bytesPerHostS: number;
  readonly #hosts = new Map<string, TokenBucket>();
  readonly #shares = new Set<Share>();
  #had = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor({ maxSpeedBps, maxSpeedPerHostBps }: MaxSpeeds) {
    this.#all = new TokenBucket(maxSpeedBps || Infinity);
    this.#bytesPerHostS = maxSpeedPerHostBps || Infinity;
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
        const takes = share.waiting.get(host) ?? [];
        takes.push({ bytes, grant });
        share.waiting.set(host, takes);
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

  /** Grants what may be received now, and comes back when there will be more. */
  #serve(): void {
    clearTimeout(this.#timer);
    for (;;) {
      const nowMs = performance.now();
      const { next, waitMs } = this.#findNext(nowMs);
      const pauseMs = next === undefined ? waitMs : this.#all.waitMs(next.bytes, nowMs);
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
        const bucket = this.#bucketOf(host);
        const bytes = Math.min(take.bytes, this.#all.unit, bucket.unit);
        const hostMs = bucket.waitMs(bytes, nowMs);
        if (hostMs > 0) waitMs = Math.min(waitMs, hostMs);
        else if (next === undefined || share.had < next.share.had) next = { share, host, bucket, bytes };
      }
    }
    return { next, waitMs };
  }

  #grant({ share, host, bucket, bytes }: Next): void {
    const takes = share.waiting.get(host) ?? [];
    const take = takes.shift();
    if (takes.length === 0) share.waiting.delete(host);
    this.#had = share.had;
    share.had += bytes;
    this.#all.take(bytes);
    bucket.take(bytes);
    take?.grant(bytes);
  }

  #bucketOf(host: string): TokenBucket {
    return this.#hosts.getOrInsertComputed(host, () => new TokenBucket(this.#bytesPerHostS));
  }

  /** A new bucket is empty, so that nothing is gained by being forgotten. */
  #forgetHosts(nowMs: number): void {
    if (this.#hosts.size <= maxIdleHosts) return;
    for (const [host, bucket] of this.#hosts) if (bucket.isFull(nowMs)) this.#hosts.delete(host);
  }
}

const maxIdleHosts = 100;

interface Next {
  share: Share;
  host: string;
  bucket: TokenBucket;
  bytes: number;
}

/** What a bucket holds at most, seconds of its speed. */
const capacityS = 0.25;
/** What is taken from it at a time, at most, seconds of its speed. */
const unitS = 0.05;

/** Fills with `bytesPerS`, empty at first. */
class TokenBucket {
  /** Bytes that are taken at a time, at most. */
  readonly unit: number;
  readonly #bytesPerS: number;
  readonly #capacity: number;
  #tokens = 0;
  #atMs = performance.now();

  constructor(bytesPerS: number) {
    this.#bytesPerS = bytesPerS;
    this.unit = Math.max(1, Math.floor(bytesPerS * unitS));
    this.#capacity = Math.max(this.unit, bytesPerS * capacityS);
  }

  isFull(nowMs: number): boolean {
    return this.waitMs(this.#capacity, nowMs) <= 0;
  }

  /** Returns when so many bytes can be taken, in milliseconds from now. */
  waitMs(bytes: number, nowMs: number): number {
    if (this.#bytesPerS === Infinity) return 0;
    const filled = (this.#bytesPerS * (nowMs - this.#atMs)) / 1_000;
    this.#tokens = Math.min(this.#capacity, this.#tokens + filled);
    this.#atMs = nowMs;
    return Math.max(0, ((bytes - this.#tokens) / this.#bytesPerS) * 1_000);
  }

  take(bytes: number): void {
    if (this.#bytesPerS !== Infinity) this.#tokens -= bytes;
  }
}
