import type { BaseLogger } from "pino";
import type { Task } from "../model/task.ts";
import { type ListedTask, parseTask } from "./documents.ts";
import { DamagedTaskError } from "./rules.ts";

export interface DamageReport {
  /** Returns what `read` returns; undefined, with one line in the log for each row, if the row is damaged. */
  unlessDamaged<T>(row: { id: string; seq: number }, read: () => T): T | undefined;
  /** Returns the task of the row; undefined as `unlessDamaged` does. */
  parse(row: ListedTask): Task | undefined;
}

/** Bounds the memory; further rows are not logged. */
const maxRows = 1_000;

export function createDamageReport(logger: Pick<BaseLogger, "error"> | undefined): DamageReport {
  const reported = new Set<number>();
  const unlessDamaged: DamageReport["unlessDamaged"] = ({ id, seq }, read) => {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof DamagedTaskError)) throw error;
      if (reported.has(seq) || reported.size >= maxRows) return undefined;
      reported.add(seq);
      logger?.error(
        { task: id, seq, reason: error.message },
        "damaged task: it is not listed and does not run; DELETE /tasks/{id} removes it",
      );
      return undefined;
    }
  };
  return { unlessDamaged, parse: (row) => unlessDamaged(row, () => parseTask(row)) };
}
