import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { createHostSlots, type HostSlots } from "../../src/net/http/exchange.ts";
import { get, localClient, read } from "./client.ts";
import { startRawUpstream, startUpstream } from "./upstream.ts";

const never = new AbortController().signal;

/** `take` waits for a slot of one host; `order` lists the owners that have got one. */
function listTaken(slots: HostSlots) {
  const order: string[] = [];
  const take = async (owner: string) => {
    const release = await slots.acquire("a.test", owner, never);
    order.push(owner);
    return release;
  };
  return { order, take };
}

describe("host slots", () => {
  it("go to the first requests up to the limit, then in order of arrival", async () => {
    const slots = createHostSlots(2);
    const order: number[] = [];
    const take = async (n: number) => {
      const release = await slots.acquire("a.test", "anna", never);
      order.push(n);
      return release;
    };
    const [first, second, ...others] = [1, 2, 3, 4].map(take);
    await Promise.all([first, second]);
    expect(order).toEqual([1, 2]);
    (await second)?.();
    (await others[0])?.();
    await others[1];
    expect(order).toEqual([1, 2, 3, 4]);
  });

  it("go in turn to the owners that have the fewest", async () => {
    const slots = createHostSlots(1);
    const { order, take } = listTaken(slots);
    const [first, ...eves] = ["eve", "eve", "eve"].map(take);
    const bobs = ["bob", "bob"].map(take);
    (await first)?.();
    (await eves[0])?.();
    (await bobs[0])?.();
    (await eves[1])?.();
    await bobs[1];
    expect(order).toEqual(["eve", "eve", "bob", "eve", "bob"]);
  });

  it("are one more, for an owner that has none while another has all", async () => {
    const slots = createHostSlots(3);
    const { order, take } = listTaken(slots);
    const eves = ["eve", "eve", "eve", "eve"].map(take);
    const others = ["bob", "bob", "carl"].map(take);
    (await others[0])?.();
    expect(order).toEqual(["eve", "eve", "eve", "bob"]);
    (await others[1])?.();
    (await others[2])?.();
    (await eves[0])?.();
    await eves[3];
    expect(order.slice(4)).toEqual(["bob", "carl", "eve"]);
  });

  it("of different hosts are independent", async () => {
    const slots = createHostSlots(1);
    await slots.acquire("a.test", "anna", never);
    await slots.acquire("b.test", "anna", never);
    expect(slots.size).toBe(2);
  });

  it("are released once, however often that is called", async () => {
    const slots = createHostSlots(1);
    const release = await slots.acquire("a.test", "anna", never);
    release();
    release();
    const again = await slots.acquire("a.test", "anna", never);
    const waiting = slots.acquire("a.test", "anna", never);
    release();
    expect(slots.size).toBe(1);
    again();
    (await waiting)();
    expect(slots.size).toBe(0);
  });

  it("skip aborted waits, and use no memory for hosts without a request", async () => {
    const slots = createHostSlots(1);
    const release = await slots.acquire("a.test", "anna", never);
    const abort = new AbortController();
    const aborted = slots.acquire("a.test", "anna", abort.signal);
    const waiting = slots.acquire("a.test", "anna", never);
    abort.abort(new Error("enough"));
    await expect(aborted).rejects.toThrow("enough");
    await expect(slots.acquire("a.test", "anna", abort.signal)).rejects.toThrow("enough");
    release();
    (await waiting)();
    expect(slots.size).toBe(0);
  });
});

describe("a client with 3 concurrent requests per host", () => {
  it("never has more, and completes all", async () => {
    let most = 0;
    const held: ServerResponse[] = [];
    const respondToAll = () => {
      most = Math.max(most, held.length);
      for (const response of held.splice(0)) response.end("page");
    };
    const upstream = await startUpstream((_request, response) => {
      held.push(response);
      if (held.length === 3) setTimeout(respondToAll, 5);
    });
    const client = localClient({ perHost: 3 });
    const urls = Array.from({ length: 60 }, (_, n) => upstream.url(`/${n}`));
    const pages = await Promise.all(urls.map((url) => read(client, url)));
    expect(pages.every((page) => page === "page")).toBe(true);
    expect(most).toBe(3);
  });

  it("counts a request until its body has been received", async () => {
    const requests: string[] = [];
    const first = Promise.withResolvers<ServerResponse>();
    const upstream = await startUpstream(({ url = "" }, response) => {
      requests.push(url);
      response.write("first");
      if (url === "/1") first.resolve(response);
      else response.end();
    });
    const client = localClient({ perHost: 1 });
    const { body } = await get(client, upstream.url("/1"));
    const waiting = read(client, upstream.url("/2"));
    await read(localClient(), upstream.url("/other-client"));
    expect(requests).toEqual(["/1", "/other-client"]);
    (await first.promise).end();
    await Array.fromAsync(body);
    expect(await waiting).toBe("first");
    expect(requests).toEqual(["/1", "/other-client", "/2"]);
  });
});

/** Each of these must release its slot. */
describe("with one request at a time, the next one starts after", () => {
  it.each(["/404", "/redirect", "/lost", "/coding", "/invalid", "/cut", "/large", "/blocked", "/broken-gzip"])(
    "%s",
    async (path) => {
      const responses: Record<string, string> = {
        "/404": "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        "/redirect": "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n",
        "/lost": "",
        "/coding": "HTTP/1.1 200 OK\r\nContent-Encoding: compress\r\n\r\npage",
        "/invalid": "nonsense\r\n\r\n",
        "/cut": "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\npage",
        "/large": `HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n${"page".repeat(1000)}`,
        "/blocked": "HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1/\r\nContent-Length: 0\r\n\r\n",
        "/broken-gzip": "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\npage",
      };
      let connections = 0;
      const upstream = await startRawUpstream((socket) => {
        connections += 1;
        const bad = responses[path] ?? "";
        socket.end(connections === 1 ? bad : "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage");
      });
      const client = localClient({ perHost: 1 });
      await expect(read(client, upstream.url(path), { maxBytes: 100 })).rejects.toMatchObject({
        name: "ServiceError",
      });
      expect(await read(client, upstream.url("/page"))).toBe("page");
    },
  );

  it("an abort, a break and a stop in the middle", async () => {
    const upstream = await startUpstream((_request, response) => response.write("first"));
    const client = localClient({ perHost: 1 });
    const abort = new AbortController();
    const aborted = await get(client, upstream.url("/"), { signal: abort.signal });
    abort.abort(new Error("enough"));
    await expect(Array.fromAsync(aborted.body)).rejects.toThrow("enough");
    const left = await get(client, upstream.url("/"));
    for await (const chunk of left.body) if (chunk.length > 0) break;
    const returned = await get(client, upstream.url("/"));
    await returned.body[Symbol.asyncIterator]().return?.();
    expect((await get(client, upstream.url("/"))).status).toBe(200);
  });
});
