import { setImmediate } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { openKeyRing } from "../../src/keys/key-ring.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { buildApp } from "./app.ts";
import { addKey } from "./keys.ts";
import { pageUrl } from "./requests.ts";
import { listenApp } from "./open-app.ts";

test("a long batch of a key makes Node warn of nothing, such as of many listeners on one response", async () => {
  const warnings: Error[] = [];
  const note = (warning: Error) => void warnings.push(warning);
  process.on("warning", note);
  onTestFinished(() => void process.off("warning", note));
  const store = createMemoryStore();
  const keys = await openKeyRing({ keys: store.keys });
  const app = await buildApp({ store, keys });
  onTestFinished(async () => {
    await app.close();
    keys.close();
  });
  const { headers } = await addKey(store, "anna");
  await keys.refresh();
  const port = await listenApp(app);
  const urls = Array.from({ length: 200 }, (_, n) => `${pageUrl}?${n}${"x".repeat(1_500)}`);
  const response = await fetch(`http://127.0.0.1:${port}/tasks/batch`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify({ urls }),
  });
  const { results } = (await response.json()) as { results: { status: number }[] };
  expect(results.map(({ status }) => status)).toEqual(urls.map(() => 201));
  await setImmediate();
  expect(warnings).toEqual([]);
});
