import { expect, test, vi } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { addKey } from "../http/keys.ts";
import { writeMedium } from "./engine.ts";
import { createRunnerHarness } from "./harness.ts";

/** The test engine writes a page's URL as its file: 100 bytes. */
const pageUrl = "https://video.example.com/".padEnd(100, "x");

/** Starts a runner whose engine keeps to the limit of a download; anna's files may have 150 bytes. */
async function start() {
  const store = createMemoryStore();
  await addKey(store, "anna", { limits: { max_bytes: 150 } });
  const given: number[] = [];
  const harness = createRunnerHarness({
    store,
    maxFileBytes: 1_000,
    async downloads(job) {
      given.push(job.maxBytes);
      const medium = await writeMedium(job);
      if (medium.size <= job.maxBytes) return medium;
      throw new ServiceError("too_large", `it has 100 bytes, the limit is ${job.maxBytes}`);
    },
  });
  harness.runner.start();
  const add = (owner?: string) => store.create(newTask(pageUrl, {}, new Date(), owner));
  return { ...harness, add, given };
}

test("a download larger than what is left of its key's max_bytes fails while it is fetched", async () => {
  const { add, until, given, files } = await start();
  const first = await add("anna");
  await until(first.id, "succeeded");
  const second = await add("anna");
  const { error } = await until(second.id, "failed");
  expect(error).toEqual({
    code: "quota_exceeded",
    message: "it has 100 bytes, the limit is 50 (what is left of the key's max_bytes)",
    retryable: false,
  });
  expect(given).toEqual([150, 50]);
  expect([files.results(), files.parts()]).toEqual([[first.id], []]);
});

test("downloads that wait for a retry keep no more bytes than are left of their key's max_bytes", async () => {
  const store = createMemoryStore();
  await addKey(store, "anna", { limits: { max_bytes: 150 } });
  const { runner, until, files } = createRunnerHarness({
    store,
    backoffMs: 3_600_000,
    async downloads(job, { onProgress }) {
      await writeMedium(job);
      onProgress({ stage: "downloading", downloaded_bytes: 100, total_bytes: 200 });
      throw new ServiceError("upstream_unreachable", "the connection was lost");
    },
  });
  runner.start();
  const fail = async (owner?: string) => {
    const { id } = await store.create(newTask(pageUrl, {}, new Date(), owner));
    await until(id, ({ error }) => error !== null);
    return id;
  };
  const first = await fail("anna");
  await fail("anna");
  const others = [await fail("bert"), await fail()];
  expect(files.parts()).toEqual([first, ...others].toSorted());
  await store.update(first, { state: "canceled" });
  const third = await fail("anna");
  await fail("anna");
  await vi.waitUntil(() => !files.parts().includes(first), { timeout: 60_000, interval: 5 });
  expect(files.parts()).toEqual([...others, third].toSorted());
  // Another process runs it, in vain, and removes what there was of it.
  await store.update(third, { state: "running" });
  const error = { code: "drm_protected", message: "it is encrypted", retryable: false } as const;
  await store.update(third, { state: "failed", error });
  await files.remove(third);
  const fifth = await fail("anna");
  expect(files.parts()).toEqual([...others, fifth].toSorted());
});

test("a retry is limited by what is left then", async () => {
  const { store, add, until, given } = await start();
  const first = await add("anna");
  await until(first.id, "succeeded");
  const second = await add("anna");
  await until(second.id, "failed");
  await store.update(first.id, { file: null });
  await store.update(second.id, { state: "queued" });
  await until(second.id, "succeeded");
  expect(given).toEqual([150, 50, 150]);
});

test("downloads of others are not limited by it, nor those of a key whose limit is larger than MAX_FILE_BYTES", async () => {
  const { store, add, until, given } = await start();
  await addKey(store, "bert", { limits: { max_bytes: 5_000 } });
  for (const owner of ["bert", "nobody's key", undefined]) await until((await add(owner)).id, "succeeded");
  expect(given).toEqual([1_000, 1_000, 1_000]);
});
