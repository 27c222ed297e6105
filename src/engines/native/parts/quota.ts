import { ServiceError } from "../../../errors.ts";

/** How much may still be written. */
export interface Quota {
  /** Bytes in the files of all parts. */
  readonly bytes: number;
  /** So many bytes more are in a file; negative: fewer. */
  add(bytes: number): void;
  /**
   * Makes sure of room for bytes that will come.
   *
   * @throws ServiceError `too_large`; what `checkRoom` throws
   */
  reserve(bytes: number): Promise<void>;
  /** The same for bytes that are to be written now, behind others that are `pending`. */
  checkWrite(bytes: number, pending: number): Promise<void>;
}

/** Between two looks at the disk. */
const bytesBetween = 16 * 1024 * 1024;

export function createQuota(
  maxBytes: number,
  checkFreeSpace: (bytes: number) => Promise<void>,
  heldBytes: number,
): Quota {
  let bytes = heldBytes;
  let unchecked = 0;

  function bound(more: number): void {
    if (bytes + more <= maxBytes) return;
    const rule = `a download may have ${maxBytes} bytes, this one has at least ${bytes + more}`;
    throw new ServiceError("too_large", rule);
  }

  return {
    get bytes() {
      return bytes;
    },
    add(more) {
      bytes += more;
    },
    async reserve(more) {
      bound(more);
      if (more > 0) await checkFreeSpace(more);
    },
    async checkWrite(more, pending) {
      bound(pending + more);
      unchecked += more;
      if (unchecked < bytesBetween) return;
      unchecked = 0;
      await checkFreeSpace(bytesBetween);
    },
  };
}
