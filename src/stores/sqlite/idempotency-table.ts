import { idempotencyMismatchError } from "../rules.ts";
import { type Idempotency, idempotencyTtlMs } from "../store.ts";
import type { Statements } from "./statements.ts";

interface KeyRow {
  fingerprint: string;
  answer: string;
}

/** The tasks stored under idempotency keys in the last 24 hours; call its methods inside a transaction. */
export function createIdempotencyTable(sql: Statements) {
  return {
    /**
     * Returns the document stored under the key; undefined if the key is free.
     *
     * @throws ServiceError `idempotency_mismatch` if the key was used with another fingerprint.
     */
    recall(idempotency: Idempotency, nowMs: number): string | undefined {
      sql.forgetKeys.run(nowMs);
      const use = sql.recallKey.get(idempotency.key, nowMs) as KeyRow | undefined;
      if (use === undefined || use.fingerprint === idempotency.fingerprint) return use?.answer;
      throw idempotencyMismatchError(idempotency);
    },

    keep({ key, fingerprint }: Idempotency, document: string, nowMs: number): void {
      sql.keepKey.run(key, fingerprint, document, nowMs + idempotencyTtlMs);
    },
  };
}
