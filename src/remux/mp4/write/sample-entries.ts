import { ServiceError } from "../../../errors.ts";

/** The sample entries of one track, each once. */
export interface SampleEntries {
  readonly all: readonly Uint8Array[];
  /** Number of the one in force, from 1. */
  readonly current: number;
  choose(entry: Uint8Array): void;
}

const maxEntries = 1024;
const maxBytes = 1 << 20;

/** @throws ServiceError `upstream_invalid`, also from `choose`, beyond 1024 entries or 1 MiB. */
export function createSampleEntries(first: Uint8Array): SampleEntries {
  const all: Buffer[] = [];
  let bytes = 0;
  let current = 0;

  function choose(entry: Uint8Array): void {
    const copy = Buffer.from(entry);
    // Wherever it came from, its data is in this file: data_reference_index 1 (§8.5.2).
    if (copy.length >= 16) copy.writeUInt16BE(1, 14);
    const known = all.findIndex((other) => other.equals(copy));
    current = known === -1 ? all.push(copy) : known + 1;
    if (known === -1) bytes += copy.length;
    if (all.length > maxEntries || bytes > maxBytes) {
      throw new ServiceError(
        "upstream_invalid",
        `a track changes its format too often: ${all.length} sample entries of ${bytes} bytes, ` +
          `at most ${maxEntries} of ${maxBytes} can be kept`,
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
