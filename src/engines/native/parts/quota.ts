import { ServiceError } from "../../../model/errors.ts";

/** Limits the bytes of all parts together and checks the free disk space. */
export interface Quota {
  /** Bytes in the files of all parts. */
  readonly bytes: number;
  /** Counts bytes added to a file; negative: removed. */
  add(bytes: number): void;
  /**
   * Checks that this many more bytes are allowed and have free disk space.
   *
   * @throws ServiceError `too_large`; what `checkFreeSpace` throws
   */
  reserve(bytes: number): Promise<void>;
  /** Checks bytes about to be written after `pending` ones, the free space every 16 MiB. @throws as `reserve` */
  checkWrite(bytes: number, pending: number): Promise<void>;
}

/** Between two checks of the free space. */
const bytesBetween = 16 * 1024 * 1024;

export function createQuota(
  maxBytes: number,
  checkFreeSpace: (bytes: number) => Promise<void>,
  storedBytes: number,
): Quota {
  let bytes = storedBytes;
  let unchecked = 0;

  function checkLimit(more: number): void {
    if (bytes + more <= maxBytes) return;
    const rule = `the download has at least ${bytes + more} bytes, the limit is ${maxBytes}`;
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
      checkLimit(more);
      if (more > 0) await checkFreeSpace(more);
    },
    async checkWrite(more, pending) {
      checkLimit(pending + more);
      unchecked += more;
      if (unchecked < bytesBetween) return;
      unchecked = 0;
      await checkFreeSpace(bytesBetween);
    },
  };
}
