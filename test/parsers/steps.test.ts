import { setImmediate as nextIteration } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { createTimeSlices, finish, type Steps } from "../../src/parsers/steps.ts";

/** Takes `count` steps of a millisecond each; calls `onStep` in each. */
function* workFor(count: number, onStep: () => void = () => {}): Steps<number> {
  for (let step = 0; step < count; step += 1) {
    const end = performance.now() + 1;
    while (performance.now() < end);
    onStep();
    yield;
  }
  return count;
}

const never = new AbortController().signal;

describe("computations in time slices", () => {
  it("return what they return at once", async () => {
    expect(finish(workFor(3))).toBe(3);
    expect(await createTimeSlices().run(workFor(3), never)).toBe(3);
  });

  it("reject with their errors", async () => {
    const fail = () => {
      throw new RangeError("third step");
    };
    await expect(createTimeSlices().run(workFor(3, fail), never)).rejects.toThrow("third step");
  });

  it("take one slice together in an iteration of the event loop, however many they are", async () => {
    const slices = createTimeSlices(5);
    let steps = 0;
    let most = 0;
    const all = Promise.all(
      Array.from({ length: 10 }, () =>
        slices.run(
          workFor(8, () => (steps += 1)),
          never,
        ),
      ),
    );
    const running = new Set(["all"]);
    void all.then(() => running.clear());
    while (running.size > 0) {
      await nextIteration();
      most = Math.max(most, steps);
      steps = 0;
    }
    expect(most).toBeGreaterThan(0);
    // One iteration of this loop may see the end of a slice and all of the next one.
    expect(most).toBeLessThanOrEqual(12);
  });

  it("take turns: a short one does not wait for the end of a long one", async () => {
    const slices = createTimeSlices(2);
    const ended: string[] = [];
    const long = slices.run(workFor(60), never).then(() => ended.push("long"));
    const short = slices.run(workFor(2), never).then(() => ended.push("short"));
    await Promise.all([long, short]);
    expect(ended).toEqual(["short", "long"]);
  });

  it("end before the next step when they are aborted", async () => {
    const abort = new AbortController();
    let steps = 0;
    const onStep = () => {
      steps += 1;
      if (steps === 3) abort.abort(new Error("the client is gone"));
    };
    const run = createTimeSlices(1).run(workFor(50, onStep), abort.signal);
    await expect(run).rejects.toThrow("the client is gone");
    expect(steps).toBe(3);
  });
});
