import * as fc from "fast-check";
import { afterAll, describe, test } from "vitest";
import { targets } from "./fuzz/targets.ts";

const longestMs = 600_000;

/** A short `npm run fuzz`: the same inputs every time, without a stall limit. */
describe("hostile input", () => {
  afterAll(async () => {
    for (const target of targets) await target.close();
  });

  test.each(targets)(
    "$name: every outcome is valid",
    async (target) => {
      const property = target.property({ stallLimitMs: Infinity });
      const check = async (_: unknown, index: number) =>
        fc.assert(property, { seed: 20_260_101 + index, numRuns: target.shortRuns });
      await Promise.all(Array.from({ length: target.atOnce }, check));
    },
    longestMs,
  );
});
