import type { Task } from "../model/task.ts";

interface Kept {
  /** Of all its tasks. */
  bytes: number;
  byTask: Map<string, number>;
}

/**
 * Counts the bytes of downloads that failed and may be resumed, by owner: they stay on the disk for as long as their tasks wait, and are no
 * files yet. A process knows those of its own runs.
 */
export class PartialDownloads {
  readonly #kept = new Map<string, Kept>();

  /**
   * Returns whether the partial download of a task may stay: with those of the owner's other tasks it has no more bytes than the files of the owner
   * still may have.
   *
   * @param bytes Undefined: as many as before.
   * @param bytesLeft Undefined: any number.
   */
  keep({ id, owner }: Pick<Task, "id" | "owner">, bytes: number | undefined, bytesLeft: number | undefined): boolean {
    if (owner === undefined || bytesLeft === undefined) return true;
    const before = this.#kept.get(owner)?.byTask.get(id) ?? 0;
    this.forget({ id, owner });
    const { bytes: others, byTask } = this.#kept.get(owner) ?? { bytes: 0, byTask: new Map<string, number>() };
    const own = bytes ?? before;
    if (others + own > bytesLeft) return false;
    if (own > 0) this.#kept.set(owner, { bytes: others + own, byTask: byTask.set(id, own) });
    return true;
  }

  /** Call it when nothing is left of the download. */
  forget({ id, owner }: { id: string; owner?: string | null | undefined }): void {
    const kept = this.#kept.get(owner ?? "");
    const bytes = kept?.byTask.get(id);
    if (owner === null || owner === undefined || kept === undefined || bytes === undefined) return;
    kept.byTask.delete(id);
    if (kept.byTask.size === 0) this.#kept.delete(owner);
    else kept.bytes -= bytes;
  }
}
