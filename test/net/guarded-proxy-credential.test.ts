import { describe, expect, it } from "vitest";
import { watchConnects } from "./connects.ts";
import { credentialLine, fetchThrough, localProxy, openRun, openTunnel, sendRaw } from "./proxy-client.ts";
import { startUpstream } from "./upstream.ts";

const basic = (text: string) => `Proxy-Authorization: Basic ${Buffer.from(text).toString("base64")}\r\n`;

async function startBehindProxy() {
  const upstream = await startUpstream((_request, response) => response.end("page"));
  return { upstream, proxy: await localProxy() };
}

describe("the credential", () => {
  it("is random for each run", async () => {
    const proxy = await localProxy();
    const urls = [openRun(proxy), openRun(proxy)].map(({ url }) => new URL(url));
    for (const url of urls) {
      expect(url.href).toMatch(/^http:\/\/[\w-]+:[\w-]{43}@127\.0\.0\.1:\d+\/$/);
      expect(Number(url.port)).toBe(proxy.port);
    }
    expect(new Set(urls.flatMap(({ username, password }) => [username, password])).size).toBe(4);
  });

  it.each([
    ["none", () => ""],
    ["an empty one", () => "Proxy-Authorization: \r\n"],
    ["another scheme", (line: string) => line.replace("Basic", "Bearer")],
    ["a wrong secret", (_line: string, name: string) => basic(`${name}:${"a".repeat(43)}`)],
    ["no secret", (_line: string, name: string) => basic(`${name}:`)],
    ["a secret without a name", (_line: string, _name: string, secret: string) => basic(`:${secret}`)],
    ["one without a colon", (_line: string, name: string) => basic(name)],
    ["a name of Object's", () => basic("__proto__:secret")],
    ["one for the server", (line: string) => line.replace("Proxy-", "")],
  ])("is required: with %s the response is 407 and nothing is opened", async (_what, change) => {
    const { upstream, proxy } = await startBehindProxy();
    const run = openRun(proxy);
    const { username, password } = new URL(run.url);
    const fields = change(credentialLine(run), username, password);
    const { host, href } = upstream.url("/");
    for (const start of [`GET ${href}`, `CONNECT ${host}`]) {
      const answer = await sendRaw(run, `${start} HTTP/1.1\r\nHost: ${host}\r\n${fields}\r\n`);
      expect(answer).toMatch(/^HTTP\/1\.1 407 /);
      expect(answer).toMatch(/\r\nproxy-authenticate: Basic realm="unreel"\r\n/);
    }
    expect(upstream.sockets).toEqual([]);
    expect(run.error).toBeNull();
  });

  it("is checked before any name is looked up or connected to", async () => {
    const connects = watchConnects();
    const lookups: string[] = [];
    const proxy = await localProxy({
      lookup: async (name) => {
        lookups.push(name);
        return [{ address: "127.0.0.1", family: 4 }];
      },
    });
    const run = openRun(proxy);
    expect((await openTunnel(run, "video.test:80", "")).status).toBe(407);
    expect([lookups, connects]).toEqual([[], ["127.0.0.1"]]);
  });

  it("is never forwarded", async () => {
    const received: string[] = [];
    const upstream = await startUpstream((request, response) => {
      received.push(...request.rawHeaders);
      response.end();
    });
    const run = openRun(await localProxy());
    await fetchThrough(run, upstream.url("/"));
    expect(received.join("\n")).not.toMatch(/authorization|basic/i);
  });

  it("is refused once its run is closed, while other runs go on", async () => {
    const { upstream, proxy } = await startBehindProxy();
    const [closed, open] = [openRun(proxy), openRun(proxy)];
    closed.close();
    closed.close();
    expect((await fetchThrough(closed, upstream.url("/"))).status).toBe(407);
    expect((await openTunnel(closed, upstream.url("/").host)).status).toBe(407);
    expect(upstream.sockets).toEqual([]);
    expect((await fetchThrough(open, upstream.url("/"))).text).toBe("page");
  });

  it("of one run does not serve another's name", async () => {
    const { upstream, proxy } = await startBehindProxy();
    const [one, other] = [openRun(proxy), openRun(proxy)].map(({ url }) => new URL(url));
    const mixed = basic(`${one?.username}:${other?.password}`);
    const { status } = await openTunnel({ ...openRun(proxy) }, upstream.url("/").host, mixed);
    expect(status).toBe(407);
  });

  it("of a run whose signal is aborted already is refused", async () => {
    const { upstream, proxy } = await startBehindProxy();
    const run = openRun(proxy, { signal: AbortSignal.abort() });
    expect((await fetchThrough(run, upstream.url("/"))).status).toBe(407);
  });
});

it("forwards only the first request of a connection", async () => {
  const paths: string[] = [];
  const upstream = await startUpstream((request, response) => {
    paths.push(request.url ?? "");
    response.end("page");
  });
  const run = openRun(await localProxy());
  const get = (path: string) => `GET ${upstream.url(path).href} HTTP/1.1\r\nHost: a\r\n${credentialLine(run)}\r\n`;
  await sendRaw(run, get("/1") + get("/2"));
  const connect = `CONNECT ${upstream.url("/").host} HTTP/1.1\r\n${credentialLine(run)}\r\n`;
  await sendRaw(run, get("/3") + connect + get("/4"));
  expect(paths.filter((path) => path === "/2" || path === "/4")).toEqual([]);
  expect(upstream.sockets.length).toBeLessThanOrEqual(2);
});
