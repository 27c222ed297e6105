import { expect, it, onTestFinished } from "vitest";
import { openPostgresStore } from "../../src/stores/postgres.ts";
import { newTask } from "../../src/task-changes.ts";
import { times } from "../contracts/task-store/harness.ts";
import { openDatabase } from "../postgres/database.ts";
import { openTestCluster } from "./test-cluster.ts";

const processes = 4;
const concurrency = 4;
const waiting = 10_000;

it("four processes run the one task of an owner next, though another has 10,000 waiting", async () => {
  const url = await openDatabase();
  const store = await openPostgresStore({ url });
  onTestFinished(() => store.close());
  const post = (owner: string) =>
    store.create(newTask("https://video.example.com/", {}, new Date(), owner));
  await Promise.all(times(waiting, () => post("anna")));
  // The resolver finds nothing, so that a run takes moments.
  const cluster = openTestCluster(url, {
    RESOLVER: "stub",
    CONCURRENCY: `${concurrency}`,
    CONCURRENCY_PER_HOST: `${concurrency}`,
  });
  const started = Promise.withResolvers<number>();
  const claimed: string[] = [];
  let beforeHis: number | undefined;
  store.events.subscribe(({ type, owner, state }) => {
    if (owner === "bert" && state === "queued") beforeHis = claimed.length;
    if (type !== "task" || state !== "running") return;
    const hasStarted = claimed.includes("bert");
    claimed.push(owner ?? "");
    if (owner === "bert" && !hasStarted) started.resolve(claimed.length - 1);
    if (claimed.length === 100) busy.resolve();
  });
  const busy = Promise.withResolvers<void>();
  await Promise.all(times(processes, () => cluster.start("worker")));
  await busy.promise;
  await post("bert");
  const at = await started.promise;
  // While a process is claiming his task, the others pass over it and fill their slots.
  expect(at - (beforeHis ?? 0)).toBeLessThanOrEqual(processes * concurrency);
  const left = (await store.list({ limit: 1, owner: "anna", state: "queued" })).tasks;
  expect(left).toHaveLength(1);
});
