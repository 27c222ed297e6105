import { ServiceError } from "../../../errors.ts";

/** The distinct sample entries of a track. */
export interface SampleEntries {
  readonly all: readonly Uint8Array[];
  /** Number of the one that was chosen last, from 1. */
  readonly current: number;
  /** @throws ServiceError `upstream_invalid` beyond 1024 entries or 1 MiB. */
  choose(entry: Uint8Array): void;
}

const maxEntries = 1024;
const maxBytes = 1 << 20;

export function createSampleEntries(first: Uint8Array): SampleEntries {
  const all: Buffer[] = [];
  let bytes = 0;
  let current = 0;

  function choose(entry: Uint8Array): void {
    const copy = Buffer.from(entry);
    // data_reference_index 1 (ISO/IEC 14496-12 §8.5.2): the media data are in this file.
    if (copy.length >= 16) copy.writeUInt16BE(1, 14);
    const known = all.findIndex((other) => other.equals(copy));
    current = known === -1 ? all.push(copy) : known + 1;
    if (known === -1) bytes += copy.length;
    if (all.length > maxEntries || bytes > maxBytes) {
      throw new ServiceError(
        "upstream_invalid",
        `a track changes its format too often: it has ${all.length} sample entries of ${bytes} bytes, ` +
          `the limit is ${maxEntries} entries of ${maxBytes} bytes`,
      );
    }
  }

  choose(first);
  return {
    all,
    get current() {
      return current;
    },
    choose,
  };
}
