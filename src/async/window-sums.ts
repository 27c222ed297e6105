import { LRUCache } from "lru-cache";

interface Window {
  sum: number;
  /** By the clock of the caller. */
  endsMs: number;
}

/** Bounds the memory: the names that were added to last. */
const maxNames = 10_000;

/** Sums up by name, in windows of one length, each of which begins with the first addition after the one before has ended. */
export class WindowSums {
  readonly #windowMs: number;
  // With `max` it would take the memory for all of them at once.
  readonly #windows = new LRUCache<string, Window>({ maxSize: maxNames, sizeCalculation: () => 1 });

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /** Returns the window of now. */
  get(name: string, nowMs: number): Window {
    const known = this.#windows.get(name);
    return known !== undefined && nowMs < known.endsMs ? known : { sum: 0, endsMs: nowMs + this.#windowMs };
  }

  /** Returns the window of now, with `amount`. */
  add(name: string, amount: number, nowMs: number): Window {
    const { sum, endsMs } = this.get(name, nowMs);
    const added = { sum: sum + amount, endsMs };
    this.#windows.set(name, added);
    return added;
  }
}
