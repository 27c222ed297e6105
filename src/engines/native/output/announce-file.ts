import { statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { StreamJournal } from "../../../files/stream-journal.ts";
import { readStreamType } from "../inspect/stream-type.ts";

/**
 * Puts a file that is being fetched, from its start on, into a journal as soon as its first bytes show what it is. A file that
 * cannot be read has no stream.
 */
export class FileAnnouncement {
  readonly #journal: StreamJournal;
  #total: number | null = null;
  #isDecided = false;
  #nextBytes = 0;

  constructor(journal: StreamJournal) {
    this.#journal = journal;
  }

  /** Call this with the size that the file will have, bytes, before it grows; `null`: unknown. */
  onTotal(bytes: number | null): void {
    if (bytes === this.#total) return;
    this.#total = bytes;
    this.#isDecided = false;
    this.#nextBytes = 0;
  }

  /** Call this when the file has grown. */
  onBytes(path: string): void {
    if (this.#isDecided) return;
    try {
      this.#announce(path);
    } catch {
      this.#isDecided = true;
    }
  }

  /** Call this when the file is complete. */
  end(path: string): void {
    this.#nextBytes = 0;
    this.onBytes(path);
    this.#journal.end();
  }

  #announce(path: string): void {
    const { size } = statSync(path);
    if (size < this.#nextBytes) return;
    this.#nextBytes = 2 * size;
    const type = readStreamType(path, size);
    this.#isDecided = type !== undefined;
    const bytes = this.#total === null ? {} : { bytes: this.#total };
    if (type) this.#journal.open({ ...type, ...bytes, file: join(basename(dirname(path)), basename(path)) }, true);
  }
}
