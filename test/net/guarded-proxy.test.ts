import { readFileSync } from "node:fs";
import { type IncomingHttpHeaders, ServerResponse } from "node:http";
import { createServer } from "node:https";
import { createServer as createTcpServer, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { fetchThrough, localRun, openTunnel, readAll } from "./proxy-client.ts";
import { startRawUpstream, startUpstream } from "./upstream.ts";
import { listen } from "./listen.ts";

/** Starts a server that records the requests and responds with what it received of them. */
async function startEcho() {
  const requests: { line: string; headers: IncomingHttpHeaders; body: string }[] = [];
  const upstream = await startUpstream((request, response) => {
    const { method, url, headers } = request;
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      requests.push({ line: `${method} ${url}`, headers, body });
      response.end("echo");
    });
  });
  return { ...upstream, requests };
}

/** Starts a TCP server that may send after its client has ended. Returns its host and port. */
async function startTcp(talk: (socket: Socket) => void): Promise<string> {
  const server = createTcpServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => {});
    talk(socket);
  });
  const port = await listen(server);
  onTestFinished(() => void server.close());
  return `127.0.0.1:${port}`;
}

describe("a request in absolute-form", () => {
  it("is forwarded with its method, its fields and its body", async () => {
    const upstream = await startEcho();
    const run = await localRun();
    const url = upstream.url("/video?id=1");
    const headers = { "user-agent": "Player/1", cookie: "a=b", "content-length": "5" };
    const answer = await fetchThrough(run, url, { method: "POST", body: "query", headers });
    expect(answer).toMatchObject({ status: 200, text: "echo" });
    expect(upstream.requests).toMatchObject([
      { line: "POST /video?id=1", body: "query", headers: { ...headers, host: url.host } },
    ]);
    expect(run.error).toBeNull();
  });

  it("is forwarded with a body of unknown length", async () => {
    const upstream = await startEcho();
    const headers = { "transfer-encoding": "chunked" };
    const options = { method: "PUT", body: "chunked query", headers };
    expect((await fetchThrough(await localRun(), upstream.url("/"), options)).text).toBe("echo");
    expect(upstream.requests).toMatchObject([{ line: "PUT /", body: "chunked query" }]);
  });

  it("is forwarded without the fields of its connection", async () => {
    const upstream = await startEcho();
    const headers = {
      connection: "X-Token, keep-alive",
      "x-token": "1",
      "keep-alive": "timeout=5",
      "proxy-connection": "keep-alive",
      te: "trailers",
      upgrade: "websocket",
      expect: "100-continue",
      "x-own": "kept",
    };
    await fetchThrough(await localRun(), upstream.url("/"), { headers });
    const [received] = upstream.requests;
    expect(Object.keys(received?.headers ?? {}).toSorted()).toEqual(["connection", "host", "x-own"]);
    expect(received?.headers.connection).toBe("close");
  });

  it("goes to the host of its target, whatever its Host says", async () => {
    const upstream = await startEcho();
    const headers = { host: "other.test" };
    await fetchThrough(await localRun(), upstream.url("/"), { headers });
    expect(upstream.requests[0]?.headers.host).toBe(upstream.url("/").host);
  });

  it("returns the response as the server sent it, of any status, except for its connection", async () => {
    const upstream = await startRawUpstream((socket) => {
      socket.end(
        "HTTP/1.1 404 Not Found\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\nX-Name: \xe9\r\n" +
          "Proxy-Authenticate: Basic\r\nKeep-Alive: timeout=9\r\nConnection: X-Hop, close\r\n" +
          "X-Hop: 1\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nbody",
        "latin1",
      );
    });
    const run = await localRun();
    const answer = await fetchThrough(run, upstream.url("/"));
    expect(answer).toMatchObject({ status: 404, text: "body" });
    expect(answer.rawHeaders.join("|")).toMatch(
      /^Set-Cookie\|a=1\|set-cookie\|b=2\|X-Name\|\xe9\|Content-Encoding\|gzip\|Content-Length\|4\|connection\|close\|Date\|[^|]+$/,
    );
    expect(run.error).toBeNull();
  });

  it("returns a redirect, and checks the request for its target like any other", async () => {
    const upstream = await startUpstream((_request, response) =>
      response.writeHead(302, { location: "http://10.0.0.1/" }).end(),
    );
    const run = await localRun();
    const { status, headers } = await fetchThrough(run, upstream.url("/"));
    expect([status, headers.location]).toEqual([302, "http://10.0.0.1/"]);
    expect(run.error).toBeNull();
    expect((await fetchThrough(run, new URL("http://10.0.0.1/"))).status).toBe(403);
    expect(run.error?.code).toBe("address_blocked");
  });

  it("returns a response in chunks of a byte in longer ones", async () => {
    const chunks = "1\r\na\r\n".repeat(20_000);
    const upstream = await startRawUpstream((socket) => {
      socket.end(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`);
    });
    const write = vi.spyOn(ServerResponse.prototype, "write");
    onTestFinished(() => write.mockRestore());
    const { text } = await fetchThrough(await localRun(), upstream.url("/"));
    expect(text).toBe("a".repeat(20_000));
    expect(write.mock.calls.length).toBeLessThan(2_000);
  });

  it("gets the header of a HEAD request", async () => {
    const upstream = await startUpstream((_request, response) =>
      response.writeHead(200, { "content-length": "1000" }).end(),
    );
    const answer = await fetchThrough(await localRun(), upstream.url("/"), { method: "HEAD" });
    expect(answer).toMatchObject({ status: 200, text: "" });
    expect(answer.headers["content-length"]).toBe("1000");
  });

  it("has a lost response cut off, not ended", async () => {
    const upstream = await startRawUpstream((socket) => {
      const head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
      socket.write(`${head}4\r\npart\r\n`, () => socket.resetAndDestroy());
    });
    const run = await localRun();
    await expect(fetchThrough(run, upstream.url("/"))).rejects.toThrow("aborted");
    await expect.poll(() => run.error?.code).toBe("upstream_unreachable");
  });

  it.each([
    ["nothing", "", 502, "upstream_unreachable"],
    ["no HTTP", "garbage\r\n\r\n", 502, "upstream_invalid"],
    ["a field with a control character", "HTTP/1.1 200 OK\r\nX: a\u0001b\r\n\r\n", 502, /./],
    ["a status below 100", "HTTP/1.1 099 Odd\r\n\r\n", 502, /./],
    ["too large a header", `HTTP/1.1 200 OK\r\nX: ${"a".repeat(40_000)}\r\n\r\n`, 502, /invalid/],
  ])("is refused if the server sends %s", async (_what, bytes, status, code) => {
    const upstream = await startRawUpstream((socket) => socket.end(bytes));
    const run = await localRun();
    const answer = await fetchThrough(run, upstream.url("/"));
    expect(answer.status).toBe(status);
    expect(answer.text).toBe(`${run.error?.message}\n`);
    expect(run.error?.code).toMatch(code);
  });

  it.each(["/video", "https://127.0.0.1/", "file:///etc/passwd", "http://user:pass@127.0.0.1/"])(
    "is refused for the target %s",
    async (path) => {
      const run = await localRun();
      const answer = await fetchThrough(run, new URL("http://127.0.0.1/"), { path });
      expect(answer).toMatchObject({
        status: 400,
        text: "the request's target must be an absolute http URL\n",
      });
      expect(run.error).toBeNull();
    },
  );
});

describe("a tunnel", () => {
  it("carries TLS, whose certificate the client checks", async () => {
    const cert = readFileSync(`${import.meta.dirname}/fixtures/tls-cert.pem`, "utf8");
    const key = readFileSync(`${import.meta.dirname}/fixtures/tls-key.pem`, "utf8");
    const server = createServer({ cert, key }, (_request, response) => response.end("secret page"));
    const port = await listen(server);
    onTestFinished(() => void server.close());
    const lookup = async () => [{ address: "127.0.0.1", family: 4 }];
    const run = await localRun({ lookup });
    const { socket } = await openTunnel(run, `video.test:${port}`);
    const tls = connectTls({ socket, ca: cert, servername: "video.test" });
    tls.write("GET / HTTP/1.1\r\nHost: video.test\r\nConnection: close\r\n\r\n");
    expect(await readAll(tls)).toMatch(/^HTTP\/1\.1 200 OK\r\n.*secret page/s);
    expect(run.error).toBeNull();
  });

  it("passes on what the server sends first, and what the client sends", async () => {
    const authority = await startTcp((socket) => {
      socket.write("welcome;");
      socket.once("data", (bytes) => socket.end(`got ${bytes.toString()}`));
    });
    const { socket } = await openTunnel(await localRun(), authority);
    socket.write("hello");
    expect(await readAll(socket)).toBe("welcome;got hello");
  });

  it("passes on that a side has ended, while the other goes on", async () => {
    const authority = await startTcp((socket) => {
      socket.resume().on("end", () => socket.end("reply"));
    });
    const { socket } = await openTunnel(await localRun(), authority);
    socket.end("last words");
    expect(await readAll(socket)).toBe("reply");
  });

  it("ends when the server resets its connection", async () => {
    const upstream = await startRawUpstream((socket) => socket.resetAndDestroy());
    const run = await localRun();
    const { socket } = await openTunnel(run, upstream.url("/").host);
    socket.write("hello");
    expect(await readAll(socket)).toBe("");
    expect(run.error?.code).toBe("upstream_unreachable");
  });

  it("answers 502 if nothing listens there", async () => {
    const run = await localRun();
    const { status, text: message } = await openTunnel(run, "127.0.0.1:1");
    expect(status).toBe(502);
    expect(message).toMatch(/CONNECT 127\.0\.0\.1:1: the connection failed \(ECONNREFUSED\)\n$/);
    expect(run.error).toMatchObject({ code: "upstream_unreachable", retryable: true });
  });

  it.each(["127.0.0.1", "127.0.0.1:65536", "a@127.0.0.1:80", "http://a/", "a b:80"])(
    "is refused for the target %s",
    async (authority) => {
      expect((await openTunnel(await localRun(), authority)).status).toBe(400);
    },
  );
});

it("keeps the first error of each run apart", async () => {
  const proxied = await localRun();
  expect((await fetchThrough(proxied, new URL("http://10.0.0.1/"))).status).toBe(403);
  expect((await openTunnel(proxied, "127.0.0.1:1")).status).toBe(502);
  expect(proxied.error?.code).toBe("address_blocked");
  expect((await localRun()).error).toBeNull();
});
