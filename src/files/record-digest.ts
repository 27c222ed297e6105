import { createHash } from "node:crypto";
import type { MediaRecord } from "./stream-journal.ts";

/**
 * What records say of the bytes of a stream: how many they are, and which of them are not media. Where the media are, and how many records they
 * are in, may differ between runs.
 */
export class RecordDigest {
  bytes = 0;
  /** The latest one. */
  #last: MediaRecord = { head: new Uint8Array(), offset: 0, bytes: 0 };
  readonly #hash = createHash("sha256");

  add(record: MediaRecord): void {
    const { head, bytes } = record;
    if (head.length > 0) this.#hash.update(`${this.bytes} ${head.length} `).update(head);
    this.bytes += head.length + bytes;
    this.#last = record;
  }

  /** Where the latest media end in their file. */
  get mediaEnd(): number {
    return this.#last.offset + this.#last.bytes;
  }

  hasSameHeads(other: RecordDigest): boolean {
    return this.#hash.copy().digest().equals(other.#hash.copy().digest());
  }

  /** Returns the media that follow the first `bytes` in the latest record. */
  after(bytes: number): MediaRecord {
    const left = this.bytes - bytes;
    return { head: new Uint8Array(), offset: this.mediaEnd - left, bytes: left };
  }
}
