import type { Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { createPostClient, everyNetwork } from "../../src/net/http/post-client.ts";
import { get, localClient, MiB, read } from "./client.ts";
import { startRawUpstream } from "./upstream.ts";

const ok = "HTTP/1.1 200 OK\r\n";
const chunked = `${ok}Transfer-Encoding: chunked\r\n\r\n`;

/** Starts a server that sends `start`, then `rest` again and again. */
function startFlood(start: string, rest: string) {
  const block = rest.repeat(Math.ceil(65_536 / rest.length));
  return startRawUpstream((socket) => {
    const more = () => {
      while (!socket.destroyed && socket.write(block));
    };
    socket.on("drain", more);
    socket.write(start);
    more();
  });
}

/** Resolves with the bytes that were sent once the client has closed the connection. */
async function sentTo(socket: Socket | undefined): Promise<number> {
  await expect.poll(() => socket?.closed).toBe(true);
  return socket?.bytesWritten ?? Number.NaN;
}

describe("bytes of a response that are not its body", () => {
  it.each([
    ["a reason phrase", "HTTP/1.1 200 ", "a"],
    ["empty lines before the status line", "", "\r\n"],
    ["spaces before a value", `${ok}A:`, " "],
    ["interim responses", "", "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n"],
    ["the extension of a chunk", `${chunked}1;`, "a"],
    ["zeros of the size of a chunk", chunked, "0"],
    ["extensions of chunks of one byte", chunked, `1;${"a".repeat(1_000)}\r\na\r\n`],
    ["spaces of a trailer", `${chunked}1\r\na\r\n0\r\nA:`, " "],
  ])("are bounded: %s without end", async (_what, start, rest) => {
    const upstream = await startFlood(start, rest);
    await expect(read(localClient(), upstream.url("/page"))).rejects.toMatchObject({
      code: "upstream_invalid",
      message: expect.stringContaining(`GET ${upstream.url("/page").href}: `),
    });
    expect(await sentTo(upstream.sockets[0])).toBeLessThan(16 * MiB);
  });

  it("are bounded in responses to POST, too", async () => {
    const upstream = await startFlood("HTTP/1.1 200 ", "a");
    const client = createPostClient({ allowNetworks: everyNetwork, perHost: 4, totalTimeoutMs: 90_000 });
    onTestFinished(() => client.close());
    const posted = client.post(upstream.url("/hook"), {
      headers: {},
      body: "{}",
      signal: new AbortController().signal,
    });
    await expect(posted).rejects.toMatchObject({
      code: "upstream_invalid",
      message: `POST ${upstream.url("/hook").href}: the response has over 131072 bytes besides the 0 of its body`,
    });
  });

  it.each([
    ["a head of 30 KiB and a body in the same read", `${ok}A: ${"a".repeat(30_000)}\r\nContent-Length: 200000\r\n\r\n`],
    [
      "ninety interim responses",
      `${`HTTP/1.1 103 Early Hints\r\nLink: ${"a".repeat(1_000)}\r\n\r\n`.repeat(90)}${ok}Content-Length: 200000\r\n\r\n`,
    ],
  ])("may be as many as servers send: %s", async (_what, head) => {
    const upstream = await startRawUpstream((socket) => void socket.write(head + "b".repeat(200_000)));
    expect(await read(localClient(), upstream.url("/"))).toHaveLength(200_000);
  });

  it("may be as many as servers send: chunks of one byte", async () => {
    const chunks = "00000001\r\nb\r\n".repeat(100_000);
    const upstream = await startRawUpstream((socket) => void socket.write(`${chunked}${chunks}0\r\n\r\n`));
    expect(await read(localClient(), upstream.url("/"))).toHaveLength(100_000);
  });

  it("count for each response of a connection alone", async () => {
    const head = `${ok}A: ${"a".repeat(30_000)}\r\nContent-Length: 1\r\n\r\nb`;
    const upstream = await startRawUpstream((socket) => {
      socket.write(head);
      socket.on("data", () => socket.write(head));
    });
    const client = localClient();
    for (let n = 0; n < 20; n += 1) expect(await read(client, upstream.url("/"))).toBe("b");
    expect(upstream.sockets.length).toBeLessThan(4);
  });

  it("are counted only as far as the reader has taken the body", async () => {
    const length = 8 * MiB;
    const upstream = await startRawUpstream((socket) => {
      socket.write(`${ok}Content-Length: ${length}\r\n\r\n`);
      socket.write(Buffer.alloc(length));
    });
    const response = await get(localClient(), upstream.url("/"), { maxBytes: length });
    let bytes = 0;
    for await (const chunk of response.body) {
      await new Promise(setImmediate);
      bytes += chunk.length;
    }
    expect(bytes).toBe(length);
  });
});

describe("a response whose head breaks HTTP", () => {
  it.each([
    ["states its length twice", `${ok}Content-Length: 2\r\nContent-Length: 2\r\n\r\nab`, /twice, or in two ways/],
    ["has a list of lengths", `${ok}Content-Length: 2, 2\r\n\r\nab`, /twice, or in two ways/],
    ["states its length in two ways", `${chunked.slice(0, -2)}Content-Length: 2\r\n\r\n`, /Content-Length|two ways/],
    ["begins with 100 (Continue)", `HTTP/1.1 100 Continue\r\n\r\n${ok}\r\n`, /interim/],
  ])("is invalid, not a lost connection: it %s", async (_what, head, message) => {
    const upstream = await startRawUpstream((socket) => void socket.end(head));
    const error = { code: "upstream_invalid", message: expect.stringMatching(message), retryable: false };
    await expect(read(localClient(), upstream.url("/"))).rejects.toMatchObject(error);
  });

  it("is none if the signal was aborted, for whatever reason", async () => {
    const abort = new AbortController();
    const upstream = await startRawUpstream(() => abort.abort("no error"));
    await expect(get(localClient(), upstream.url("/"), { signal: abort.signal })).rejects.toBe("no error");
  });

  it("is a lost connection if that ends within the head", async () => {
    const upstream = await startRawUpstream((socket) => void socket.end(`${ok}Content-Length: 2\r\n`));
    const error = { code: "upstream_unreachable", retryable: true };
    await expect(read(localClient(), upstream.url("/"))).rejects.toMatchObject(error);
  });

  it("may be the rest of the one before it: another connection may have a right one", async () => {
    const upstream = await startRawUpstream((socket) => {
      socket.write(`${ok}Content-Length: 1\r\n\r\nb`);
      socket.once("data", () => socket.write("and more\r\n"));
    });
    const client = localClient();
    const failures: unknown[] = [];
    for (let n = 0; n < 6; n += 1)
      await read(client, upstream.url("/")).catch((error: unknown) => failures.push(error));
    const message = expect.stringMatching(/the connection had bytes after the response before$/);
    expect(failures.length).toBeGreaterThan(0);
    for (const each of failures) expect(each).toMatchObject({ code: "upstream_unreachable", retryable: true, message });
  });
});
