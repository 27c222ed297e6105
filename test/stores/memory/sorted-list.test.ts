import * as fc from "fast-check";
import { expect, test } from "vitest";
import { SortedList } from "../../../src/stores/memory/sorted-list.ts";

/** Few different numbers in long runs, so that chunks fill, split and empty. */
const step = fc.record({
  adds: fc.boolean(),
  from: fc.integer({ min: 0, max: 3000 }),
  length: fc.integer({ min: 1, max: 1200 }),
  isDescending: fc.boolean(),
});

test("a sorted list holds what a sorted array would, whatever is added and removed", () => {
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 12 }),
      fc.integer({ min: -1, max: 4300 }),
      (steps, probe) => {
        const list = new SortedList<number>((a, b) => a - b);
        const model = new Set<number>();
        for (const { adds, from, length, isDescending } of steps) {
          const run = Array.from({ length }, (_, index) => from + index);
          for (const item of isDescending ? run.toReversed() : run) {
            if (adds && !model.has(item)) list.add(item);
            if (!adds) list.remove(item);
            if (adds) model.add(item);
            else model.delete(item);
          }
        }
        const sorted = [...model].toSorted((a, b) => b - a);
        expect(list.first()).toBe(sorted.at(-1));
        expect(list.last(Infinity)).toEqual(sorted);
        expect(list.last(50)).toEqual(sorted.slice(0, 50));
        const below = sorted.filter((item) => item < probe);
        expect(list.last(700, (item) => item >= probe)).toEqual(below.slice(0, 700));
      },
    ),
    { numRuns: 60 },
  );
});
