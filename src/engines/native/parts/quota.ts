import { ServiceError } from "../../../model/errors.ts";

/** At most this many bytes are written between two checks of the free space. */
const bytesBetween = 16 * 1024 * 1024;

/** Throws unless this many more bytes are free. `isPartial`: they are those of a part of a file, not of all of it. */
export type CheckFreeSpace = (bytes: number, isPartial: boolean) => Promise<void>;

/** Limits the bytes of all parts together and checks the free disk space. */
export class Quota {
  readonly #maxBytes: number;
  readonly #checkFreeSpace: CheckFreeSpace;
  #bytes = 0;
  #skipped = 0;
  /** May be written before the next check. */
  #checked = bytesBetween;

  constructor(maxBytes: number, checkFreeSpace: CheckFreeSpace) {
    this.#maxBytes = maxBytes;
    this.#checkFreeSpace = checkFreeSpace;
  }

  /** Bytes in the files of all parts. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Counts bytes added to a file; negative: removed. */
  add(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Counts bytes that a server sends before a part. @throws ServiceError `too_large` if they are more than all parts may have */
  addSkipped(bytes: number): void {
    this.#skipped += bytes;
    if (this.#skipped <= this.#maxBytes) return;
    const rule = `${this.#skipped} bytes before the parts were received, the limit is ${this.#maxBytes}`;
    throw new ServiceError("too_large", `the server sends no ranges: ${rule}`);
  }

  /**
   * Checks that this many more bytes are allowed and have free disk space. `isPartial`: as `CheckFreeSpace`.
   *
   * @throws ServiceError `too_large`; what `checkFreeSpace` throws
   */
  async reserve(bytes: number, isPartial = false): Promise<void> {
    this.#checkLimit(bytes);
    if (bytes > 0) await this.#checkFreeSpace(bytes, isPartial);
  }

  /**
   * Checks bytes about to be written after `pending` ones; `left` will follow, at most. The free space is checked for 16 MiB, or if
   * there is less, for these together, and again when so many have been written.
   *
   * @throws as `reserve`
   */
  async checkWrite(bytes: number, pending: number, left: number, isPartial: boolean): Promise<void> {
    this.#checkLimit(pending + bytes);
    this.#checked -= bytes;
    if (this.#checked >= 0) return;
    this.#checked = bytesBetween - bytes;
    try {
      await this.#checkFreeSpace(bytesBetween, isPartial);
    } catch (error) {
      const needed = bytes + left;
      if (needed >= bytesBetween) throw error;
      this.#checked = left;
      await this.#checkFreeSpace(needed, isPartial);
    }
  }

  #checkLimit(more: number): void {
    const bytes = this.#bytes + more;
    if (bytes <= this.#maxBytes) return;
    const rule = `the download has at least ${bytes} bytes, the limit is ${this.#maxBytes}`;
    throw new ServiceError("too_large", rule);
  }
}
