import { getEventListeners, once } from "node:events";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { openGuardedProxy } from "../../src/net/proxy/guarded-proxy.ts";
import { MiB } from "./client.ts";
import {
  connectToProxy,
  credentialLine,
  fetchThrough,
  localProxy,
  localRun,
  openRun,
  openTunnel,
  readAll,
  sendRaw,
} from "./proxy-client.ts";
import { startRawUpstream, startUpstream } from "./upstream.ts";

/** Starts a server that sends without end, as fast as it is read. */
const startFlood = (head = "HTTP/1.1 200 OK\r\n\r\n") =>
  startRawUpstream((socket) => {
    socket.write(head);
    const flood = () => {
      while (!socket.destroyed && socket.write(Buffer.alloc(64 * 1024)));
    };
    socket.on("drain", flood);
    flood();
  });

/** What Node's client says of a response that was cut off. */
const lost = /^(aborted|socket hang up|read ECONNRESET|write E\w+)$/;

const closedSockets = (sockets: readonly { destroyed: boolean }[]) =>
  sockets.filter(({ destroyed }) => destroyed).length;

describe("the limit of bytes", () => {
  it("ends a response that goes over it", async () => {
    const upstream = await startFlood();
    const run = openRun(await localProxy(), { maxBytes: MiB });
    await expect(fetchThrough(run, upstream.url("/"))).rejects.toThrow(lost);
    expect(run.error).toMatchObject({
      code: "too_large",
      message: expect.stringMatching(/^reading the page took \d+ bytes; the limit is 1048576 bytes$/),
    });
    await expect.poll(() => closedSockets(upstream.sockets)).toBe(1);
  });

  it("ends a tunnel that goes over it, with what the client sends", async () => {
    const upstream = await startRawUpstream((socket) => socket.resume());
    const run = openRun(await localProxy(), { maxBytes: MiB });
    const { socket } = await openTunnel(run, upstream.url("/").host);
    socket.write(Buffer.alloc(2 * MiB));
    await readAll(socket);
    expect(run.error?.code).toBe("too_large");
    await expect.poll(() => closedSockets(upstream.sockets)).toBe(1);
  });

  it("ends a request whose body goes over it", async () => {
    const upstream = await startUpstream((request) => request.resume());
    const run = openRun(await localProxy(), { maxBytes: MiB });
    const upload = { method: "POST", body: Buffer.alloc(2 * MiB) };
    await expect(fetchThrough(run, upstream.url("/"), upload)).rejects.toThrow(lost);
    expect(run.error?.code).toBe("too_large");
    await expect.poll(() => closedSockets(upstream.sockets)).toBe(1);
  });

  it("counts all connections together, with their headers, and ends them all", async () => {
    const upstream = await startUpstream((_request, response) =>
      response.writeHead(200, { "x-large": "a".repeat(10_000) }).end(),
    );
    const idle = await startRawUpstream(() => {});
    const run = openRun(await localProxy(), { maxBytes: 100_000 });
    const { socket } = await openTunnel(run, idle.url("/").host);
    const ended = readAll(socket);
    const statuses: number[] = [];
    while (run.error === null) statuses.push((await fetchThrough(run, upstream.url("/"))).status);
    expect(statuses).toEqual(Array(statuses.length).fill(200));
    expect(statuses.length).toBeGreaterThan(5);
    expect(statuses.length).toBeLessThan(11);
    await ended;
    expect(run.error.code).toBe("too_large");
    expect((await fetchThrough(run, upstream.url("/"))).status).toBe(407);
  });

  it("replaces an earlier error: it is what ended the run", async () => {
    const upstream = await startFlood();
    const run = openRun(await localProxy(), { maxBytes: MiB });
    expect((await openTunnel(run, "10.0.0.1:80")).status).toBe(403);
    await expect(fetchThrough(run, upstream.url("/"))).rejects.toThrow(lost);
    expect(run.error?.code).toBe("too_large");
  });

  it("is each run's own", async () => {
    const upstream = await startFlood();
    const page = await startUpstream((_request, response) => response.end("page"));
    const proxy = await localProxy();
    const [one, other] = [openRun(proxy, { maxBytes: MiB }), openRun(proxy, { maxBytes: MiB })];
    await expect(fetchThrough(one, upstream.url("/"))).rejects.toThrow(lost);
    expect((await fetchThrough(other, page.url("/"))).text).toBe("page");
    expect(other.error).toBeNull();
  });
});

describe("the end of a run", () => {
  it.each(["close", "abort"])("destroys all its sockets on %s, and no others", async (how) => {
    const upstream = await startRawUpstream(() => {});
    const { host, href } = upstream.url("/");
    const proxy = await localProxy();
    const abort = new AbortController();
    const [run, other] = [openRun(proxy, { signal: abort.signal }), openRun(proxy)];
    const kept = (await openTunnel(other, host)).socket;
    const tunnel = (await openTunnel(run, host)).socket;
    const pending = sendRaw(run, `GET ${href} HTTP/1.1\r\nHost: a\r\n${credentialLine(run)}\r\n`);
    await expect.poll(() => upstream.sockets.length).toBe(3);
    if (how === "close") run.close();
    else abort.abort();
    await readAll(tunnel);
    expect(await pending).toBe("");
    await expect.poll(() => closedSockets(upstream.sockets)).toBe(2);
    expect(run.error).toBeNull();
    kept.write("still here");
    await once(upstream.sockets[0]!, "data");
  });

  it("ends connections that are still being opened", async () => {
    const looked = Promise.withResolvers<void>();
    const lookup = () => {
      looked.resolve();
      return new Promise<never>(() => {});
    };
    const run = await localRun({ lookup });
    const tunnel = openTunnel(run, "video.test:80");
    await looked.promise;
    run.close();
    expect((await tunnel).text).toBe("");
    expect(run.error).toBeNull();
  });

  it("leaves nothing listening on its signal", async () => {
    const { signal } = new AbortController();
    const proxy = await localProxy();
    const run = openRun(proxy, { signal });
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
    run.close();
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });
});

describe("a closed client connection", () => {
  it("ends the request to the server, and is no failure of it", async () => {
    const upstream = await startRawUpstream(() => {});
    const run = await localRun();
    const { href } = upstream.url("/");
    const socket = await connectToProxy(run);
    socket.write(`GET ${href} HTTP/1.1\r\nHost: a\r\n${credentialLine(run)}\r\n`);
    await expect.poll(() => upstream.sockets.length).toBe(1);
    socket.resetAndDestroy();
    await expect.poll(() => closedSockets(upstream.sockets)).toBe(1);
    expect(run.error).toBeNull();
  });

  it("ends its tunnel's other side", async () => {
    const upstream = await startFlood("");
    const run = await localRun();
    const { socket } = await openTunnel(run, upstream.url("/").host);
    socket.write("go");
    await once(socket, "readable");
    socket.resetAndDestroy();
    await expect.poll(() => closedSockets(upstream.sockets)).toBe(1);
    expect(run.error).toBeNull();
  });
});

describe("the idle time", () => {
  // Over a second: a busy machine may need a part of one between a connection and its request.
  const idleTimeoutMs = 1_100;

  it.each([
    ["no response", () => {}, /no response within 1100 ms/],
    ["half a response", halfResponse, /no bytes for 1100 ms/],
  ] as const)("ends a request that gets %s", async (_what, talk, message) => {
    const upstream = await startRawUpstream(talk);
    const run = await localRun({ idleTimeoutMs });
    await fetchThrough(run, upstream.url("/")).catch(() => {});
    expect(run.error).toMatchObject({
      code: "upstream_timeout",
      message: expect.stringMatching(message),
    });
    await expect.poll(() => closedSockets(upstream.sockets)).toBe(1);
  });

  it("ends a tunnel whose server owes a reply", async () => {
    const upstream = await startRawUpstream(() => {});
    const run = await localRun({ idleTimeoutMs });
    const { socket } = await openTunnel(run, upstream.url("/").host);
    socket.write("hello?");
    await readAll(socket);
    expect(run.error).toMatchObject({ code: "upstream_timeout", retryable: true });
    await expect.poll(() => closedSockets(upstream.sockets)).toBe(1);
  });

  it("ends a tunnel that nobody uses, which is no failure", async () => {
    const upstream = await startRawUpstream((socket) => socket.write("reply"));
    const run = await localRun({ idleTimeoutMs });
    const { socket } = await openTunnel(run, upstream.url("/").host);
    socket.write("hello");
    expect(await readAll(socket)).toBe("reply");
    expect(run.error).toBeNull();
  });

  it("ends a lookup without a result, after 8 s at most", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const started = Promise.withResolvers<void>();
    const lookup = () => {
      started.resolve();
      return new Promise<never>(() => {});
    };
    const run = await localRun({ lookup });
    const fetched = fetchThrough(run, new URL("http://video.test/"));
    await started.promise;
    vi.advanceTimersByTime(8_000);
    expect((await fetched).status).toBe(504);
    expect(run.error?.message).toBe("DNS lookup of video.test took over 8000 ms");
  });

  it.each(["", "GET http://127.0.0.1/ HTTP/1.1\r\nX-Slow: "])(
    "ends a connection whose request stays unfinished: %j",
    async (start) => {
      const proxy = await localProxy({ idleTimeoutMs });
      const socket = await connectToProxy(openRun(proxy));
      const drip = setInterval(() => start !== "" && socket.write("a"), 20);
      socket.write(start);
      await readAll(socket);
      clearInterval(drip);
      expect(socket.destroyed).toBe(true);
    },
  );

  it.each(["response", "tunnel"])(
    "ends a %s that its client does not read, having taken little memory",
    async (kind) => {
      const upstream = await startFlood();
      // Long enough for a busy machine: what the server sends at first must not be late.
      const run = openRun(await localProxy({ idleTimeoutMs: 2_000 }), { maxBytes: 1024 * MiB });
      const { host, href } = upstream.url("/");
      const socket = kind === "tunnel" ? (await openTunnel(run, host)).socket : await connectToProxy(run);
      socket.pause();
      socket.write(`GET ${href} HTTP/1.1\r\nHost: a\r\n${credentialLine(run)}\r\n`);
      await expect.poll(() => closedSockets(upstream.sockets)).toBe(1);
      expect(upstream.sockets[0]?.bytesWritten).toBeLessThan(32 * MiB);
      expect(run.error).toBeNull();
    },
  );

  it("is no limit for a slow response, which the run's signal ends", async () => {
    const end = new AbortController();
    const upstream = await startRawUpstream((socket) => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      const drip = setInterval(() => socket.write("a"), 20);
      socket.on("close", () => clearInterval(drip));
      setTimeout(() => end.abort(), 4_000);
    });
    const proxy = await localProxy({ idleTimeoutMs: 3_000 });
    const run = openRun(proxy, { signal: end.signal });
    await expect(fetchThrough(run, upstream.url("/"))).rejects.toThrow(lost);
    await expect.poll(() => closedSockets(upstream.sockets)).toBe(1);
    expect(run.error).toBeNull();
  });
});

describe("many connections", () => {
  it("relays 1,000 tunnels at a time, and closes them all with their run", async () => {
    const upstream = await startRawUpstream((socket) => socket.write("reply"));
    const { host } = upstream.url("/");
    // The first may wait for the last for as long as a busy machine takes.
    const run = await localRun({ connectionsPerRun: 1_000, maxConnections: 2_000, idleTimeoutMs: 300_000 });
    const tunnels = await Promise.all(Array.from({ length: 1_000 }, () => openTunnel(run, host)));
    const replies = tunnels.map(async ({ socket }) => {
      socket.write("hello");
      const [reply] = (await once(socket, "data")) as [Buffer];
      return reply.toString();
    });
    expect(await Promise.all(replies)).toEqual(tunnels.map(() => "reply"));
    const ends = tunnels.map(({ socket }) => readAll(socket));
    run.close();
    await Promise.all(ends);
    await expect.poll(() => closedSockets(upstream.sockets)).toBe(1_000);
    expect(run.error).toBeNull();
  });

  it("refuses one more than a run may have, until another has ended", async () => {
    const upstream = await startRawUpstream(() => {});
    const { host } = upstream.url("/");
    const proxy = await localProxy({ connectionsPerRun: 2 });
    const [run, other] = [openRun(proxy), openRun(proxy)];
    const [first] = [await openTunnel(run, host), await openTunnel(run, host)];
    expect(await openTunnel(run, host)).toMatchObject({ status: 503 });
    expect(run.error).toMatchObject({ code: "unavailable" });
    expect((await openTunnel(other, host)).status).toBe(200);
    first.socket.destroy();
    await expect.poll(async () => (await openTunnel(run, host)).status).toBe(200);
  });

  it("closes what is over the limit of all local programs", async () => {
    const proxy = await localProxy({ maxConnections: 1 });
    const run = openRun(proxy);
    const { status } = await openTunnel(run, "10.0.0.1:80");
    expect(status).toBe(403);
    await connectToProxy(run);
    expect(await readAll(await connectToProxy(run))).toBe("");
  });
});

describe("a closed proxy", () => {
  it("has no socket left, and opens no run", async () => {
    const upstream = await startRawUpstream(() => {});
    const proxy = await openGuardedProxy({ allowNetworks: ["127.0.0.0/8"] });
    const run = openRun(proxy);
    const { socket } = await openTunnel(run, upstream.url("/").host);
    const unused = await connectToProxy(run);
    await Promise.all([proxy.close(), proxy.close(), readAll(socket), readAll(unused)]);
    await expect.poll(() => closedSockets(upstream.sockets)).toBe(1);
    expect(() => openRun(proxy)).toThrow("the proxy is closed");
    await expect(fetchThrough(run, upstream.url("/"))).rejects.toThrow("ECONNREFUSED");
  });
});

function halfResponse(socket: { write(text: string): void }): void {
  socket.write("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
}
