import { describe, expect, it, onTestFinished, vi } from "vitest";
import { bodyOf, get, localClient, read } from "./client.ts";
import { startRawUpstream, startUpstream } from "./upstream.ts";

/** Over a second the client counts ticks, so that no moment in which the process does not run ends what is not idle. */
const idleTimeoutMs = 1_100;
const totalTimeoutMs = 400;

describe("the idle time", () => {
  it("ends the wait for a response that does not start", async () => {
    const upstream = await startUpstream(() => {});
    await expect(get(localClient({ idleTimeoutMs }), upstream.url("/"))).rejects.toMatchObject({
      code: "upstream_timeout",
      retryable: true,
      message: `GET ${upstream.url("/").href}: no response within 1100 ms`,
    });
    await expect.poll(() => upstream.sockets[0]?.destroyed).toBe(true);
  });

  it("ends a body that stalls", async () => {
    const upstream = await startUpstream((_request, response) => response.write("first"));
    const response = await get(localClient({ idleTimeoutMs }), upstream.url("/"));
    await expect(bodyOf(response)).rejects.toMatchObject({
      code: "upstream_timeout",
      message: `GET ${upstream.url("/").href}: no bytes for 1100 ms`,
    });
    await expect.poll(() => upstream.sockets[0]?.destroyed).toBe(true);
  });

  it("ends a lookup without a result", async () => {
    const lookup = () => new Promise<never>(() => {});
    await expect(get(localClient({ idleTimeoutMs, lookup }), new URL("http://video.test/"))).rejects.toMatchObject({
      code: "upstream_timeout",
      message: "DNS lookup of video.test took over 1100 ms",
    });
  });

  it("gives a lookup at most 8 s", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const started = Promise.withResolvers<void>();
    const lookup = () => {
      started.resolve();
      return new Promise<never>(() => {});
    };
    const client = localClient({ idleTimeoutMs: 600_000, lookup });
    const response = get(client, new URL("http://video.test/"));
    await started.promise;
    vi.advanceTimersByTime(8_000);
    await expect(response).rejects.toMatchObject({
      message: "DNS lookup of video.test took over 8000 ms",
    });
  });

  it("ends a TLS handshake without a response", async () => {
    const upstream = await startRawUpstream(() => {});
    const url = new URL(`https://127.0.0.1:${upstream.port}/`);
    await expect(get(localClient({ idleTimeoutMs }), url)).rejects.toMatchObject({
      code: "upstream_timeout",
      message: `GET ${url.href}: no connection within 1100 ms`,
    });
  });

  it("does not include the time that the reader takes", async () => {
    const upstream = await startUpstream((_request, response) => response.end(Buffer.alloc(500_000)));
    const { body } = await get(localClient({ idleTimeoutMs }), upstream.url("/"));
    let bytes = 0;
    for await (const chunk of body) {
      if (bytes === 0) await new Promise((resolve) => setTimeout(resolve, 2 * idleTimeoutMs));
      bytes += chunk.length;
    }
    expect(bytes).toBe(500_000);
  });
});

describe("the least speed", () => {
  const minSpeed = { minSpeedBps: 10_000, speedWindowMs: 300 };

  it("ends a dripping body, with the rule and the value", async () => {
    const upstream = await startDrip("HTTP/1.1 200 OK\r\n\r\n", "a");
    await expect(read(localClient(minSpeed), upstream.url("/"))).rejects.toMatchObject({
      code: "upstream_timeout",
      retryable: true,
      message: expect.stringMatching(
        /: the response must have at least 10000 bytes\/s over 0.3 s \(MIN_SPEED_BPS\), it has \d+(\.\d+)?$/,
      ),
    });
    await expect.poll(() => upstream.sockets[0]?.destroyed).toBe(true);
  });

  it("ends a body that becomes slow", async () => {
    const start = `HTTP/1.1 200 OK\r\n\r\n${"a".repeat(50_000)}`;
    const upstream = await startDrip(start, "a");
    await expect(read(localClient(minSpeed), upstream.url("/"))).rejects.toMatchObject({
      code: "upstream_timeout",
    });
  });

  it("is 0 unless set: a dripping body may take its time", async () => {
    const upstream = await startDrip("HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n", "a");
    expect(await read(localClient({ speedWindowMs: 50 }), upstream.url("/"))).toHaveLength(30);
  });

  it("does not count the time that the reader takes", async () => {
    const upstream = await startUpstream((_request, response) => response.end(Buffer.alloc(20_000)));
    const client = localClient({ minSpeedBps: 100_000, speedWindowMs: 100 });
    const { body } = await get(client, upstream.url("/"));
    let bytes = 0;
    for await (const chunk of body) {
      await new Promise((resolve) => setTimeout(resolve, 300));
      bytes += chunk.length;
    }
    expect(bytes).toBe(20_000);
  });

  it("does not count the time in which the service itself does not run", async () => {
    const upstream = await startUpstream((_request, response) => response.write("first"));
    const client = localClient({ minSpeedBps: 100, speedWindowMs: 1_000 });
    const { body } = await get(client, upstream.url("/"));
    const iterator = body[Symbol.asyncIterator]();
    await iterator.next();
    const rest = iterator.next();
    upstream.sockets[0]!.end("0\r\n\r\n");
    // Nothing of this process runs meanwhile.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_000);
    expect(await rest).toMatchObject({ done: true });
  });

  it("leaves a body alone that is faster", async () => {
    const drop = "a".repeat(2_000);
    const upstream = await startDrip("HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n", drop);
    const client = localClient({ minSpeedBps: 1_000, speedWindowMs: 2_000 });
    expect(await read(client, upstream.url("/"))).toHaveLength(300_000);
  });
});

describe("the total time", () => {
  it.each([
    ["header", "HTTP/1.1 200 OK\r\nX-Drip: ", "a"],
    ["body", "HTTP/1.1 200 OK\r\n\r\n", "a"],
    ["row of early hints", "HTTP/1.1 103 Early Hints\r\n\r\n", "HTTP/1.1 103 Early Hints\r\n\r\n"],
    ["redirect's body", "HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", "a"],
  ])("ends a dripping %s", async (_what, start, drop) => {
    const upstream = await startDrip(start, drop);
    const client = localClient({ totalTimeoutMs });
    await expect(read(client, upstream.url("/"))).rejects.toMatchObject({
      code: "upstream_timeout",
      message: `GET ${upstream.url("/").href} did not complete within 400 ms`,
    });
    await expect.poll(() => upstream.sockets.every((socket) => socket.destroyed)).toBe(true);
  });

  it("does not include the dripping body of an error response", async () => {
    const upstream = await startDrip("HTTP/1.1 404 Not Found\r\n\r\n", "a");
    await expect(get(localClient(), upstream.url("/"))).rejects.toThrow("with status 404");
    await expect.poll(() => upstream.sockets[0]?.destroyed).toBe(true);
  });

  it("limits a lookup", async () => {
    const client = localClient({ totalTimeoutMs, lookup: () => new Promise<never>(() => {}) });
    await expect(get(client, new URL("http://video.test/"))).rejects.toMatchObject({
      code: "upstream_timeout",
      message: "GET http://video.test/ did not complete within 400 ms",
    });
  });

  it("ends a body that is not read, and lets the next request start", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const upstream = await startUpstream((_request, response) => response.write("first"));
    const client = localClient({ totalTimeoutMs, perHost: 1 });
    const { body } = await get(client, upstream.url("/"));
    vi.advanceTimersByTime(totalTimeoutMs);
    await expect.poll(() => upstream.sockets[0]?.destroyed).toBe(true);
    expect((await get(client, upstream.url("/"))).status).toBe(200);
    await expect(Array.fromAsync(body)).rejects.toMatchObject({ code: "upstream_timeout" });
  });
});

const startDrip = (start: string, drop: string) =>
  startRawUpstream((socket) => {
    socket.write(start);
    const drip = setInterval(() => socket.write(drop), 20);
    socket.on("close", () => clearInterval(drip));
  });
