import { join } from "node:path";
import { expect, test } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { times } from "../contracts/task-store/harness.ts";
import { makeFolder } from "../folder.ts";
import { createRandom } from "../random.ts";
import { writeMedium } from "./engine.ts";
import { createRunnerHarness } from "./harness.ts";

test("200 tasks, 8 at a time, with failures, cancels and deletes, all end, and none runs twice at the same time", async () => {
  const chance = createRandom(7);
  const active = new Set<string>();
  let twice = 0;
  let most = 0;
  const { runner, store, files, add, until } = createRunnerHarness({
    store: openSqliteStore({ path: join(makeFolder(), "tasks.db") }),
    concurrency: 8,
    perHost: 3,
    maxAttempts: 20,
    random: chance,
    downloads: async (job, { signal, onProgress }) => {
      const { url } = job.format;
      if (active.has(url)) twice += 1;
      active.add(url);
      most = Math.max(most, active.size);
      try {
        for (let step = 1; step <= 3; step += 1) {
          await new Promise(setImmediate);
          signal.throwIfAborted();
          onProgress({ stage: "downloading", downloaded_bytes: step, total_bytes: 3 });
          if (chance() < 0.15) throw new ServiceError("upstream_timeout", "slow");
          if (chance() < 0.03) throw new ServiceError("no_media", "nothing");
        }
        return await writeMedium(job);
      } finally {
        active.delete(url);
      }
    },
  });
  runner.start();
  const tasks = await Promise.all(times(200, (n) => add(`https://${n % 7}.example.com/${n}`)));
  const [canceled, deleted] = [tasks.slice(150, 160), tasks.slice(160, 170)];
  for (const { id } of canceled) await store.update(id, { state: "canceled" }).catch(isEnded);
  for (const { id } of deleted) await store.delete(id);
  const kept = tasks.filter((task) => !deleted.includes(task));
  await Promise.all(kept.map(({ id }) => until(id, ({ finished_at }) => finished_at !== null)));
  await runner.stop();
  const found = await Promise.all(kept.map(({ id }) => store.get(id)));
  const succeeded = found.flatMap((task) => (task?.state === "succeeded" ? [task.id] : []));
  expect(found.filter((task) => (task?.finished_at ?? null) === null)).toEqual([]);
  expect(succeeded.length).toBeGreaterThan(100);
  expect(files.results()).toEqual(succeeded.toSorted());
  expect(files.parts()).toEqual([]);
  expect(twice).toBe(0);
  expect(most).toBeLessThanOrEqual(8);
});

function isEnded(error: unknown): void {
  expect(error).toMatchObject({ code: "conflict" });
}
