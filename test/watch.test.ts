import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Task } from "../src/model/task.ts";
import { noTasks } from "../src/feed/collection-changes.ts";
import { newTask } from "../src/feed/task-changes.ts";
import { watchTasks } from "../src/watch/watch-tasks.ts";
import { samplePageInfo } from "./contracts/task-store/page-info.ts";
import { addKey } from "./http/keys.ts";
import { createStore, serve, startTask } from "./watch/service.ts";
import { halfway } from "./watch/task.ts";
import { createTerminal, type Terminal } from "./watch/terminal.ts";

function titled(title: string): Task["info"] {
  return { ...samplePageInfo(), title };
}

/** Node cancels the body of a response that is garbage unless somebody reads it. */
function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
}

/** Watches until the test is over. */
function watch(url: URL, key?: string): Terminal {
  const output = createTerminal();
  const ending = new AbortController();
  const watching = watchTasks({ url, key, output, signal: ending.signal });
  onTestFinished(async () => {
    ending.abort();
    await watching;
  });
  return output;
}

describe("watching", () => {
  it("shows the tasks that are already running, and follows their changes", async () => {
    const store = createStore();
    const { url } = await serve({ store });
    const id = await startTask(store, "first");
    const output = watch(url);
    await output.waitFor(/50 %.*first\n/);
    await store.update(id, { state: "succeeded" });
    await output.waitFor(/succeeded.*first\n/);
    await startTask(store, "second");
    await output.waitFor(/50 %.*second\n/);
  });

  it("shows a collection as a line with its numbers, and no lines of its members", async () => {
    const store = createStore();
    const { url } = await serve({ store });
    const output = watch(url);
    await output.waitFor(/no task is running\n/);
    const { id } = await store.create(newTask("https://example.com/list", { entries: "all" }, new Date()));
    const { lease } = (await store.claim({ leaseMs: 60_000 }))!;
    const growth = { slice: { offset: 0, made: 0 } };
    await store.update(id, { kind: "collection", counts: noTasks, growth }, { lease });
    const members = [1, 2].map((index) => {
      const task = newTask(`https://video.example.com/member-${index}`, {}, new Date());
      return { index, task: { ...task, collection: { id, index, title: "list" } } };
    });
    await store.grow(id, { lease, members, isReusing: true, growth: null });
    for (const { task } of members) await store.update(task.id, { state: "running" });
    await store.update(members[0]!.task.id, { state: "succeeded" });
    await output.waitFor(/1 of 2 entries, 1 running.*list\n/);
    await store.update(members[1]!.task.id, { state: "failed" });
    await output.waitFor(/failed: of 2 entries 1 failed {2}.*list\n/);
    expect(output.text).not.toContain("member-");
  });

  it("says what it is connected to, and if no task is running", async () => {
    const store = createStore();
    const { app, url } = await serve({ store });
    const output = watch(url);
    await output.waitFor(/^connected to http:\/\/127\.0\.0\.1:\d+\/: no task is running\n$/);
    await startTask(store, "first");
    await output.waitFor(/50 %.*first\n/);
    app.server.closeAllConnections();
    await output.waitFor(/retrying\nconnected to http:\/\/127\.0\.0\.1:\d+\/\n$/);
  });

  it("shows titles, which the service sends only once", async () => {
    const store = createStore();
    const { url } = await serve({ store });
    const first = await startTask(store, "first");
    await store.update(first, { info: titled("Film one") });
    const second = await startTask(store, "second");
    await store.update(second, { info: titled("Film two") });
    await store.update(second, { state: "queued" }, { runAfter: new Date(Date.now() + 60_000) });
    const output = watch(url);
    await output.waitFor(/50 %.*Film one\n/);
    await store.update(first, { state: "succeeded" });
    await store.update(second, { state: "canceled" });
    await output.waitFor(/succeeded.*Film one\n[^]*canceled.*Film two\n/);
    const third = await startTask(store, "third");
    await store.update(third, { info: titled("Film three") });
    await store.update(third, { state: "succeeded" });
    await output.waitFor(/succeeded.*Film three\n/);
  });

  it("sends its key with every request", async () => {
    const store = createStore();
    const { secret } = await addKey(store, "root", { admin: true });
    const { url } = await serve({ store });
    await startTask(store, "first");
    await watch(url, secret).waitFor(/50 %.*first\n/);
  });

  it("resumes after a lost connection", async () => {
    const store = createStore();
    const { app, url } = await serve({ store });
    const output = watch(url);
    const id = await startTask(store, "first");
    await output.waitFor(/50 %.*first\n/);
    app.server.closeAllConnections();
    await store.update(id, { state: "canceled" });
    await output.waitFor(/retrying\n[^]*canceled.*first\n/);
    expect(output.text.match(/canceled/g)).toHaveLength(1);
  });

  it("keeps the stream while the tasks are read, whatever the collector of garbage takes meanwhile", async () => {
    const store = createStore();
    const { app, url } = await serve({ store });
    await startTask(store, "first");
    const output = watch(url);
    app.server.on("request", collectGarbage);
    await output.waitFor(/50 %.*first\n/);
    await startTask(store, "second");
    await output.waitFor(/50 %.*second\n/);
    expect(output.text).not.toContain("retrying");
  });

  it("reads its tasks again if too many changes were missed", async () => {
    const store = createStore(2);
    const { app, url } = await serve({ store });
    const output = watch(url);
    const [one, two] = [await startTask(store, "one"), await startTask(store, "two")];
    await output.waitFor(/50 %.*two\n/);
    app.server.closeAllConnections();
    await store.update(one, { state: "canceled" });
    await store.delete(two);
    await startTask(store, "three");
    await output.waitFor(/canceled.*one\n/);
    expect(output.text).toMatch(/50 %.*three\n/);
  });

  it("shows the end of a task that came with another change, which could not be read", async () => {
    const [one, two] = ["one", "two"].map((name) => newTask(`https://example.com/${name}`, {}, new Date()));
    const running: Task[] = [{ ...one!, state: "running", progress: halfway }];
    const { info: _, ...changed } = { ...two!, state: "running" as const };
    const ended: Task = { ...one!, state: "succeeded" };
    const chunks = [`data: ${JSON.stringify(ended)}`, `data: ${JSON.stringify(changed)}`];
    const streams = [chunks.map((data) => `event: task\n${data}\n\n`).join(""), "event: reset\ndata: {}\n\n"];
    // Behind a proxy that sends several events in one piece; then the service is away, and has lost what came before.
    const proxy = createServer(({ url }, response) => {
      const json = (value: unknown) =>
        response.setHeader("content-type", "application/json").end(JSON.stringify(value));
      if (url === `/tasks/${two!.id}`) response.writeHead(503).end();
      else if (url === `/tasks/${one!.id}`) json(ended);
      else if (url?.startsWith("/tasks/?")) json({ tasks: running.splice(0), next: null });
      else response.setHeader("content-type", "text/event-stream").write(`id: 1\n\n${streams.shift() ?? ""}`);
    });
    await once(proxy.listen(0, "127.0.0.1"), "listening");
    onTestFinished(() => proxy.close().closeAllConnections());
    const output = watch(new URL(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}/`));
    await output.waitFor(/503.*retrying\n[^]*succeeded.*one\n/);
  });

  it("retries if something else responds at the URL after a connection, as a proxy does while the service restarts", async () => {
    const { app, url } = await serve();
    const output = watch(url);
    await output.waitFor(/no task is running\n/);
    await app.close();
    const proxy = createServer((_request, response) => void response.writeHead(404).end());
    await once(proxy.listen(Number(url.port), "127.0.0.1"), "listening");
    await output.waitFor(/it responded with 404 \(no type\) .*; retrying\n/);
    const closed = once(proxy, "close");
    proxy.close();
    proxy.closeAllConnections();
    await closed;
    await serve({}, Number(url.port));
    await output.waitFor(/retrying\nconnected to .*\n$/);
  });

  it("retries while the service is unavailable", async () => {
    const { app, url } = await serve();
    await app.close();
    const output = watch(url);
    const [line] = await output.waitFor(/.*ECONNREFUSED.*\n/);
    expect(line).toContain(`${url.href}: `);
    const store = createStore();
    await startTask(store, "late");
    await serve({ store }, Number(url.port));
    await output.waitFor(/50 %.*late\n/);
    expect(output.text.match(/retrying/g)).toHaveLength(1);
  });
});
