import { ServiceError } from "../../../model/errors.ts";

/** The distinct sample entries of a track. */
export interface SampleEntries {
  readonly all: readonly Uint8Array[];
  /**
   * Adds `entry` unless it is known; returns its number, from 1.
   * @throws ServiceError `upstream_invalid` beyond 1024 entries or 1 MiB.
   */
  add(entry: Uint8Array): number;
}

const maxEntries = 1024;
const maxBytes = 1 << 20;

export function createSampleEntries(): SampleEntries {
  const all: Buffer[] = [];
  let bytes = 0;
  return {
    all,
    add(entry) {
      const copy = Buffer.from(entry);
      // data_reference_index 1 (ISO/IEC 14496-12 §8.5.2): the media data are in this file.
      if (copy.length >= 16) copy.writeUInt16BE(1, 14);
      const known = all.findIndex((other) => other.equals(copy));
      if (known !== -1) return known + 1;
      all.push(copy);
      bytes += copy.length;
      if (all.length <= maxEntries && bytes <= maxBytes) return all.length;
      throw new ServiceError(
        "upstream_invalid",
        `a track changes its format too often: it has ${all.length} sample entries of ${bytes} bytes, ` +
          `the limit is ${maxEntries} entries of ${maxBytes} bytes`,
      );
    },
  };
}
