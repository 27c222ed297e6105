import { expect, test } from "vitest";
import { assertMayQueue, freeInQueue, noUse } from "../../src/stores/quotas.ts";

test("the records of a key without max_bytes are bounded too; one with it has that bound alone", () => {
  const use = { ...noUse, records: 10_000_000_000 };
  expect(freeInQueue({ limits: {}, use: { ...use, records: use.records - 1 } }, 10)).toBe(9);
  expect(freeInQueue({ limits: {}, use }, 10)).toBe(0);
  const rule = "need 10000000000 bytes, the limit of a key without max_bytes is 10000000000";
  expect(() => assertMayQueue({ limits: {}, use }, 10)).toThrow(rule);
  expect(freeInQueue({ limits: { max_bytes: 20_000_000_000 }, use }, 10)).toBe(9);
});
