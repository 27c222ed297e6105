import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it, onTestFinished } from "vitest";
import { type App, type AppOptions, buildApp } from "../src/http/app.ts";
import { createMemoryStore } from "../src/stores/memory/memory-store.ts";
import type { TaskStore } from "../src/stores/store.ts";
import { createTaskEvents } from "../src/feed/task-events.ts";
import { newTask } from "../src/feed/task-changes.ts";
import type { Task } from "../src/model/task.ts";
import { watchTasks } from "../src/watch/watch-tasks.ts";
import { samplePageInfo } from "./contracts/task-store/page-info.ts";
import { addKey } from "./http/keys.ts";
import { halfway } from "./watch/task.ts";
import { createTerminal, type Terminal } from "./watch/terminal.ts";

async function listen(options: AppOptions = {}, port = 0): Promise<{ app: App; url: URL }> {
  const app = await buildApp(options);
  onTestFinished(() => app.close());
  await app.listen({ host: "127.0.0.1", port });
  return { app, url: new URL(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}/`) };
}

function createStore(maxEvents = 1_000): TaskStore {
  return createMemoryStore({ events: createTaskEvents({ maxEvents }) });
}

async function startTask(store: TaskStore, name: string): Promise<string> {
  const { id } = await store.create(newTask(`https://example.com/${name}`, {}, new Date()));
  await store.claim({ leaseMs: 60_000 });
  await store.update(id, { progress: halfway });
  return id;
}

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
    const { url } = await listen({ store });
    const id = await startTask(store, "first");
    const output = watch(url);
    await output.waitFor(/50 %.*first\n/);
    await store.update(id, { state: "succeeded" });
    await output.waitFor(/succeeded.*first\n/);
    await startTask(store, "second");
    await output.waitFor(/50 %.*second\n/);
  });

  it("shows titles, which the service sends only once", async () => {
    const store = createStore();
    const { url } = await listen({ store });
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
    const { url } = await listen({ store });
    await startTask(store, "first");
    await watch(url, secret).waitFor(/50 %.*first\n/);
  });

  it("resumes after a lost connection", async () => {
    const store = createStore();
    const { app, url } = await listen({ store });
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
    const { app, url } = await listen({ store });
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
    const { app, url } = await listen({ store });
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

  it("retries while the service is unavailable", async () => {
    const { app, url } = await listen();
    await app.close();
    const output = watch(url);
    const [line] = await output.waitFor(/.*ECONNREFUSED.*\n/);
    expect(line).toContain(`${url.href}: `);
    const store = createStore();
    await startTask(store, "late");
    await listen({ store }, Number(url.port));
    await output.waitFor(/50 %.*late\n/);
    expect(output.text.match(/retrying/g)).toHaveLength(1);
  });
});

describe("the program", () => {
  const program = fileURLToPath(new URL("../src/cli/watch.ts", import.meta.url));
  const start = (address: string, env = {}) =>
    spawn(process.execPath, [program, address], { env: { PATH: process.env["PATH"], ...env } });

  /** Resolves with how the program ends, which is killed if the test is over before. */
  async function endOf(child: ReturnType<typeof start>) {
    onTestFinished(() => void child.kill("SIGKILL"));
    const output = Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
    const [stdout, stderr, [code]] = await output;
    return { code: code as number | null, stdout, stderr };
  }

  it.each(["SIGINT", "SIGTERM"] as const)("ends with 0 at %s", async (signal) => {
    const store = createStore();
    const { url } = await listen({ store });
    await startTask(store, "first");
    const child = start(url.href);
    onTestFinished(() => void child.kill("SIGKILL"));
    const errors = text(child.stderr);
    await once(child.stdout, "data");
    child.kill(signal);
    expect(await once(child, "exit")).toEqual([0, null]);
    expect(await errors).toBe("");
  });

  it.each(["help", "--help", "-h"])("prints its usage with %s", async (argument) => {
    const stdout = expect.stringMatching(/^usage: npm run watch \[URL\]\n.*\n$/);
    expect(await endOf(start(argument))).toEqual({ code: 0, stdout, stderr: "" });
  });

  it.each([
    ["needs a key in UNREEL_KEY, none was given", undefined],
    ["needs a key in UNREEL_KEY, none was given", ""],
    ["does not accept the key in UNREEL_KEY", "unreel_wrong"],
  ])("ends with 1 at its first 401: the service %s (%j)", async (reason, UNREEL_KEY) => {
    const store = createStore();
    await addKey(store, "anna");
    const { app, url } = await listen({ store });
    let requests = 0;
    app.server.on("request", () => (requests += 1));
    const ended = await endOf(start(url.href, UNREEL_KEY === undefined ? {} : { UNREEL_KEY }));
    const stderr = `watch: the service at ${url.href} ${reason}\n`;
    expect(ended).toEqual({ code: 1, stdout: "", stderr });
    expect(requests).toBe(1);
  });

  it("ends with 1 when its key is removed", async () => {
    const store = createStore();
    const { secret } = await addKey(store, "root", { admin: true });
    await addKey(store, "anna");
    const { url } = await listen({ store });
    await startTask(store, "first");
    const child = start(url.href, { UNREEL_KEY: secret });
    const ended = endOf(child);
    await once(child.stdout, "data");
    await store.keys.remove("root");
    expect(await ended).toMatchObject({
      code: 1,
      stderr: `watch: the service at ${url.href} does not accept the key in UNREEL_KEY\n`,
    });
  });

  it("retries other failures, 403 and 429 too, until the service says 401", async () => {
    const statuses = [403, 429, 503, 401];
    const server = createServer((_request, response) => {
      response.writeHead(statuses.shift() ?? 200).end();
    });
    onTestFinished(() => void server.close());
    await once(server.listen(0, "127.0.0.1"), "listening");
    const { port } = server.address() as AddressInfo;
    const { code, stdout } = await endOf(start(`http://127.0.0.1:${port}`));
    expect([code, statuses]).toEqual([1, []]);
    const retried = [...stdout.matchAll(/responded with (\d+) .*; retrying\n/g)];
    expect(retried.map(([, status]) => status)).toEqual(["403", "429", "503"]);
  });

  it("refuses an argument that is not the URL of a service", async () => {
    const child = start("ftp://example.com/");
    const errors = text(child.stderr);
    expect((await once(child, "exit"))[0]).toBe(2);
    expect(await errors).toContain("must be http or https, got ftp://example.com/");
  });
});
