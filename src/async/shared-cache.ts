import { LRUCache } from "lru-cache";

interface SharedCacheOptions {
  /** Size of all values together, in the unit of `set`. */
  maxSize: number;
  /** How long a value is kept, milliseconds; 0: as long as there is space. */
  ttlMs?: number;
}

/**
 * Caches values of owners. While they are larger together than `maxSize`, that owner who has most loses the value that it has not used for
 * longest. So an owner has at least an equal part of the space, whatever the others cache.
 */
export class SharedCache<T extends object> {
  readonly #maxSize: number;
  readonly #ttlMs: number;
  readonly #caches = new Map<string, LRUCache<string, T>>();

  constructor({ maxSize, ttlMs = 0 }: SharedCacheOptions) {
    this.#maxSize = maxSize;
    this.#ttlMs = ttlMs;
  }

  get(owner: string, key: string): T | undefined {
    return this.#caches.get(owner)?.get(key);
  }

  /** Caches a value of this size, at least 1; one that is larger than `maxSize` is not kept. */
  set(owner: string, key: string, value: T, size: number): void {
    const create = () => new LRUCache<string, T>({ maxSize: this.#maxSize, ttl: this.#ttlMs });
    this.#caches.getOrInsertComputed(owner, create).set(key, value, { size });
    while (this.#size > this.#maxSize) this.#dropOne();
  }

  delete(owner: string, key: string): void {
    this.#caches.get(owner)?.delete(key);
  }

  get #size(): number {
    return this.#caches.values().reduce((sum, { calculatedSize }) => sum + calculatedSize, 0);
  }

  #dropOne(): void {
    const [largest] = [...this.#caches].toSorted(([, a], [, b]) => b.calculatedSize - a.calculatedSize);
    if (largest === undefined) return;
    const [owner, cache] = largest;
    cache.pop();
    if (cache.size === 0) this.#caches.delete(owner);
  }
}
