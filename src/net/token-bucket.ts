/** What a bucket holds at most, seconds of its speed. */
const capacityS = 1;
/** What is taken from it at a time, at most, seconds of its speed. */
const unitS = 0.05;

/** Fills with this many bytes a second, empty at first. */
export class TokenBucket {
  #bytesPerS: number;
  #unit = 0;
  #capacity = 0;
  #tokens = 0;
  #atMs = performance.now();

  constructor(bytesPerS: number) {
    this.#bytesPerS = bytesPerS;
    this.setSpeed(bytesPerS, this.#atMs);
  }

  /** Bytes that are taken at a time, at most. */
  get unit(): number {
    return this.#unit;
  }

  /** Fills with another speed from now on. */
  setSpeed(bytesPerS: number, nowMs: number): void {
    this.#fill(nowMs);
    this.#bytesPerS = bytesPerS;
    this.#unit = Math.max(1, Math.floor(bytesPerS * unitS));
    this.#capacity = Math.max(this.#unit, bytesPerS * capacityS);
  }

  isFull(nowMs: number): boolean {
    return this.waitMs(this.#capacity, nowMs) <= 0;
  }

  /** Returns when this many bytes can be taken, in milliseconds from now. */
  waitMs(bytes: number, nowMs: number): number {
    if (this.#bytesPerS === Infinity) return 0;
    this.#fill(nowMs);
    return Math.max(0, ((bytes - this.#tokens) / this.#bytesPerS) * 1_000);
  }

  take(bytes: number): void {
    if (this.#bytesPerS !== Infinity) this.#tokens -= bytes;
  }

  #fill(nowMs: number): void {
    if (this.#bytesPerS === Infinity) return;
    const filled = (this.#bytesPerS * (nowMs - this.#atMs)) / 1_000;
    this.#tokens = Math.min(this.#capacity, this.#tokens + filled);
    this.#atMs = nowMs;
  }
}
