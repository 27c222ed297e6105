import { describe, expect, it } from "vitest";
import { buildApp } from "../../src/http/app.ts";
import { createStubResolver } from "../../src/resolvers/stub.ts";
import { createMemoryStore } from "../../src/stores/memory.ts";

describe("closing the app", () => {
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

  it("stops the runner first, and closes what it uses when it has stopped", async () => {
    const { order, parts } = recordedParts(() => new Promise((resolve) => setImmediate(resolve)));
    const app = await buildApp(parts);
    await app.close();
    expect(order).toEqual([
      "runner",
      "runner done",
      "resolver",
      "resolver done",
      "store",
      "store done",
    ]);
  });

  it("closes everything else too when the runner cannot be stopped, and says so", async () => {
    const { order, parts } = recordedParts(() => Promise.reject(new Error("a defect")));
    const app = await buildApp(parts);
    await expect(app.close()).rejects.toThrow("a defect");
    expect(order).toEqual(["runner", "resolver", "resolver done", "store", "store done"]);
  });
});
