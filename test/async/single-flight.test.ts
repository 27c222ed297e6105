import { expect, test } from "vitest";
import { createSingleFlight } from "../../src/async/single-flight.ts";

/** Calls for one key, each with a controller that ends it, and the runs that they have started. */
function createCalls() {
  const flight = createSingleFlight<string>();
  const runs: { abort: AbortController; promise: PromiseWithResolvers<string> }[] = [];
  const call = () => {
    const controller = new AbortController();
    const result = flight.run("key", controller.signal, (abort) => {
      const promise = Promise.withResolvers<string>();
      runs.push({ abort, promise });
      return promise.promise;
    });
    result.catch(() => {});
    return { controller, result };
  };
  return { runs, call };
}

test("a run is aborted with the last of the calls that wait for it, and the next call starts another", async () => {
  const { runs, call } = createCalls();
  const [first, second] = [call(), call()];
  first.controller.abort(new Error("first left"));
  await expect(first.result).rejects.toThrow("first left");
  expect(runs.map(({ abort }) => abort.signal.aborted)).toEqual([false]);
  second.controller.abort(new Error("second left"));
  await expect(second.result).rejects.toThrow("second left");
  expect(runs[0]?.abort.signal.reason).toMatchObject({ message: "second left" });
  call();
  expect(runs).toHaveLength(2);
});

test("the end of a run that was aborted leaves the one after it to further calls", async () => {
  const { runs, call } = createCalls();
  const left = call();
  left.controller.abort(new Error("left"));
  await expect(left.result).rejects.toThrow("left");
  const second = call();
  runs[0]?.promise.resolve("late");
  await runs[0]?.promise.promise;
  await new Promise(setImmediate);
  const third = call();
  for (const { promise } of runs) promise.resolve("shared");
  expect(await Promise.all([second.result, third.result])).toEqual(["shared", "shared"]);
  expect(runs).toHaveLength(2);
});
