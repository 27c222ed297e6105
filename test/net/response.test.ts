import { describe, expect, it } from "vitest";
import { bodyOf, get, localClient, MiB, read } from "./client.ts";
import { startRawUpstream, startUpstream } from "./upstream.ts";

it("sends its own header fields and no others", async () => {
  const upstream = await startUpstream(({ method, rawHeaders }, response) => {
    response.end(JSON.stringify([method, rawHeaders]));
  });
  const client = localClient();
  const sent = await read(client, upstream.url("/?q=1#f"), { accept: "text/html" });
  expect(JSON.parse(sent)).toEqual([
    "GET",
    [
      "host",
      `127.0.0.1:${upstream.port}`,
      "connection",
      "keep-alive",
      "user-agent",
      expect.stringMatching(/^Mozilla\/5\.0 \(compatible; Unreel\/\d+\.\d+\.\d+\)$/),
      "accept",
      "text/html",
      "accept-encoding",
      "gzip, deflate, zstd",
    ],
  ]);
});

it("returns status, headers and body as they were sent", async () => {
  const upstream = await startUpstream((_request, response) => {
    response.writeHead(203, {
      "Content-Type": "text/html",
      "X-Twice": ["a", "b"],
      constructor: "c",
      ["__proto__"]: "d",
    });
    response.end("page");
  });
  const response = await get(localClient(), upstream.url("/"));
  expect([response.status, response.url.href]).toEqual([203, upstream.url("/").href]);
  expect(Object.fromEntries(response.headers)).toMatchObject({
    "content-type": "text/html",
    "x-twice": "a, b",
    constructor: "c",
  });
  expect(response.headers.get("__proto__")).toBe("d");
  expect(await bodyOf(response)).toBe("page");
});

it("resolves at the header, before the body", async () => {
  const upstream = await startUpstream((_request, response) => response.write("first"));
  const { body } = await get(localClient(), upstream.url("/"));
  for await (const chunk of body) {
    expect(Buffer.from(chunk).toString()).toBe("first");
    break;
  }
});

it.each([
  ["credentials", "http://user:hunter2@127.0.0.1/"],
  ["another scheme", "ftp://127.0.0.1/"],
  ["too many characters", `http://127.0.0.1/${"a".repeat(8192)}`],
])("refuses a URL with %s", async (_what, url) => {
  await expect(get(localClient(), new URL(url))).rejects.toMatchObject({ code: "invalid_url" });
});

it.each([
  [404, {}, false, undefined],
  [403, { "retry-after": "3" }, false, 3],
  [408, {}, true, undefined],
  [425, {}, true, undefined],
  [429, { "retry-after": "120" }, true, 120],
  [500, {}, true, undefined],
  [503, { "retry-after": new Date(Date.now() + 3_600_000).toUTCString() }, true, 3600],
  [300, { location: "/" }, false, undefined],
  [304, {}, false, undefined],
])("rejects status %i with %j", async (status, headers, retryable, retryAfterS) => {
  const upstream = await startUpstream((_request, response) => {
    response.writeHead(status, headers).end("secret");
  });
  const error: unknown = await get(localClient(), upstream.url("/")).catch((reason: unknown) => reason);
  expect(error).toMatchObject({
    code: "upstream_status",
    upstreamStatus: status,
    retryable,
    message: `GET ${upstream.url("/").href} failed with status ${status}`,
  });
  const stated = (error as { retryAfterS?: number }).retryAfterS;
  if (retryAfterS === undefined) expect(stated).toBeUndefined();
  else expect(stated).toBeGreaterThan(retryAfterS - 30);
  expect(stated ?? 0).toBeLessThanOrEqual(retryAfterS ?? 0);
});

describe("a body", () => {
  it("may be as large as the limit and not larger", async () => {
    const upstream = await startUpstream((_request, response) => response.end(Buffer.alloc(5000)));
    const client = localClient();
    expect(await read(client, upstream.url("/"), { maxBytes: 5000 })).toHaveLength(5000);
    await expect(read(client, upstream.url("/"), { maxBytes: 4999 })).rejects.toMatchObject({
      code: "upstream_invalid",
      message: `GET ${upstream.url("/").href}: the response is larger than the limit of 4999 bytes`,
    });
  });

  it("that is endless stops at the limit", async () => {
    const upstream = await startUpstream((_request, response) => {
      const more = (error?: Error | null) => void (error ?? response.write(Buffer.alloc(65_536), more));
      more();
    });
    let bytes = 0;
    const { body } = await get(localClient(), upstream.url("/"), { maxBytes: 8 * MiB });
    await expect(async () => {
      for await (const chunk of body) bytes += chunk.length;
    }).rejects.toMatchObject({ code: "upstream_invalid" });
    expect(bytes).toBeLessThanOrEqual(8 * MiB);
    await expect.poll(() => upstream.sockets[0]?.destroyed).toBe(true);
  });

  it.each([
    ["Content-Length", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"],
    ["Content-Length, closing", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 100\r\n\r\nabc"],
    ["chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"],
    ["chunks, closing", "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"],
  ])("that is shorter than its %s say is a lost connection", async (_framing, response) => {
    const upstream = await startRawUpstream((socket) => socket.end(response));
    await expect(read(localClient(), upstream.url("/"))).rejects.toMatchObject({
      code: "upstream_unreachable",
      retryable: true,
    });
  });

  it("yields all that was received before the connection was lost, however late it is read", async () => {
    const upstream = await startRawUpstream((socket) => {
      socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 90000\r\n\r\n${"a".repeat(60_000)}`);
    });
    const { body } = await get(localClient(), upstream.url("/"));
    await expect.poll(() => upstream.sockets[0]?.destroyed).toBe(true);
    let bytes = 0;
    await expect(async () => {
      for await (const chunk of body) bytes += chunk.length;
    }).rejects.toMatchObject({ code: "upstream_unreachable" });
    expect(bytes).toBe(60_000);
  });

  it("that comes in chunks of a byte is handed out in longer ones", async () => {
    const text = "otters ".repeat(3_000);
    const chunks = text.replaceAll(/./g, "1\r\n$&\r\n");
    const upstream = await startRawUpstream((socket) => {
      socket.end(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`);
    });
    const { body } = await get(localClient(), upstream.url("/"));
    const received = await Array.fromAsync(body);
    expect(Buffer.concat(received).toString()).toBe(text);
    expect(received.length).toBeLessThan(text.length / 10);
  });

  it("is received no faster than it is read", async () => {
    const large = Buffer.alloc(64 * MiB);
    const upstream = await startUpstream((_request, response) => response.end(large));
    const client = localClient();
    const maxBytes = large.length;
    const unread = await get(client, upstream.url("/"), { maxBytes });
    // When the second one has ended, all of the first one could have been received.
    await read(client, upstream.url("/"), { maxBytes });
    expect(upstream.sockets[0]?.writableLength).toBeGreaterThan(0);
    let bytes = 0;
    for await (const chunk of unread.body) bytes += chunk.length;
    expect(bytes).toBe(large.length);
  });

  it("without a stated length ends with the connection", async () => {
    const upstream = await startRawUpstream((socket) => socket.end("HTTP/1.1 200 OK\r\n\r\nabc"));
    expect(await read(localClient(), upstream.url("/"))).toBe("abc");
  });
});

it.each([
  [100, "200"],
  [101, "upstream_invalid"],
])("takes %s interim responses as %s", async (count, outcome) => {
  const hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n".repeat(count);
  const upstream = await startRawUpstream((socket) => {
    socket.end(`${hints}HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na`);
  });
  const got = get(localClient(), upstream.url("/")).then(({ status }) => `${status}`);
  expect(await got.catch(({ code }: { code: string }) => code)).toBe(outcome);
});

it.each([
  ["nothing", ""],
  ["half a header", "HTTP/1.1 200 OK\r\nContent-Le"],
])("calls a server that sends %s unreachable", async (_what, response) => {
  const upstream = await startRawUpstream((socket) => socket.end(response));
  await expect(get(localClient(), upstream.url("/"))).rejects.toMatchObject({
    code: "upstream_unreachable",
  });
});

it.each([
  ["another protocol", "SSH-2.0-OpenSSH_9.2\r\n"],
  ["a bad chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nsecret\r\nabc\r\n"],
  ["33 KiB of header", `HTTP/1.1 200 OK\r\nX-Long: ${"a".repeat(33 * 1024)}\r\n\r\n`],
  ["1000 header lines", `HTTP/1.1 200 OK\r\n${`X-Long: ${"a".repeat(40)}\r\n`.repeat(1000)}\r\n`],
])("calls a response with %s invalid", async (_what, response) => {
  const upstream = await startRawUpstream((socket) => socket.end(response));
  const failure = read(localClient(), upstream.url("/"));
  await expect(failure).rejects.toMatchObject({ code: "upstream_invalid" });
  await expect(failure).rejects.not.toThrow("secret");
});

it.each([
  "Content-Length: 1\r\nContent-Length: 2",
  "Content-Length: 1\r\nTransfer-Encoding: chunked",
  "Content-Length: -1",
])("yields nothing of a response framed by %j", async (framing) => {
  const upstream = await startRawUpstream((socket) => {
    socket.end(`HTTP/1.1 200 OK\r\n${framing}\r\n\r\n0\r\n\r\n`);
  });
  await expect(get(localClient(), upstream.url("/"))).rejects.toMatchObject({
    code: expect.stringMatching(/^upstream_(invalid|unreachable)$/),
  });
});

it("accepts a header below the limit, and names the limit for a larger one", async () => {
  const upstream = await startRawUpstream((socket) => {
    const long = "a".repeat((upstream.sockets.length === 1 ? 31 : 33) * 1024);
    socket.end(`HTTP/1.1 200 OK\r\nX-Long: ${long}\r\n\r\nabc`);
  });
  expect(await read(localClient(), upstream.url("/"))).toBe("abc");
  await expect(get(localClient(), upstream.url("/"))).rejects.toThrow(
    `GET ${upstream.url("/").href}: the response's header is larger than 32768 bytes`,
  );
});

it("calls a closed port and a name without an address unreachable", async () => {
  const lookup = async () => {
    throw Object.assign(new Error("no such name"), { code: "ENOTFOUND" });
  };
  await expect(get(localClient(), new URL("http://127.0.0.1:1/"))).rejects.toMatchObject({
    code: "upstream_unreachable",
    message: "GET http://127.0.0.1:1/: the connection failed (ECONNREFUSED)",
  });
  await expect(get(localClient({ lookup }), new URL("http://gone.test/"))).rejects.toMatchObject({
    code: "upstream_unreachable",
    message: "could not resolve gone.test: there is no such name, or it has no address (ENOTFOUND)",
    retryable: false,
  });
  await expect(get(localClient({ lookup: async () => [] }), new URL("http://empty.test/"))).rejects.toMatchObject({
    code: "upstream_unreachable",
    message: "could not resolve empty.test: it has no address",
    retryable: false,
  });
});

it("calls a name that cannot be resolved at present unreachable, and worth a retry", async () => {
  const lookup = async () => {
    throw Object.assign(new Error("no name server"), { code: "EAI_AGAIN" });
  };
  await expect(get(localClient({ lookup }), new URL("http://some.test/"))).rejects.toMatchObject({
    code: "upstream_unreachable",
    message: "could not resolve some.test: no name server has an answer at present (EAI_AGAIN)",
    retryable: true,
  });
});

it("is unavailable after it was closed, once or twice", async () => {
  const upstream = await startUpstream((_request, response) => response.write("first"));
  const client = localClient();
  const { body } = await get(client, upstream.url("/"));
  await client.close();
  await client.close();
  await expect(Array.fromAsync(body)).rejects.toMatchObject({ code: "unavailable" });
  await expect(get(client, upstream.url("/"))).rejects.toMatchObject({ code: "unavailable" });
  await expect.poll(() => upstream.sockets[0]?.destroyed).toBe(true);
});
