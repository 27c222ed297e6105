import { once } from "node:events";
import { request } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { Type } from "@sinclair/typebox";
import { pino } from "pino";
import { afterEach, describe, expect, it, vi } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import type { App } from "../../src/http/app.ts";
import { type AppOptions, buildApp } from "./app.ts";
import { createPageResolver } from "../resolvers/page/local-reader.ts";
import type { Resolver } from "../../src/resolvers/resolver.ts";
import { createSavedClient } from "../resolvers/page/saved-client.ts";
import { getInfo, pageUrl } from "./requests.ts";

const Output = Type.Object({ url: Type.String(), reading: Type.Integer() });

/** A resolver whose reads end when the test says so. */
function createHeldResolver() {
  const readings: (PromiseWithResolvers<void> & { signal: AbortSignal })[] = [];
  const resolver: Resolver<typeof Output> = {
    name: "held",
    output: Output,
    async resolve(url, { signal }) {
      const hold = Promise.withResolvers<void>();
      signal.addEventListener("abort", () => hold.reject(signal.reason));
      const reading = readings.push({ ...hold, signal });
      await hold.promise;
      return { url: url.href, reading };
    },
    close: async () => {},
  };
  return { resolver, readings };
}

/** A resolver that numbers its reads. */
function createCountingResolver(): Resolver {
  let reading = 0;
  return {
    name: "counting",
    output: Output,
    resolve: async (url) => ({ url: url.href, reading: ++reading }),
    close: async () => {},
  };
}

function createFailingResolver(error: Error): Resolver {
  return {
    name: "failing",
    output: Output,
    resolve: () => Promise.reject(error),
    close: async () => {},
  };
}

let app: App;
async function build(options: AppOptions): Promise<App> {
  app = await buildApp(options);
  return app;
}
afterEach(async () => {
  vi.useRealTimers();
  await app.close();
});

describe("GET /info", () => {
  it("responds with the stub's open record by default", async () => {
    const response = await getInfo(await build({}), pageUrl);
    expect(response.statusCode).toBe(200);
    expect(response.json()).toEqual({ url: pageUrl, resolver: "stub" });
  });

  it("responds with the fields of the resolver's schema only", async () => {
    const leaky: Resolver = {
      name: "leaky",
      output: Output,
      resolve: async (url) => ({ url: url.href, reading: 7, secret: "x" }),
      close: async () => {},
    };
    const response = await getInfo(await build({ resolver: leaky }), pageUrl);
    expect(response.json()).toEqual({ url: pageUrl, reading: 7 });
  });

  it("asks the resolver for the entries after a cursor, and caches those of each cursor", async () => {
    const Listed = Type.Object({ cursor: Type.String(), reading: Type.Integer() });
    let reading = 0;
    const resolver: Resolver = {
      name: "listing",
      output: Listed,
      resolve: async (_url, { entriesCursor = "none" }) => ({ cursor: entriesCursor, reading: ++reading }),
      close: async () => {},
    };
    await build({ resolver });
    const read = async (cursor: string) => {
      const url = `/info?url=${encodeURIComponent(pageUrl)}${cursor}`;
      return (await app.inject({ url, headers: { accept: "application/json" } })).json<object>();
    };
    expect(await read("")).toEqual({ cursor: "none", reading: 1 });
    expect(await read("&entries_cursor=a")).toEqual({ cursor: "a", reading: 2 });
    expect(await read("&entries_cursor=b")).toEqual({ cursor: "b", reading: 3 });
    expect(await read("&entries_cursor=a")).toEqual({ cursor: "a", reading: 2 });
    expect(await read("")).toEqual({ cursor: "none", reading: 1 });
  });

  it.each(["x", "", "eXQtZGxwIDA", "x".repeat(101)])("refuses a cursor that it has not given: %j", async (cursor) => {
    const client = createSavedClient({});
    await build({ resolver: createPageResolver({ client, pageMaxBytes: 1e6 }) });
    const url = `/info?url=${encodeURIComponent(pageUrl)}&entries_cursor=${cursor}`;
    const response = await app.inject({ url, headers: { accept: "application/json" } });
    expect(response.statusCode).toBe(400);
    expect(response.json()).toMatchObject({ code: "invalid_request", errors: [{ pointer: "/entries_cursor" }] });
    expect(client.requested).toEqual([]);
  });

  it("shares one read between concurrent requests", async () => {
    const { resolver, readings } = createHeldResolver();
    await build({ resolver });
    const asked = Array.from({ length: 50 }, () => getInfo(app, pageUrl));
    await vi.waitUntil(() => readings.length > 0, 60_000);
    readings[0]?.resolve();
    const responses = await Promise.all(asked);
    expect(responses.map((response) => response.json().reading)).toEqual(Array(50).fill(1));
    expect(readings).toHaveLength(1);
  });

  it("caches for the time to live, and Age tells how old the result is", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const { resolver, readings } = createHeldResolver();
    await build({ resolver, infoCacheTtlS: 60 });
    const first = getInfo(app, pageUrl);
    await vi.waitUntil(() => readings.length > 0, 60_000);
    readings[0]?.resolve();
    expect((await first).headers["age"]).toBe("0");
    vi.advanceTimersByTime(59_000);
    const second = await getInfo(app, pageUrl);
    expect([second.json().reading, second.headers["age"]]).toEqual([1, "59"]);
    vi.advanceTimersByTime(2_000);
    const third = getInfo(app, pageUrl);
    await vi.waitUntil(() => readings.length > 1, 60_000);
    readings[1]?.resolve();
    expect([(await third).json().reading, (await third).headers["age"]]).toEqual([2, "0"]);
  });

  it("reads the page again for Cache-Control: no-cache, and caches the result", async () => {
    await build({ resolver: createCountingResolver() });
    const readingOf = async (headers = {}) =>
      (await getInfo(app, pageUrl, headers)).json<{ reading: number }>().reading;
    expect(await readingOf()).toBe(1);
    expect(await readingOf()).toBe(1);
    expect(await readingOf({ "cache-control": "no-cache" })).toBe(2);
    expect(await readingOf()).toBe(2);
  });

  it("uses no cached result older than Cache-Control: max-age", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    await build({ resolver: createCountingResolver() });
    const ask = async (control: string) =>
      (await getInfo(app, pageUrl, { "cache-control": control })).json<{ reading: number }>().reading;
    expect(await ask("max-age=10")).toBe(1);
    vi.advanceTimersByTime(5_000);
    expect(await ask("max-age=10")).toBe(1);
    expect(await ask("x-no-cache-y")).toBe(1);
    expect(await ask("max-stale, max-age=4")).toBe(2);
    expect(await ask("max-age=00")).toBe(3);
  });

  it("does not cache errors", async () => {
    let tries = 0;
    const resolver: Resolver = {
      name: "flaky",
      output: Output,
      resolve: async (url) => {
        tries += 1;
        if (tries === 1) throw new ServiceError("upstream_unreachable", "example.com is unreachable");
        return { url: url.href, reading: tries };
      },
      close: async () => {},
    };
    await build({ resolver });
    expect((await getInfo(app, pageUrl)).statusCode).toBe(502);
    expect((await getInfo(app, pageUrl)).json().reading).toBe(2);
  });

  it("stops reading when the only client disconnects", async () => {
    const { resolver, readings } = createHeldResolver();
    await build({ resolver });
    const call = await hangingCall(pageUrl);
    await vi.waitUntil(() => readings.length > 0, 60_000);
    call.destroy();
    await vi.waitUntil(() => readings[0]?.signal.aborted, 60_000);
  });

  it("logs that a client disconnected, and no failure", async () => {
    const { resolver, readings } = createHeldResolver();
    const lines: { level: number; msg: string }[] = [];
    const stream = { write: (line: string) => lines.push(JSON.parse(line)) };
    await build({ resolver, logger: pino({}, stream) });
    const call = await hangingCall(pageUrl);
    await vi.waitUntil(() => readings.length > 0, 60_000);
    call.destroy();
    await vi.waitUntil(() => lines.some(({ msg }) => msg === "client disconnected"), 60_000);
    await app.close();
    expect(lines.filter(({ level }) => level > 30)).toEqual([]);
  });

  it("continues reading while one of several clients waits", async () => {
    const { resolver, readings } = createHeldResolver();
    await build({ resolver });
    const disconnected = connectionClosed();
    const leaving = await hangingCall(pageUrl);
    await vi.waitUntil(() => readings.length > 0, 60_000);
    const staying = getInfo(app, pageUrl);
    leaving.destroy();
    await disconnected;
    readings[0]?.resolve();
    expect((await staying).json()).toEqual({ url: pageUrl, reading: 1 });
  });

  it("fails when a page takes longer than the limit", async () => {
    const { resolver, readings } = createHeldResolver();
    const response = await getInfo(await build({ resolver, infoTimeoutMs: 20 }), pageUrl);
    expect(response.statusCode).toBe(504);
    expect(response.json()).toMatchObject({ code: "upstream_timeout", retryable: true });
    expect(response.json().detail).toContain("20 ms (INFO_TIMEOUT_MS)");
    expect(readings[0]?.signal.aborted).toBe(true);
  });

  it("refuses further pages while the limit is being read", async () => {
    const { resolver, readings } = createHeldResolver();
    await build({ resolver, infoConcurrency: 2 });
    const reading = [getInfo(app, `${pageUrl}1`), getInfo(app, `${pageUrl}2`)];
    await vi.waitUntil(() => readings.length === 2, 60_000);
    const refused = await getInfo(app, `${pageUrl}3`);
    expect(refused.statusCode).toBe(429);
    expect(refused.headers["retry-after"]).toBe("1");
    expect(refused.json()).toMatchObject({ code: "too_many_requests", retryable: true });
    for (const { resolve } of readings) resolve();
    expect((await Promise.all(reading)).map((response) => response.statusCode)).toEqual([200, 200]);
  });

  it("ends reads in flight with 503 when the service stops", async () => {
    const { resolver, readings } = createHeldResolver();
    await build({ resolver, finishMs: 20 });
    const url = await app.listen({ port: 0, host: "127.0.0.1" });
    const asked = fetch(`${url}/info?url=${encodeURIComponent(pageUrl)}`);
    await vi.waitUntil(() => readings.length > 0, 60_000);
    await app.close();
    const response = await asked;
    expect(response.status).toBe(503);
    expect(response.headers.get("retry-after")).not.toBeNull();
    expect(await response.json()).toMatchObject({ code: "unavailable" });
  });

  it("refuses requests over an open connection while it stops", async () => {
    const { resolver, readings } = createHeldResolver();
    await build({ resolver });
    const url = new URL(await app.listen({ port: 0, host: "127.0.0.1" }));
    const socket = connect(Number(url.port), url.hostname);
    const responses = text(socket);
    socket.write(`GET /info?url=${encodeURIComponent(pageUrl)} HTTP/1.1\r\nhost: a\r\n\r\n`);
    await vi.waitUntil(() => readings.length > 0, 60_000);
    const closed = app.close();
    await vi.waitUntil(() => !app.server.listening, 60_000);
    const arrived = once(app.server, "request");
    socket.write("GET /tasks/ HTTP/1.1\r\nhost: a\r\n\r\n");
    await arrived;
    readings[0]?.resolve();
    const [first, second] = (await responses).split(/(?<=})(?=HTTP)/);
    expect(first).toMatch(/^HTTP\/1\.1 200 OK/);
    expect(second).toMatch(/^HTTP\/1\.1 503 [^]*retry-after: \d+[^]*"code":"unavailable"/i);
    await closed;
  });

  it.each([
    [new ServiceError("address_blocked", "10.0.0.1 is private"), 422, false],
    [new ServiceError("upstream_unreachable", "no such host"), 502, true],
    [new ServiceError("upstream_status", "the page answered 404", { upstreamStatus: 404 }), 502, false, 404],
    [new ServiceError("upstream_status", "503", { retryable: true, retryAfterS: 2.2 }), 502, true],
    [new ServiceError("upstream_invalid", "other bytes", { upstreamStatus: 206 }), 502, false],
    [new ServiceError("upstream_timeout", "too slow"), 504, true],
  ])(
    "responds to %s with its status, retryable and the site's status",
    async (error, status, retryable, upstream?: number) => {
      const response = await getInfo(await build({ resolver: createFailingResolver(error) }), pageUrl);
      expect(response.statusCode).toBe(status);
      expect(response.json()).toMatchObject({ code: error.code, detail: error.message, retryable });
      expect(response.json<{ upstream_status?: number }>().upstream_status).toBe(upstream);
      const wait = error.retryAfterS === undefined ? undefined : "3";
      expect(response.headers["retry-after"]).toBe(wait);
    },
  );

  it("reveals nothing about an unexpected error", async () => {
    const failing = createFailingResolver(new TypeError("an internal secret"));
    const response = await getInfo(await build({ resolver: failing }), pageUrl);
    expect(response.statusCode).toBe(500);
    expect(response.json()).toMatchObject({ code: "internal" });
    expect(response.body).not.toContain("secret");
  });
});

async function connectionClosed(): Promise<void> {
  const [socket] = await once(app.server, "connection");
  await once(socket, "close");
}

async function hangingCall(page: string) {
  const url = app.server.listening
    ? `http://127.0.0.1:${(app.server.address() as { port: number }).port}`
    : await app.listen({ port: 0, host: "127.0.0.1" });
  const call = request(`${url}/info?url=${encodeURIComponent(page)}`);
  call.on("error", () => {});
  call.end();
  return call;
}
