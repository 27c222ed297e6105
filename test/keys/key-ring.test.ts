import { expect, onTestFinished, test } from "vitest";
import { openKeyRing, type KeyRingOptions } from "../../src/keys/key-ring.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { ServiceError } from "../../src/model/errors.ts";
import type { KeyStore } from "../../src/stores/key-store.ts";
import { addKey } from "../http/keys.ts";
import { createTestLog } from "../log.ts";

const fast = { pollMs: 5 };

async function open(options: KeyRingOptions) {
  const ring = await openKeyRing(options);
  onTestFinished(() => ring.close());
  return ring;
}

function nextChange(ring: Awaited<ReturnType<typeof open>>): Promise<void> {
  return new Promise((resolve) => {
    const unsubscribe = ring.subscribe(() => {
      unsubscribe();
      resolve();
    });
  });
}

test("keys are found by their secrets alone, and sessions by theirs", async () => {
  const store = createMemoryStore();
  const { secret } = await addKey(store, "anna");
  const ring = await open({ keys: store.keys });
  const [key] = await store.keys.list();
  expect(ring.find(secret)).toEqual(key);
  for (const wrong of ["", `${secret}x`, secret.slice(1), key!.hash, key!.session_hash]) {
    expect([ring.find(wrong), ring.findSession(wrong)]).toEqual([undefined, undefined]);
  }
});

test("changes that others make are followed", async () => {
  const store = createMemoryStore();
  const ring = await open({ keys: store.keys, ...fast });
  expect([ring.isEmpty, ring.admits(null)]).toEqual([true, true]);
  const added = nextChange(ring);
  const { secret } = await addKey(store, "anna");
  await added;
  const key = ring.find(secret)!;
  expect([ring.isEmpty, ring.admits(null), ring.admits(key.hash)]).toEqual([false, false, true]);
  const removed = nextChange(ring);
  await store.keys.remove("anna");
  await removed;
  expect([ring.find(secret), ring.admits(key.hash)]).toEqual([undefined, false]);
});

test("the keys stay as they were while one of them is damaged, which is logged once", async () => {
  const store = createMemoryStore();
  const { secret } = await addKey(store, "anna");
  let isDown = false;
  let failures = 0;
  const { promise: failedOften, resolve } = Promise.withResolvers<void>();
  const keys: KeyStore = {
    ...store.keys,
    async list() {
      if (!isDown) return store.keys.list();
      failures += 1;
      if (failures === 5) resolve();
      throw new ServiceError("internal", "the record of an access key is damaged");
    },
  };
  const { promise: restored, resolve: onRestored } = Promise.withResolvers<void>();
  const { log, logger } = createTestLog(() => {
    if (log.length === 2) onRestored();
  });
  const ring = await open({ keys, ...fast, logger });
  isDown = true;
  await failedOften;
  expect(ring.find(secret)?.name).toBe("anna");
  isDown = false;
  await restored;
  expect(log).toMatchObject([
    { level: "warn", msg: "access keys could not be read" },
    { level: "info", msg: "access keys are read again" },
  ]);
});

test("a store that cannot be read at first opens no ring", async () => {
  const store = createMemoryStore();
  await store.close();
  await expect(openKeyRing({ keys: store.keys })).rejects.toMatchObject({ code: "unavailable" });
});
