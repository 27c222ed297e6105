import { describe, expect, it } from "vitest";
import { watchConnects } from "./connects.ts";
import { connectToProxy, credentialLine, localRun, readAll, sendRaw } from "./proxy-client.ts";
import { startRawUpstream, startUpstream } from "./upstream.ts";

const statusOf = (answer: string) => Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1]);

/** Starts a server that records the lines and bodies of its requests. */
async function startRecorder() {
  const requests: string[] = [];
  const upstream = await startUpstream((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      requests.push(`${request.method} ${request.url} ${body}`);
      response.end("page");
    });
  });
  return { ...upstream, requests };
}

const inner = "GET /inner HTTP/1.1\r\nHost: a\r\n\r\n";

describe("a request with doubtful framing", () => {
  it.each([
    ["two lengths", "Content-Length: 4\r\nContent-Length: 40\r\n", "body"],
    ["two equal lengths", "Content-Length: 4\r\nContent-Length: 4\r\n", "body"],
    ["a list of lengths", "Content-Length: 4, 40\r\n", "body"],
    ["a signed length", "Content-Length: +4\r\n", "body"],
    ["a length and a coding", "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"],
    ["a coding and a length", "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", "0\r\n\r\n"],
    ["a coding that is not the last", "Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n"],
    ["a coding in a folded line", "Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n"],
    ["a space before the colon", "Content-Length : 4\r\n", "body"],
    ["a bare line feed", "X: a\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"],
    ["a bad chunk length", "Transfer-Encoding: chunked\r\n", "0x4\r\nbody\r\n0\r\n\r\n"],
  ])("reaches the server once or not at all: %s", async (_what, fields, body) => {
    const upstream = await startRecorder();
    const run = await localRun();
    const head = `POST ${upstream.url("/outer").href} HTTP/1.1\r\nHost: a\r\n`;
    await sendRaw(run, `${head}${credentialLine(run)}${fields}\r\n${body}${inner}`);
    expect(upstream.requests.filter((line) => !/^POST \/outer (body)?$/.test(line))).toEqual([]);
    expect(upstream.requests.length).toBeLessThanOrEqual(1);
  });

  it("cannot hide a second one in its body", async () => {
    const upstream = await startRecorder();
    const run = await localRun();
    const head = `POST ${upstream.url("/outer").href} HTTP/1.1\r\nHost: a\r\n`;
    const length = `Connection: Content-Length, Transfer-Encoding\r\nContent-Length: ${inner.length}\r\n`;
    const answer = await sendRaw(run, `${head}${credentialLine(run)}${length}\r\n${inner}`);
    expect(statusOf(answer)).toBe(200);
    expect(upstream.requests).toEqual([`POST /outer ${inner}`]);
  });
});

describe("a response with doubtful framing", () => {
  it.each([
    ["two lengths", "Content-Length: 2\r\nContent-Length: 40\r\n"],
    ["a length and a coding", "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n"],
  ])("is not passed on as it is: %s", async (_what, fields) => {
    const body = "4\r\nbody\r\n0\r\n\r\n";
    const upstream = await startRawUpstream((socket) => socket.end(`HTTP/1.1 200 OK\r\n${fields}\r\n${body}`));
    const run = await localRun();
    const { href } = upstream.url("/");
    const answer = await sendRaw(run, `GET ${href} HTTP/1.1\r\nHost: a\r\n${credentialLine(run)}\r\n`);
    expect(answer).not.toMatch(/content-length: (2|40)\r/i);
  });
});

describe("CONNECT", () => {
  it("goes to its target and not to its Host", async () => {
    const connects = watchConnects();
    const run = await localRun({ allowNetworks: [] });
    const fields = `Host: 93.184.216.34:80\r\n${credentialLine(run)}`;
    for (const authority of ["127.0.0.1:80", "localhost:80", "[::1]:80", "[::ffff:127.0.0.1]:80"]) {
      const answer = await sendRaw(run, `CONNECT ${authority} HTTP/1.1\r\n${fields}\r\n`);
      expect(statusOf(answer)).toBe(403);
      expect(answer).toMatch(/\r\n\r\nrefused to connect to .*: only public addresses/);
    }
    expect(connects).toEqual(["127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1"]);
  });

  it.each([
    "93.184.216.34:80@127.0.0.1:80",
    "127.0.0.1:80#@93.184.216.34:80",
    "127.0.0.1\\@93.184.216.34:80",
    "127.0.0.1%00.example.com:80",
    "[::1",
    "[::1]",
    ":80",
    "",
  ])("is refused for the target %j", async (authority) => {
    const connects = watchConnects();
    const run = await localRun();
    const answer = await sendRaw(run, `CONNECT ${authority} HTTP/1.1\r\n${credentialLine(run)}\r\n`);
    expect(statusOf(answer)).toBe(400);
    expect(connects).toEqual(["127.0.0.1"]);
  });

  it("relays a request in its bytes to its own target only", async () => {
    const upstream = await startRawUpstream((socket) => socket.end("end"));
    const other = await startRecorder();
    const run = await localRun();
    const get = `GET ${other.url("/").href} HTTP/1.1\r\nHost: a\r\n${credentialLine(run)}\r\n`;
    const start = `CONNECT ${upstream.url("/").host} HTTP/1.1\r\n${credentialLine(run)}\r\n`;
    expect(await sendRaw(run, start + get)).toMatch(/^HTTP\/1\.1 200 .*\r\n\r\nend$/s);
    expect(other.sockets).toEqual([]);
  });
});

describe("garbage", () => {
  it.each([
    ["bytes", Buffer.from(Array.from({ length: 4096 }, (_, i) => (i * 7919) % 256))],
    ["a TLS hello", Buffer.from("16030100c8010000c40303", "hex")],
    ["SOCKS", Buffer.from("0501000a", "hex")],
    ["an HTTP/2 preface", Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")],
    ["too large a header", Buffer.from(`GET http://a/ HTTP/1.1\r\nX: ${"a".repeat(40_000)}\r\n`)],
    ["an endless target", Buffer.from(`GET http://127.0.0.1/${"a".repeat(40_000)}`)],
  ])("of %s closes the connection and opens none", async (_what, bytes) => {
    const connects = watchConnects();
    const run = await localRun();
    expect(await sendRaw(run, bytes)).toMatch(/^(HTTP\/1\.1 4\d\d |$)/);
    expect(connects).toEqual(["127.0.0.1"]);
  });

  it("after a request does not reach the server, nor end the proxy", async () => {
    const upstream = await startRecorder();
    const run = await localRun();
    const socket = await connectToProxy(run);
    const { href } = upstream.url("/page");
    socket.write(`GET ${href} HTTP/1.1\r\nHost: a\r\n${credentialLine(run)}\r\n\0garbage\r\n\r\n`);
    await readAll(socket);
    expect(upstream.requests.filter((line) => line !== "GET /page ")).toEqual([]);
    const get = `GET ${href} HTTP/1.1\r\nHost: a\r\n${credentialLine(run)}\r\n`;
    expect(await sendRaw(run, get)).toMatch(/page$|page\r\n0\r\n\r\n$/);
  });
});
