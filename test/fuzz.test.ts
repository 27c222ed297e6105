import * as fc from "fast-check";
import { afterAll, describe, test } from "vitest";
import { targets } from "./fuzz/targets.ts";

/** A taste of `npm run fuzz`: the same inputs every time, and no word about speed. */
describe("hostile input", () => {
  afterAll(async () => {
    for (const target of targets) await target.close();
  });

  test.each(targets)("$name: every answer keeps its promises", async (target) => {
    await fc.assert(target.property({ stallLimitMs: Infinity }), {
      seed: 20_260_101,
      numRuns: 150,
    });
  });
});
