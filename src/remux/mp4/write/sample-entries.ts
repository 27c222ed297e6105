import { ServiceError } from "../../../model/errors.ts";

const maxEntries = 1024;
const maxBytes = 1 << 20;

/** Creates a list of the distinct sample entries of a track. */
export function createSampleEntries() {
  const all: Buffer[] = [];
  let bytes = 0;
  return {
    all,
    /**
     * Adds `entry` unless it is known; returns its number, from 1.
     * @throws ServiceError `upstream_invalid` beyond 1024 entries or 1 MiB.
     */
    add(entry: Uint8Array): number {
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
