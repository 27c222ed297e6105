import { createTimeSlices } from "../../../parsers/steps.ts";
import { readBody } from "./read-body.ts";
import type { Reader } from "./reader.ts";
import { lengthBytes, packOutcome, unpackOutcome } from "./wire.ts";

/** Creates a reader that reads in this process, in time slices: without a start, and without limits of time and memory. */
export function createLocalReader(): Reader {
  const slices = createTimeSlices();
  return {
    prepare() {},
    async read(job, body, { signal }) {
      const outcome = await packOutcome(job, () => readBody(job, body, slices, signal));
      signal.throwIfAborted();
      return unpackOutcome(job, outcome.subarray(lengthBytes));
    },
    close: async () => {},
  };
}
