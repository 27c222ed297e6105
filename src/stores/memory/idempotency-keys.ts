import { earlierDocument } from "../rules.ts";
import { type Idempotency, idempotencyTtlMs } from "../store-types.ts";

/** Creates a memory of the uses of idempotency keys in the last 24 hours. */
export function createIdempotencyKeys() {
  const uses = new Map<string, { fingerprint: string; document: string; endsMs: number }>();
  return {
    /** As `earlierDocument`. */
    recall(idempotency: Idempotency, nowMs: number): string | undefined {
      for (const [key, { endsMs }] of uses) if (endsMs <= nowMs) uses.delete(key);
      return earlierDocument(uses.get(idempotency.key), idempotency);
    },

    keep({ key, fingerprint }: Idempotency, document: string, nowMs: number): void {
      uses.set(key, { fingerprint, document, endsMs: nowMs + idempotencyTtlMs });
    },

    clear: () => uses.clear(),
  };
}
