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
