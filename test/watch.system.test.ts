import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { addKey } from "./http/keys.ts";
import { compileCache } from "./process/keys.ts";
import { createStore, serve, startTask } from "./watch/service.ts";
import { listen } from "./net/listen.ts";

describe("the program", () => {
  const program = fileURLToPath(new URL("../src/cli/watch.ts", import.meta.url));
  const start = (address: string, env = {}, ...more: string[]) =>
    spawn(process.execPath, [program, address, ...more], {
      env: { PATH: process.env["PATH"], NODE_COMPILE_CACHE: compileCache, ...env },
    });

  /** Resolves with how the program ends, which is killed if the test is over before. */
  async function endOf(child: ReturnType<typeof start>) {
    onTestFinished(() => void child.kill("SIGKILL"));
    const output = Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
    const [stdout, stderr, [code]] = await output;
    return { code: code as number | null, stdout, stderr };
  }

  it.each(["SIGINT", "SIGTERM"] as const)("ends with 0 at %s", async (signal) => {
    const store = createStore();
    const { url } = await serve({ store });
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

  it("names an argument that it does not take", async () => {
    const stderr = 'watch: takes one argument, the URL of the service; got "b" as well\n';
    expect(await endOf(start("http://127.0.0.1:1", {}, "b"))).toEqual({ code: 2, stdout: "", stderr });
  });

  it.each([
    ["needs a key in UNREEL_KEY, none was given", undefined],
    ["needs a key in UNREEL_KEY, none was given", ""],
    ["does not accept the key in UNREEL_KEY", "unreel_wrong"],
  ])("ends with 1 at its first 401: the service %s (%j)", async (reason, UNREEL_KEY) => {
    const store = createStore();
    await addKey(store, "anna");
    const { app, url } = await serve({ store });
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
    const { url } = await serve({ store });
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
    const port = await listen(server);
    const { code, stdout } = await endOf(start(`http://127.0.0.1:${port}`));
    expect([code, statuses]).toEqual([1, []]);
    const retried = [...stdout.matchAll(/responded with (\d+) .*; retrying\n/g)];
    expect(retried.map(([, status]) => status)).toEqual(["403", "429", "503"]);
  });

  it.each([404, 421, 200])("ends with 1 if what responds at the URL with %i is not the service", async (status) => {
    const server = createServer((_request, response) => {
      response.writeHead(status, { "content-type": "text/html" }).end("<p>Hello</p>");
    });
    onTestFinished(() => void server.close());
    await once(server.listen(0, "127.0.0.1"), "listening");
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const reason = `it responded with ${status} (text/html) instead of 200 (text/event-stream)`;
    const stderr = `watch: ${url} is not the URL of this service: ${reason}\n`;
    expect(await endOf(start(url))).toEqual({ code: 1, stdout: "", stderr });
  });

  it("ends with 1 if the port is one that fetch never connects to", async () => {
    const stderr =
      "watch: fetch connects to no service at port 9, which is another protocol's, got http://127.0.0.1:9/\n";
    expect(await endOf(start("http://127.0.0.1:9"))).toEqual({ code: 1, stdout: "", stderr });
  });

  it("retries after a connection that is closed without a response", async () => {
    let requests = 0;
    const server = createServer((request, response) => {
      requests += 1;
      if (requests === 1) request.socket.destroy();
      else response.writeHead(401).end();
    });
    onTestFinished(() => void server.close());
    const port = await listen(server);
    const { code, stdout } = await endOf(start(`http://127.0.0.1:${port}`));
    expect([code, requests, stdout]).toEqual([1, 2, expect.stringMatching(/; retrying\n/)]);
  });

  it("refuses an argument that is not the URL of a service", async () => {
    const child = start("ftp://example.com/");
    const errors = text(child.stderr);
    expect((await once(child, "exit"))[0]).toBe(2);
    expect(await errors).toContain("must be http or https, got ftp://example.com/");
  });
});
