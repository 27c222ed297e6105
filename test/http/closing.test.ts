import { describe, expect, it } from "vitest";
import { buildApp } from "../../src/http/app.ts";
import { createStubResolver } from "../../src/resolvers/stub.ts";
import { createMemoryStore } from "../../src/stores/memory.ts";
import { openEvents } from "./event-client.ts";

function recordedParts(stop: () => Promise<void>) {
  const order: string[] = [];
  const [store, resolver] = [createMemoryStore(), createStubResolver()];
  const record = (name: string, close: () => Promise<void>) => async () => {
    order.push(name);
    await close();
    order.push(`${name} done`);
  };
  return {
    order,
    parts: {
      runner: { stop: record("runner", stop) },
      store: { ...store, close: record("store", () => store.close()) },
      resolver: { ...resolver, close: record("resolver", () => resolver.close()) },
    },
  };
}

const oneAfterTheOther = [
  "runner",
  "runner done",
  "resolver",
  "resolver done",
  "store",
  "store done",
];

describe("closing the app", () => {
  it("stops the runner first, and closes what it uses when it has stopped", async () => {
    const { order, parts } = recordedParts(() => new Promise((resolve) => setImmediate(resolve)));
    const app = await buildApp(parts);
    await app.close();
    expect(order).toEqual(oneAfterTheOther);
  });

  it("closes everything else too when the runner cannot be stopped, and says so", async () => {
    const { order, parts } = recordedParts(() => Promise.reject(new Error("a defect")));
    const app = await buildApp(parts);
    await expect(app.close()).rejects.toThrow("a defect");
    expect(order).toEqual(["runner", "resolver", "resolver done", "store", "store done"]);
  });
});

describe("an app that is to close soon", () => {
  it("answers everything as before, each time as the last of the connection", async () => {
    const drainSignal = new AbortController();
    await using app = await buildApp({ drainSignal: drainSignal.signal });
    const url = await app.listen({ port: 0, host: "127.0.0.1" });
    const post = () =>
      fetch(`${url}/tasks/`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ url: "https://example.com/watch" }),
      });
    const before = await post();
    drainSignal.abort();
    const after = await post();
    expect([before, after].map(({ status }) => status)).toEqual([201, 201]);
    const kept = [before, after].map(({ headers }) => headers.get("connection"));
    expect(kept).toEqual(["keep-alive", "close"]);
    const missing = await fetch(`${url}/nothing`);
    expect([missing.status, missing.headers.get("connection")]).toEqual([404, "close"]);
  });

  it("still tells its watchers what changes, and ends their streams when it closes", async () => {
    const drainSignal = new AbortController();
    const app = await buildApp({ drainSignal: drainSignal.signal });
    await app.listen({ port: 0, host: "127.0.0.1" });
    const early = await openEvents(app);
    drainSignal.abort();
    const late = await openEvents(app);
    expect(late.response.headers.connection).toBe("close");
    const payload = { url: "https://example.com/watch" };
    await app.inject({ method: "POST", url: "/tasks/", payload });
    await app.close();
    for (const client of [early, late]) {
      expect((await client.rest()).filter(({ type }) => type === "task")).toHaveLength(1);
    }
  });

  it("has stopped the runner at once, and keeps the store open", async () => {
    const drainSignal = new AbortController();
    const { order, parts } = recordedParts(async () => {});
    const app = await buildApp({ ...parts, drainSignal: drainSignal.signal });
    drainSignal.abort();
    await app.inject("/tasks/");
    expect(order).toEqual(["runner", "runner done"]);
    await app.close();
    expect(order).toEqual(oneAfterTheOther);
  });

  it("closes everything all the same when the runner could not be stopped, and says so", async () => {
    const drainSignal = new AbortController();
    const { order, parts } = recordedParts(() => Promise.reject(new Error("a defect")));
    const app = await buildApp({ ...parts, drainSignal: drainSignal.signal });
    drainSignal.abort();
    expect((await app.inject("/tasks/")).statusCode).toBe(200);
    await expect(app.close()).rejects.toThrow("a defect");
    expect(order).toEqual(["runner", "resolver", "resolver done", "store", "store done"]);
  });
});
