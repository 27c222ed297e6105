import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import * as fc from "fast-check";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { EventSourceMessage } from "eventsource-parser";
import { createFeedClient, readEvents } from "../src/feed/feed-client.ts";
import { seed } from "./random.ts";

async function read(...chunks: (string | Uint8Array)[]): Promise<EventSourceMessage[]> {
  async function* bytes() {
    for (const chunk of chunks) yield typeof chunk === "string" ? Buffer.from(chunk) : chunk;
  }
  return (await Array.fromAsync(readEvents(bytes()))).flat();
}

describe("reading an event stream", () => {
  it("yields type, id and data of each event", async () => {
    expect(await read('event: task\nid: a-1\ndata: {"id":1}\n\nid: a-2\ndata:x\ndata: y\n\n')).toEqual([
      { event: "task", id: "a-1", data: '{"id":1}' },
      { event: undefined, id: "a-2", data: "x\ny" },
    ]);
  });

  it("skips comments, unknown fields, heartbeats without data and an incomplete event", async () => {
    const heartbeat = ": still here\nid: a-2\n\n";
    expect(await read(`${heartbeat}: hello\nretry: 5\ncolour\ndata: x\r\n\r\ndata: cut off`)).toEqual([
      { event: undefined, id: undefined, data: "x" },
    ]);
  });

  it("yields the events of one chunk together", async () => {
    async function* bytes() {
      yield Buffer.from("data: 1\n\ndata: 2\n\nda");
      yield Buffer.from("ta: 3\n\n");
    }
    const groups = await Array.fromAsync(readEvents(bytes()));
    expect(groups.map((events) => events.map(({ data }) => data))).toEqual([["1", "2"], ["3"]]);
  });

  it("yields the same events however the bytes are split", async () => {
    const text = "event: task\nid: 1\ndata: Fluß 🎬\n\n: beat\nid: 2\n\r\ndata: z\n\n";
    const whole = await read(text);
    const bytes = Buffer.from(text);
    const cuts = fc.array(fc.nat(bytes.length), { maxLength: 10 });
    await fc.assert(
      fc.asyncProperty(cuts, async (places) => {
        const edges = [0, ...places.toSorted((a, b) => a - b), bytes.length];
        const pieces = edges.slice(1).map((end, i) => bytes.subarray(edges[i], end));
        expect(await read(...pieces)).toEqual(whole);
      }),
      { seed },
    );
  });

  it("throws for an event that does not end", async () => {
    const chunk = Buffer.alloc(1024 * 1024, "x");
    await expect(read(...Array.from({ length: 20 }, () => chunk))).rejects.toThrow("too long");
    const lines = Buffer.alloc(1024 * 1024, `data: ${"x".repeat(100)}\n`);
    await expect(read(...Array.from({ length: 20 }, () => lines))).rejects.toThrow("too long");
  });
});

describe("following an event stream", () => {
  it("notices a service that is silent for 45 s, after a list was read and while one is, however many resets came before", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    let stream: ServerResponse | undefined;
    const server = createServer((_request, response) => {
      stream = response;
      response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
    });
    onTestFinished(() => server.close().closeAllConnections());
    await once(server.listen(0, "127.0.0.1"), "listening");
    let lists = 0;
    const reading = Promise.withResolvers<void>();
    const lost = [Promise.withResolvers<unknown>(), Promise.withResolvers<unknown>()];
    const client = createFeedClient({
      url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`),
      async readAll(signal) {
        lists += 1;
        if (lists < 5) return [lists];
        reading.resolve();
        await once(signal, "abort");
        throw signal.reason;
      },
      parse: async () => [0],
      onDisconnect: (error) => lost.shift()?.resolve(error),
    });
    const [afterwards, later] = lost.map(({ promise }) => promise);
    const leaving = new AbortController();
    const changes = client.follow(leaving.signal);
    const next = async () => (await changes.next()).value;
    const reset = () => stream?.write("id: 1\nevent: reset\ndata: {}\n\n");
    expect(await next()).toEqual([1]);
    reset();
    expect(await next()).toEqual([2]);
    reset();
    expect(await next()).toEqual([3]);
    const fourth = next();
    await vi.advanceTimersByTimeAsync(45_000);
    expect(await afterwards).toEqual(new Error("no data for 45 s"));
    const connected = once(server, "request");
    await vi.advanceTimersByTimeAsync(200);
    await connected;
    reset();
    expect(await fourth).toEqual([4]);
    reset();
    const fifth = next();
    await reading.promise;
    await vi.advanceTimersByTimeAsync(45_000);
    expect(await later).toEqual(new Error("no data for 45 s"));
    leaving.abort();
    expect(await fifth).toBeUndefined();
  });
});
