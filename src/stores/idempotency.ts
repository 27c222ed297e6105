/** How long an idempotency key is kept. */
export const idempotencyTtlMs = 24 * 60 * 60 * 1000;

export interface Idempotency {
  /** 1–255 characters, as the client sent it. */
  key: string;
  /** Equal for equal requests, whose tasks have the same URL and options; compared, not read. */
  fingerprint: string;
}
