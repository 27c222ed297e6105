import { idempotencyMismatchError } from "../rules.ts";
import { type Idempotency, idempotencyTtlMs } from "../store.ts";
import { text } from "./columns.ts";
import type { Statements } from "./statements.ts";

/** The answers given for idempotency keys in the last 24 hours; call it inside a transaction. */
export function createIdempotencyTable(sql: Statements) {
  return {
    /**
     * The answer that the key stands for.
     *
     * @throws ServiceError `idempotency_mismatch` if it was given for another fingerprint.
     */
    recall(idempotency: Idempotency, nowMs: number): string | undefined {
      sql.forgetKeys.run(nowMs);
      const use = sql.recallKey.get(idempotency.key, nowMs);
      if (use === undefined) return undefined;
      if (text(use, "fingerprint") !== idempotency.fingerprint)
        throw idempotencyMismatchError(idempotency);
      return text(use, "answer");
    },

    keep({ key, fingerprint }: Idempotency, answer: string, nowMs: number): void {
      sql.keepKey.run(key, fingerprint, answer, nowMs + idempotencyTtlMs);
    },
  };
}
