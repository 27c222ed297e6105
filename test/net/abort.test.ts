import { getEventListeners, once } from "node:events";
import { gzipSync } from "node:zlib";
import { expect, it } from "vitest";
import { get, localClient, read } from "./client.ts";
import { startRawUpstream, startUpstream } from "./upstream.ts";

const reason = new Error("changed my mind");

it("requests nothing for a signal that is aborted already", async () => {
  const upstream = await startUpstream((_request, response) => response.end());
  const signal = AbortSignal.abort(reason);
  await expect(get(localClient(), upstream.url("/"), { signal })).rejects.toBe(reason);
  expect(upstream.sockets).toEqual([]);
});

it.each([reason, "a text", null])("rejects with the signal's reason, %o, before the response", async (why) => {
  const abort = new AbortController();
  const upstream = await startUpstream(() => abort.abort(why));
  const failure = get(localClient(), upstream.url("/"), { signal: abort.signal });
  expect(await failure.catch((error: unknown) => error)).toBe(why);
  await expect.poll(() => upstream.sockets[0]?.destroyed).toBe(true);
});

it.each(["identity", "gzip"])("ends a body in %s and its connection", async (coding) => {
  const abort = new AbortController();
  const upstream = await startUpstream((_request, response) => {
    response.setHeader("content-encoding", coding);
    const start = Buffer.alloc(100_000, "page");
    response.write(coding === "gzip" ? gzipSync(start).subarray(0, -8) : start);
  });
  const { body } = await get(localClient(), upstream.url("/"), { signal: abort.signal });
  const [socket] = upstream.sockets;
  await expect(async () => {
    for await (const chunk of body) {
      expect(chunk.length).toBeGreaterThan(0);
      abort.abort(reason);
    }
  }).rejects.toBe(reason);
  await expect.poll(() => socket?.destroyed).toBe(true);
});

it("ends a body that is received completely but not decoded yet", async () => {
  const abort = new AbortController();
  const upstream = await startUpstream((_request, response) => {
    response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync("page"));
  });
  const client = localClient({ perHost: 1 });
  const { body } = await get(client, upstream.url("/"), { signal: abort.signal });
  // The only slot is free again, so the whole response has been received.
  expect(await read(client, upstream.url("/"))).toBe("page");
  abort.abort(reason);
  await expect(Array.fromAsync(body)).rejects.toBe(reason);
});

it.each(["/page", "/404", "/stalled"])("leaves no listener on the signal after %s", async (path) => {
  const upstream = await startUpstream(({ url }, response) => {
    response.statusCode = url === "/404" ? 404 : 200;
    if (url === "/stalled") response.write("first");
    else response.end("page");
  });
  const { signal } = new AbortController();
  const client = localClient();
  if (path === "/stalled") await leave((await get(client, upstream.url(path), { signal })).body);
  else await read(client, upstream.url(path), { signal }).catch(() => {});
  await expect.poll(() => getEventListeners(signal, "abort")).toEqual([]);
});

it("ignores an abort after the body was read to its end", async () => {
  const abort = new AbortController();
  const upstream = await startUpstream((_request, response) => response.end("page"));
  const client = localClient({ perHost: 1 });
  expect(await read(client, upstream.url("/"), { signal: abort.signal })).toBe("page");
  abort.abort(reason);
  expect(await read(client, upstream.url("/"))).toBe("page");
  expect(upstream.sockets).toHaveLength(1);
});

it.each([
  ["break", leave],
  [
    "return() before the first byte",
    async (body: AsyncIterable<Uint8Array>) => {
      await body[Symbol.asyncIterator]().return?.();
    },
  ],
])("closes the connection when the iteration of the body ends with %s", async (_how, stop) => {
  const upstream = await startUpstream((_request, response) => response.write("first"));
  const { body } = await get(localClient(), upstream.url("/"));
  const [socket] = upstream.sockets;
  const closed = socket === undefined ? undefined : once(socket, "close");
  await stop(body);
  await closed;
  expect(socket?.destroyed).toBe(true);
});

async function leave(body: AsyncIterable<Uint8Array>): Promise<void> {
  for await (const chunk of body) if (chunk.length > 0) break;
}

it("ends the wait for a lookup and releases the slot", async () => {
  const abort = new AbortController();
  const result = Promise.withResolvers<{ address: string; family: number }[]>();
  const lookup = () => {
    abort.abort(reason);
    return result.promise;
  };
  const upstream = await startUpstream((_request, response) => response.end("page"));
  const client = localClient({ lookup, perHost: 1 });
  const url = upstream.url("/", "video.test");
  await expect(get(client, url, { signal: abort.signal })).rejects.toBe(reason);
  const next = read(client, url);
  result.resolve([{ address: "127.0.0.1", family: 4 }]);
  expect(await next).toBe("page");
});

it("ends the wait for a TLS handshake", async () => {
  const abort = new AbortController();
  const upstream = await startRawUpstream(() => abort.abort(reason));
  const url = new URL(`https://127.0.0.1:${upstream.port}/`);
  await expect(get(localClient(), url, { signal: abort.signal })).rejects.toBe(reason);
  expect(upstream.sockets).toHaveLength(1);
});

it("ends a chain of redirects between two hops", async () => {
  const abort = new AbortController();
  const paths: string[] = [];
  const upstream = await startUpstream(({ url = "" }, response) => {
    paths.push(url);
    if (url === "/3") abort.abort(reason);
    response.writeHead(302, { location: `/${Number(url.slice(1)) + 1}` }).end();
  });
  await expect(get(localClient(), upstream.url("/1"), { signal: abort.signal })).rejects.toBe(reason);
  await expect.poll(() => upstream.sockets.every(({ destroyed }) => destroyed)).toBe(true);
  expect(paths).toEqual(["/1", "/2", "/3"]);
});
