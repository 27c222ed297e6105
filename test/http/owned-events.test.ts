import { describe, expect, onTestFinished, test } from "vitest";
import { openKeyRing } from "../../src/keys/key-ring.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { openEvents } from "./event-client.ts";
import { addKey } from "./keys.ts";
import { pageUrl } from "./requests.ts";
import { openApp } from "./open-app.ts";

async function listen() {
  const store = createMemoryStore();
  const keys = await openKeyRing({ keys: store.keys });
  onTestFinished(() => keys.close());
  const app = await openApp({ store, keys });
  await app.listen({ host: "127.0.0.1", port: 0 });
  const create = (owner?: string) => store.create(newTask(pageUrl, {}, new Date(), owner));
  const add = async (name: string, admin = false) => {
    const added = await addKey(store, name, { admin });
    await keys.refresh();
    return added;
  };
  return { app, store, keys, create, add };
}

describe("GET /tasks/events", () => {
  test("tells of one's own tasks alone; an admin of all, or of an owner's", async () => {
    const { app, store, create, add } = await listen();
    const anna = await add("anna");
    const root = await add("root", true);
    const hers = await openEvents(app, anna.headers);
    const all = await openEvents(app, root.headers);
    const filtered = await openEvents(app, root.headers, "?owner=anna");
    for (const stream of [hers, all, filtered]) await stream.take(1);
    const tasks = [await create("bert"), await create("anna"), await create()];
    await store.delete(tasks[0]!.id);
    await store.delete(tasks[1]!.id);
    const idsOf = async (stream: typeof hers, count: number) =>
      (await stream.take(count)).map(({ type, data }) => `${type} ${JSON.parse(data).id}`);
    const [bert, anna1, nobody] = tasks.map(({ id }) => id);
    const own = [`task ${anna1}`, `deleted ${anna1}`];
    expect(await idsOf(hers, 2)).toEqual(own);
    expect(await idsOf(filtered, 2)).toEqual(own);
    expect(await idsOf(all, 5)).toEqual([
      `task ${bert}`,
      `task ${anna1}`,
      `task ${nobody}`,
      `deleted ${bert}`,
      `deleted ${anna1}`,
    ]);
  });

  test("has no stream of another owner's task", async () => {
    const { app, create, add } = await listen();
    const [anna, root] = [await add("anna"), await add("root", true)];
    const { id } = await create("bert");
    const url = `/tasks/events?task=${id}`;
    expect((await app.inject({ url, headers: anna.headers })).statusCode).toBe(404);
    expect((await app.inject({ url: `${url}&owner=anna`, headers: root.headers })).statusCode).toBe(404);
    expect((await openEvents(app, root.headers, `?task=${id}&owner=bert`)).response.statusCode).toBe(200);
  });

  test("replays to an owner what it has missed of its own tasks", async () => {
    const { app, store, create, add } = await listen();
    const anna = await add("anna");
    const start = store.events.lastId;
    await create("bert");
    const { id } = await create("anna");
    const stream = await openEvents(app, { ...anna.headers, "last-event-id": start });
    const [, event] = await stream.take(2);
    expect(JSON.parse(event?.data ?? "").id).toBe(id);
  });

  test("replays it also after more changes by another than are kept of all, and tells that one to read its list", async () => {
    const { app, store, create, add } = await listen();
    const [anna, bert] = [await add("anna"), await add("bert")];
    const start = store.events.lastId;
    const { id } = await create("anna");
    await Promise.all(Array.from({ length: 10_001 }, () => create("bert")));
    const after = { "last-event-id": start };
    const [, hers] = await (await openEvents(app, { ...anna.headers, ...after })).take(2);
    expect(JSON.parse(hers?.data ?? "").id).toBe(id);
    const [, his] = await (await openEvents(app, { ...bert.headers, ...after })).take(2);
    expect(his?.type).toBe("reset");
  });

  test("ends when the key is removed, without what comes later", async () => {
    const { app, store, keys, create, add } = await listen();
    const anna = await add("anna");
    const bert = await add("bert");
    const [hers, his] = [await openEvents(app, anna.headers), await openEvents(app, bert.headers)];
    await store.keys.remove("anna");
    await keys.refresh();
    await create("anna");
    await create("bert");
    expect(await hers.rest()).toHaveLength(1);
    expect(await his.take(2)).toHaveLength(2);
    expect((await openEvents(app, anna.headers)).response.statusCode).toBe(401);
  });

  test("ends for those without a key when the first key is added", async () => {
    const { app, add } = await listen();
    const stream = await openEvents(app);
    await add("anna");
    expect(await stream.rest()).toHaveLength(1);
  });
});
