import { WindowSums } from "../async/window-sums.ts";
import { ServiceError } from "../model/errors.ts";
import { idempotencyTtlMs } from "./store-types.ts";

/** Bytes that the responses of an owner may have which are kept under idempotency keys in a day. */
const maxKeptBytes = 250_000_000;

/**
 * Counts what a process keeps under the idempotency keys of each owner in 24 hours: one owner must not fill the disk. Tasks without an owner are not
 * counted, as they have no limits.
 */
export class KeyAllowance {
  readonly #maxBytes: number;
  readonly #kept = new WindowSums(idempotencyTtlMs);

  constructor(maxBytes = maxKeptBytes) {
    this.#maxBytes = maxBytes;
  }

  /** @throws ServiceError `quota_exceeded` if no further response may be kept now */
  assertMayKeep(owner: string | undefined, nowMs: number): void {
    const { sum: bytes, endsMs } = this.#kept.get(owner ?? "", nowMs);
    if (bytes < this.#maxBytes) return;
    const rule = `what is kept under the idempotency keys of this key has ${bytes} bytes, the limit is ${this.#maxBytes} in 24 hours`;
    throw new ServiceError("quota_exceeded", rule, { retryAfterS: Math.ceil((endsMs - nowMs) / 1_000) });
  }

  /** Counts a response that is kept. */
  add(owner: string | undefined, answer: string, nowMs: number): void {
    if (owner !== undefined) this.#kept.add(owner, Buffer.byteLength(answer), nowMs);
  }
}
