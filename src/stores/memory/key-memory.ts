import { idempotencyMismatchError } from "../rules.ts";
import { type Idempotency, idempotencyTtlMs } from "../store.ts";

interface Use<T> {
  readonly fingerprint: string;
  readonly answer: T;
  readonly endsMs: number;
}

/** The answers given for idempotency keys in the last 24 hours. */
export class KeyMemory<T> {
  /** In order of first use, so the ones to forget come first. */
  readonly #uses = new Map<string, Use<T>>();

  /**
   * The answer that the key stands for.
   *
   * @throws ServiceError `idempotency_mismatch` if it was given for another fingerprint.
   */
  recall(idempotency: Idempotency, nowMs: number): T | undefined {
    this.#forget(nowMs);
    const use = this.#uses.get(idempotency.key);
    if (use === undefined || use.endsMs <= nowMs) return undefined;
    if (use.fingerprint !== idempotency.fingerprint) throw idempotencyMismatchError(idempotency);
    return use.answer;
  }

  keep({ key, fingerprint }: Idempotency, answer: T, nowMs: number): void {
    this.#uses.delete(key);
    this.#uses.set(key, { fingerprint, answer, endsMs: nowMs + idempotencyTtlMs });
  }

  #forget(nowMs: number): void {
    for (const [key, { endsMs }] of this.#uses) {
      if (endsMs > nowMs) return;
      this.#uses.delete(key);
    }
  }
}
