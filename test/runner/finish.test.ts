import { once } from "node:events";
import { expect, test } from "vitest";
import { neverEnd, writeMedium } from "./engine.ts";
import { createRunnerHarness } from "./harness.ts";

const gap = { code: "gap", message: "no video from 2.0 to 4.0 s" };

test("a recording that is to finish succeeds with what there is, and its warnings", async () => {
  const { runner, store, add, until, untilLoading, log } = createRunnerHarness({
    downloads: async (job, { finish, onProgress }) => {
      onProgress({
        stage: "downloading",
        downloaded_bytes: 5,
        total_bytes: null,
        is_live: true,
      });
      if (finish?.aborted === false) await once(finish, "abort");
      return { ...(await writeMedium(job)), warnings: [gap] };
    },
  });
  const { id } = await add();
  runner.start();
  expect((await untilLoading(id)).progress?.is_live).toBe(true);
  await store.update(id, { finish_requested: true });
  const ended = await until(id, "succeeded");
  expect(ended.file?.warnings).toEqual([gap]);
  expect(ended).not.toHaveProperty("finish_requested");
  await runner.stop();
  expect(log.at(-1)).toMatchObject({ msg: "run succeeded", warnings: ["gap"] });
});

test("a run that begins after the request finishes at once", async () => {
  const { runner, store, add, until } = createRunnerHarness({
    downloads: async (job, context) => (context.finish?.aborted === true ? writeMedium(job) : neverEnd(job, context)),
  });
  const { id } = await add();
  await store.update(id, { finish_requested: true });
  runner.start();
  await until(id, "succeeded");
});

test("a request that an earlier run of the task had does not end a later one", async () => {
  const { runner, store, add, until, untilLoading } = createRunnerHarness({
    downloads: async (job, context) => {
      expect(context.finish?.aborted).toBe(false);
      return neverEnd(job, context);
    },
  });
  const { id } = await add();
  const claim = await store.claim({ leaseMs: 60_000 });
  await store.update(id, { finish_requested: true });
  await store.update(id, { state: "failed" }, { lease: claim!.lease });
  await store.update(id, { state: "queued" });
  runner.start();
  await untilLoading(id);
  await store.update(id, { state: "canceled" });
  await until(id, "canceled");
});
