import { once } from "node:events";
import { createServer } from "node:http";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { App } from "../../src/http/app.ts";
import { limitConnections } from "../../src/http/server/connections.ts";
import { listen as listenOn } from "../net/listen.ts";
import { type AppOptions } from "./app.ts";
import { pageUrl, postTask } from "./requests.ts";
import { openApp } from "./open-app.ts";

const head = "POST /tasks/ HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n";

/** An app whose clients seem to connect from `addresses`, in turn; default: from where they are. */
async function listen(options: AppOptions = {}, addresses: string[] = []): Promise<App> {
  const app = await openApp(options);
  let count = 0;
  app.server.prependListener("connection", (socket) => {
    const value = addresses[count % addresses.length];
    count += 1;
    if (value !== undefined) Object.defineProperty(socket, "remoteAddress", { value });
  });
  await app.listen({ port: 0, host: "127.0.0.1" });
  return app;
}

async function open(app: App): Promise<Socket> {
  const { port } = app.server.address() as { port: number };
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  return socket;
}

async function ask(app: App, socket?: Socket): Promise<string> {
  const client = socket ?? (await open(app));
  client.write("GET /health/live HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
  return text(client);
}

function countOpen({ server }: App): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
  return promise;
}

describe("a broken body", () => {
  it.each<[fault: string, rest: string, status: number, target?: string]>([
    ["a chunk size that is none", "transfer-encoding: chunked\r\n\r\nZZ\r\n", 400],
    ["a chunk size out of range", "transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n", 400],
    ["an endless chunk extension", `transfer-encoding: chunked\r\n\r\n2;${"a".repeat(70_000)}`, 400],
    ["endless trailers", `transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nx: ${"a".repeat(65_536)}`, 431],
    ["over 4,096 chunks", `transfer-encoding: chunked\r\n\r\n${"1\r\n \r\n".repeat(4_097)}`, 413],
    ["an unknown transfer coding", "transfer-encoding: xchunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 400],
    ["a route without a body", "transfer-encoding: chunked\r\n\r\nZZ\r\n", 400, "GET /health/live"],
  ])("with %s is refused, and the connection closed", async (_, rest, status, target) => {
    const app = await listen();
    const socket = await open(app);
    socket.write(head.replace("POST /tasks/", target ?? "POST /tasks/") + rest);
    const response = await text(socket);
    expect(response).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(response).toContain("application/problem+json");
    await expect.poll(() => countOpen(app)).toBe(0);
  });

  it("with 4,096 chunks is read", async () => {
    const app = await listen();
    const body = JSON.stringify({ url: pageUrl }).padEnd(4_096);
    const chunks = body.replaceAll(/./g, "1\r\n$&\r\n");
    const socket = await open(app);
    socket.write(`${head}connection: close\r\ntransfer-encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`);
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 201 /);
  });

  it("that goes on in many chunks after the response ends the connection", async () => {
    const app = await listen();
    const socket = await open(app);
    socket.write("GET /health/live HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n");
    const [response] = await once(socket, "data");
    expect(String(response)).toMatch(/^HTTP\/1\.1 200 /);
    socket.write("1\r\n \r\n".repeat(4_096));
    expect(await countOpen(app)).toBe(1);
    socket.write("1\r\n \r\n");
    await expect.poll(() => countOpen(app)).toBe(0);
  });

  it("that does not arrive in time gets 408, and does not become a task", async () => {
    const app = await listen();
    Object.assign(app.server, { requestTimeout: 500, headersTimeout: 500 });
    const socket = await open(app);
    socket.write(`${head}content-length: 40\r\n\r\n{"url":`);
    const [response] = await once(socket, "data");
    expect(String(response)).toMatch(/^HTTP\/1\.1 408 [^]*"code":"request_timeout"/);
    socket.write('"https://example.com/watch/42/late"}');
    await expect.poll(() => countOpen(app)).toBe(0);
    expect((await app.inject("/tasks/")).json()).toEqual({ tasks: [], next: null });
  });

  it.each([
    ["closes", (socket: Socket) => void socket.end()],
    ["resets", (socket: Socket) => void socket.resetAndDestroy()],
  ])("leaves nothing if the client %s the connection", async (_, leave) => {
    const app = await listen();
    const socket = await open(app);
    socket.write(`${head}content-length: 500\r\n\r\n{`);
    await expect.poll(() => countOpen(app)).toBe(1);
    leave(socket);
    await expect.poll(() => countOpen(app)).toBe(0);
  });

  it("after a stream of events ends the stream as well", async () => {
    const app = await listen();
    const socket = await open(app);
    socket.write("GET /tasks/events HTTP/1.1\r\nhost: a\r\n\r\n\0\0garbage\r\n\r\n");
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 200 /);
    await expect.poll(() => countOpen(app)).toBe(0);
  });
});

describe("requests of one connection that do not wait for responses", () => {
  const get = "GET /health/live HTTP/1.1\r\nhost: a\r\n\r\n";

  /** Opens a connection whose first request waits until `end` is called. */
  async function openWaiting() {
    const app = await listen();
    const { id } = (await postTask(app, { url: pageUrl })).json();
    const socket = await open(app);
    socket.write(`GET /tasks/${id} HTTP/1.1\r\nhost: a\r\nprefer: wait=60\r\n\r\n`);
    const end = () => app.inject({ method: "POST", url: `/tasks/${id}/cancel` });
    return { app, socket, end };
  }

  it("are served one after the other, in their order", async () => {
    const { app, socket, end } = await openWaiting();
    const body = JSON.stringify({ url: `${pageUrl}/second` });
    const last = get.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n");
    socket.write(`${head}content-length: ${body.length}\r\n\r\n${body}${last}`);
    // Connections are read in turn, so that these requests came before that one.
    await ask(app);
    expect((await app.inject("/tasks/")).json().tasks).toHaveLength(1);
    await end();
    const statuses = (await text(socket)).match(/HTTP\/1\.1 \d+|"(?:state|status)":"\w+"/g);
    expect(statuses).toEqual([
      "HTTP/1.1 200",
      '"state":"canceled"',
      "HTTP/1.1 201",
      '"state":"queued"',
      "HTTP/1.1 200",
      '"status":"ok"',
    ]);
  });

  it("are so also if some come only while a later one is served", async () => {
    const { app, socket, end } = await openWaiting();
    let received = "";
    socket.on("data", (bytes) => (received += String(bytes)));
    const addWaiting = async () => {
      const { id } = (await postTask(app, { url: pageUrl })).json();
      socket.write(`GET /tasks/${id} HTTP/1.1\r\nhost: a\r\nprefer: wait=60\r\n\r\n`);
      await ask(app);
      return () => app.inject({ method: "POST", url: `/tasks/${id}/cancel` });
    };
    const endSecond = await addWaiting();
    await end();
    await expect.poll(() => received).toContain('"canceled"');
    const endThird = await addWaiting();
    const body = JSON.stringify({ url: `${pageUrl}/last` });
    socket.write(`${head}connection: close\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    await ask(app);
    await endSecond();
    await ask(app);
    expect((await app.inject("/tasks/")).json().tasks).toHaveLength(3);
    await endThird();
    await once(socket, "close");
    expect(received.match(/HTTP\/1\.1 \d+/g)).toHaveLength(4);
    expect((await app.inject("/tasks/")).json().tasks).toHaveLength(4);
  });

  it.each([
    ["in one packet with it", async () => {}],
    ["later", async (app: App) => void (await ask(app))],
  ])(
    "are not served if they come %s after one that asks for another protocol, whose response says so",
    async (_, wait) => {
      const { app, socket, end } = await openWaiting();
      const body = JSON.stringify({ url: `${pageUrl}/second` });
      socket.write(get.replace("\r\n\r\n", "\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c\r\n\r\n"));
      await wait(app);
      socket.write(`${head}content-length: ${body.length}\r\n\r\n${body}`);
      await ask(app);
      await end();
      const lines = (await text(socket)).match(/HTTP\/1\.1 \d+|connection: .*/gi);
      expect(lines).toEqual(["HTTP/1.1 200", "Connection: keep-alive", "HTTP/1.1 200", "Connection: close"]);
      expect((await app.inject("/tasks/")).json().tasks).toHaveLength(1);
    },
  );

  it("may be 16 that wait", async () => {
    const { app, socket, end } = await openWaiting();
    const last = get.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n");
    socket.write(get.repeat(15) + last);
    await ask(app);
    await end();
    expect((await text(socket)).match(/HTTP\/1\.1 200/g)).toHaveLength(17);
  });

  it("close the connection if more wait", async () => {
    const { app, socket } = await openWaiting();
    socket.write(get.repeat(17));
    expect(await text(socket).catch(() => "")).toBe("");
    await expect.poll(() => countOpen(app)).toBe(0);
  });
});

describe("clients of one address", () => {
  const limits = { maxConnectionsPerAddress: 3 };

  it("lose the connection that has waited longest for them when they open too many", async () => {
    const app = await listen(limits, ["203.0.113.9"]);
    const first = await open(app);
    const second = await open(app);
    const streams = await open(app);
    streams.write("GET /tasks/events HTTP/1.1\r\nhost: a\r\n\r\n");
    await once(streams, "data");
    const firstClosed = once(first, "close");
    expect(await ask(app)).toMatch(/^HTTP\/1\.1 200 /);
    await firstClosed;
    expect([second.readyState, streams.readyState]).toEqual(["open", "open"]);
  });

  it("are refused while all their connections are being served", async () => {
    const app = await listen(limits, ["203.0.113.9"]);
    for (let i = 0; i < 3; i += 1) {
      const stream = await open(app);
      stream.write("GET /tasks/events HTTP/1.1\r\nhost: a\r\n\r\n");
      await once(stream, "data");
    }
    expect(await text(await open(app)).catch(() => "")).toBe("");
    expect(await countOpen(app)).toBe(3);
  });

  it.each([
    ["addresses", ["203.0.113.1", "203.0.113.2"]],
    ["IPv6 networks", ["2001:db8:0:1::1", "2001:db8:0:2::1"]],
  ])("do not count against those of other %s", async (_, addresses) => {
    const app = await listen(limits, addresses);
    const sockets = [];
    for (let i = 0; i < 6; i += 1) sockets.push(await open(app));
    await expect.poll(() => countOpen(app)).toBe(6);
    await open(app);
    await once(sockets[0]!, "close");
  });

  it("are told apart by network if they have IPv6, and by address if it embeds IPv4", async () => {
    const app = await listen(limits, ["2001:db8::1", "2001:db8:0:0:5::2", "2001:db8::3:4"]);
    const first = await open(app);
    for (let i = 0; i < 3; i += 1) await open(app);
    await once(first, "close");
    const mapped = await listen(limits, ["::ffff:203.0.113.9", "203.0.113.9"]);
    const oldest = await open(mapped);
    for (let i = 0; i < 3; i += 1) await open(mapped);
    await once(oldest, "close");
  });

  it("on loopback are not limited: a reverse proxy has the connections of all", async () => {
    const app = await listen(limits);
    for (let i = 0; i < 20; i += 1) await open(app);
    await expect.poll(() => countOpen(app)).toBe(20);
  });
});

it("a client that ends its side of the connection while its request waits gets no response, and its task stays", async () => {
  const app = await listen();
  const body = JSON.stringify({ url: pageUrl });
  const socket = await open(app);
  socket.end(`${head}prefer: wait=60\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
  expect(await text(socket)).toBe("");
  await expect.poll(() => countOpen(app)).toBe(0);
  expect((await app.inject("/tasks/")).json().tasks).toMatchObject([{ url: pageUrl, state: "queued" }]);
});

it("closes the longest waiting of all connections when there are too many", async () => {
  const app = await listen({ maxConnections: 10 });
  for (let i = 0; i < 30; i += 1) {
    (await open(app)).write(`${head}content-length: 500\r\n\r\n{`);
    if (i % 5 === 0) expect(await ask(app)).toMatch(/^HTTP\/1\.1 200 /);
  }
  expect(await countOpen(app)).toBeLessThanOrEqual(10);
});

it("a client that reads nothing is cut off after the send time-out, in which time counts while the service runs", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  let ms = 0;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => ms);
  onTestFinished(() => clock.mockRestore());
  /** Lets a check come so late, and others on time. */
  const pass = (lateMs: number, checks = 1) => {
    for (let n = 0; n < checks; n += 1) {
      ms += lateMs;
      vi.advanceTimersByTime(1_000);
    }
  };
  const server = createServer((_request, response) => void response.end(Buffer.alloc(64 << 20)));
  const limits = { sendTimeoutMs: 5_000, maxConnectionsPerAddress: 9, maxConnections: 9, isProxy: () => false };
  limitConnections(server, limits, undefined);
  const client = connect(await listenOn(server), "127.0.0.1").on("error", () => {});
  onTestFinished(() => {
    client.destroy();
    server.close();
  });
  const served = once(server, "request");
  client.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
  const [{ socket }] = await served;
  await once(client, "readable");
  // Nothing else happens between checks.
  pass(1_000, 3);
  pass(3_600_000);
  expect(socket.destroyed).toBe(false);
  pass(1_000, 5);
  expect(socket.destroyed).toBe(true);
});
