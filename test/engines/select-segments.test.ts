import { expect, it } from "vitest";
import { selectRanges } from "../../src/engines/native/sources/select-segments.ts";
import type { Plan } from "../../src/engines/native/sources/plan.ts";

it("ranges may need as many segments as a list may have", () => {
  const segments = Array.from({ length: 200_000 }, (_, sequence) => {
    return { durationS: 2, sequence, timeline: 0, offsetS: 0 };
  });
  const source = { kind: "segments", liveJournalPath: null, list: { segments }, selection: null };
  const plan = { sources: [source] } as unknown as Plan;
  const [selected] = selectRanges(plan, [{ startS: 10, endS: Infinity }]).sources;
  expect(selected.kind === "segments" && selected.selection?.size).toBe(199_997);
});

it("a range needs an optional segment, which has the end of the one before it, only with that", () => {
  const segments = Array.from({ length: 12 }, (_, sequence) => {
    const isOptional = sequence % 4 === 3;
    return { durationS: isOptional ? 0 : 2, isOptional, sequence, timeline: Math.floor(sequence / 4), offsetS: 0 };
  });
  const source = { kind: "segments", liveJournalPath: null, list: { segments }, selection: null };
  const plan = { sources: [source] } as unknown as Plan;
  const neededBy = (startS: number, endS: number) => {
    const [selected] = selectRanges(plan, [{ startS, endS }]).sources;
    return selected.kind === "segments" && selected.selection && [...selected.selection];
  };
  expect(neededBy(2.5, 3.5)).toEqual([0, 1]);
  expect(neededBy(4.5, 5.5)).toEqual([0, 2, 3]);
  expect(neededBy(6.5, 7.5)).toEqual([0, 4]);
  expect(neededBy(16.5, Infinity)).toEqual([0, 10, 11]);
});
