import { expect, it, onTestFinished } from "vitest";
import { openPostgresStore } from "../../src/stores/postgres/postgres-store.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import type { TaskEvent } from "../../src/feed/task-events.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { times } from "../contracts/task-store/harness.ts";
import { openDatabase } from "../postgres/database.ts";
import { openTestCluster } from "./test-cluster.ts";

const processes = 4;
const concurrency = 4;
const waiting = 1_000;
const trials = 10;

it("four processes run the one task of an owner next, though another has 1,000 waiting", async () => {
  const url = await openDatabase();
  const store = await openPostgresStore({ url });
  onTestFinished(() => store.close());
  const post = (owner: string) => store.create(newTask("https://video.example.com/", {}, new Date(), owner));
  await Promise.all(times(waiting, () => post("anna")));
  // The resolver finds nothing, so that a run takes moments.
  const cluster = openTestCluster(url, {
    RESOLVER: "stub",
    CONCURRENCY: `${concurrency}`,
    CONCURRENCY_PER_HOST: `${concurrency}`,
  });
  const claims = countClaims(store);
  await Promise.all(times(processes, () => cluster.start("worker")));
  await claims.reach(100);
  for (const trial of times(trials, (n) => n)) {
    const owner = `bert-${trial}`;
    const between = claims.between(owner);
    await post(owner);
    // Each process may be making one claim when the task is stored.
    expect(await between, owner).toBeLessThanOrEqual(processes);
  }
  const left = (await store.list({ limit: 1, owner: "anna", state: "queued" })).tasks;
  expect(left).toHaveLength(1);
});

/** Counts the claims from now on, in the order in which they took effect. */
function countClaims({ events }: TaskStore) {
  let count = 0;
  const running = new Set<string>();
  const listeners = new Set<(event: TaskEvent) => void>();
  events.subscribe((event) => {
    for (const listener of listeners) listener(event);
    if (event.state !== "running") running.delete(event.taskId);
    else if (!running.has(event.taskId)) {
      running.add(event.taskId);
      count += 1;
    }
  });

  /** Resolves with the number of claims before the first event that fits. */
  function before(fits: (event: TaskEvent) => boolean): Promise<number> {
    return new Promise((resolve) => {
      listeners.add(function listen(event) {
        if (!fits(event)) return;
        listeners.delete(listen);
        resolve(count);
      });
    });
  }

  return {
    /** Resolves once there were so many. */
    reach: (least: number) => before(() => count >= least),
    /** Resolves with their number from the event of the owner's task to its claim. */
    async between(owner: string): Promise<number> {
      const [queued, claimed] = await Promise.all(
        ["queued", "running"].map((state) => before((event) => event.owner === owner && event.state === state)),
      );
      return (claimed ?? Number.NaN) - (queued ?? Number.NaN);
    },
  };
}
