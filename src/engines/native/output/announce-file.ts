import { statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { StreamJournal } from "../../../files/stream-journal.ts";
import { readStreamType } from "../inspect/stream-type.ts";

/** Puts a file that is being fetched, from its start on, into a journal as soon as its first bytes tell what it is. */
export class FileAnnouncement {
  readonly #journal: StreamJournal;
  #isDecided = false;
  #nextBytes = 0;
  #failure: { error: unknown } | undefined;

  constructor(journal: StreamJournal) {
    this.#journal = journal;
  }

  /** To be called when the file has grown. Never throws. */
  onBytes(path: string): void {
    if (this.#isDecided) return;
    try {
      this.#announce(path);
    } catch (error) {
      this.#isDecided = true;
      this.#failure = { error };
    }
  }

  /** To be called when the file is complete. @throws the file system's own errors, also of `onBytes` */
  end(path: string): void {
    if (this.#failure !== undefined) throw this.#failure.error;
    this.#nextBytes = 0;
    if (!this.#isDecided) this.#announce(path);
    this.#journal.end();
  }

  #announce(path: string): void {
    const { size } = statSync(path);
    if (size < this.#nextBytes) return;
    this.#nextBytes = 2 * size;
    const type = readStreamType(path, size);
    this.#isDecided = type !== undefined;
    if (type) this.#journal.open({ ...type, file: join(basename(dirname(path)), basename(path)) }, true);
  }
}
