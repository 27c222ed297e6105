import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { App } from "../../src/http/app.ts";
import { parseHosts } from "../../src/config/lists.ts";
import { buildApp, buildWorkerApp } from "./app.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { pageUrl } from "./requests.ts";

let app: App;
let port: number;
beforeAll(async () => {
  app = await buildApp({ allowedHosts: parseHosts("unreel.example.com, Films.Example.org") });
  port = Number(new URL(await app.listen({ port: 0, host: "127.0.0.1" })).port);
});
afterAll(() => app.close());

type Headers = Record<string, string>;
type Answer = [status: number, code: string | undefined];

/** Calls the app by `inject`. */
async function inject(method: string, url: string, headers: Headers): Promise<Answer> {
  const payload = method === "POST" ? { payload: { url: pageUrl } } : {};
  const response = await app.inject({ method: method as "GET", url, headers, ...payload });
  return [response.statusCode, response.json().code];
}

/** Calls the app through a reverse proxy, which passes everything on but `Host`, which it sets. */
async function callThroughProxy(method: string, url: string, headers: Headers): Promise<Answer> {
  const proxy = createServer((incoming, outgoing) => {
    const options = { port, method, path: url, headers: { ...incoming.headers, ...headers } };
    const call = request(options, (response) => {
      outgoing.writeHead(response.statusCode ?? 0, response.headers);
      response.pipe(outgoing);
    });
    incoming.pipe(call);
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void proxy.close());
  await once(proxy, "listening");
  const { host: _, ...passed } = headers;
  const call = request({
    port: (proxy.address() as AddressInfo).port,
    method,
    path: url,
    headers: { ...passed, ...(method === "POST" && { "content-type": "application/json" }) },
    agent: false,
  });
  call.end(method === "POST" ? JSON.stringify({ url: pageUrl }) : undefined);
  const [response] = await once(call, "response");
  return [response.statusCode, JSON.parse(await text(response)).code];
}

const invalid: Answer = [400, "invalid_request"];
const misdirected: Answer = [421, "misdirected_request"];
const crossSite: Answer = [403, "cross_site"];
const listed: Answer = [200, undefined];
const created: Answer = [201, undefined];

describe.each([
  ["by inject", inject],
  ["through a proxy that sets Host", callThroughProxy],
])("called %s", (_, call) => {
  it.each<[host: string, answer: Answer]>([
    ["127.0.0.1:3000", listed],
    ["192.168.1.20", listed],
    ["203.0.113.9:8080", listed],
    ["[::1]:3000", listed],
    ["[2001:DB8::1]", listed],
    ["localhost", listed],
    ["LOCALHOST.:3000", listed],
    ["unreel.localhost", listed],
    ["api:3000", listed],
    ["my_nas", listed],
    ["nas.local", listed],
    ["nas.fritz.LAN.", listed],
    ["unreel.home.arpa", listed],
    ["metadata.google.internal", listed],
    ["unreel.example.com", listed],
    ["UNREEL.example.com.:443", listed],
    ["films.example.org", listed],
    ["rebind.attacker.net", misdirected],
    ["rebind.attacker.net:3000", misdirected],
    ["x.unreel.example.com", misdirected],
    ["localhost.attacker.net", misdirected],
    ["notlocal.", listed],
    ["attacker.notlocal", misdirected],
    ["127.0.0.1.nip.io", misdirected],
    ["attacker%2enet", misdirected],
    ["a@b/c", invalid],
    ["localhost:3000/x", invalid],
    ["localhost:port", invalid],
    ["[::1", invalid],
    ["[::g]", invalid],
    ["[fe80::1%eth0]", invalid],
    ["a b", invalid],
  ])("GET with Host %s", async (host, answer) => {
    expect(await call("GET", "/tasks/", { host })).toEqual(answer);
    expect(await call("GET", "/nothing", { host })).toEqual(answer === listed ? [404, "not_found"] : answer);
  });

  const local = "127.0.0.1:3000";
  const named = "unreel.example.com";
  it.each<[host: string, headers: Headers, answer: Answer]>([
    [local, {}, created],
    [local, { origin: "http://127.0.0.1:3000" }, created],
    [local, { origin: "http://127.0.0.1:3000", "sec-fetch-site": "same-origin" }, created],
    [local, { "sec-fetch-site": "none" }, created],
    [local, { "sec-fetch-site": "cross-site" }, crossSite],
    [local, { "sec-fetch-site": "cross-site", origin: "http://127.0.0.1:3000" }, crossSite],
    [local, { origin: "http://127.0.0.1:8080", "sec-fetch-site": "same-site" }, crossSite],
    [local, { origin: "http://127.0.0.1" }, crossSite],
    [local, { origin: "http://localhost:3000" }, crossSite],
    [local, { origin: "https://attacker.net" }, crossSite],
    [local, { origin: "null" }, crossSite],
    [local, { origin: "file://" }, crossSite],
    [local, { origin: "" }, crossSite],
    [local, { origin: "https://unreel.example.com" }, created],
    [local, { origin: "https://unreel.example.com.attacker.net" }, crossSite],
    ["[::1]:3000", { origin: "http://[0:0::1]:3000" }, created],
    ["LOCALHOST:80", { origin: "http://localhost" }, created],
    ["nas.lan:443", { origin: "https://nas.lan" }, created],
    ["nas.lan", { origin: "https://nas.lan" }, created],
    ["nas.lan:443", { origin: "http://nas.lan" }, crossSite],
    [named, { origin: "https://unreel.example.com" }, created],
    [named, { origin: "https://attacker.net" }, crossSite],
    ["rebind.attacker.net", { origin: "http://rebind.attacker.net" }, misdirected],
  ])("POST with Host %s and %o", async (host, headers, answer) => {
    expect(await call("POST", "/tasks/", { host, ...headers })).toEqual(answer);
    const { "sec-fetch-site": site, ...others } = headers;
    const isRead = answer === misdirected ? misdirected : listed;
    const fetchSite = site === undefined ? {} : { "sec-fetch-site": site };
    expect(await call("GET", "/tasks/", { host, ...others, ...fetchSite })).toEqual(isRead);
  });
});

describe.each(["/info", "/info/thumbnail", "/tasks/events", "/tasks/x/thumbnail"])("GET %s starts work", (path) => {
  const host = "127.0.0.1:3000";
  // Without the headers that the route needs: a request that passes the check of hosts fails later.
  const passes = async (headers: Headers) => (await inject("GET", path, { host, accept: "text/plain", ...headers }))[0];

  it.each<Headers>([
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image" },
    { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-user": "?1" },
    { "sec-fetch-site": "same-site" },
    { "sec-fetch-site": "same-site", origin: "http://127.0.0.1:8080" },
    { "sec-fetch-site": "none, cross-site" },
    { origin: "https://attacker.net" },
    { origin: "null" },
    { referer: "http://attacker.net/page?http://127.0.0.1:3000/" },
    { referer: "http://127.0.0.1:8080/" },
    { "sec-fetch-site": "cross-site", cookie: "unreel_session=x" },
    { "sec-fetch-site": "cross-site", authorization: "Basic dTpw" },
  ])("so pages of other sites may not send it: %o", async (headers) => {
    expect(await inject("GET", path, { host, ...headers })).toEqual(crossSite);
  });

  it.each<Headers>([
    {},
    { "sec-fetch-site": "none", "sec-fetch-mode": "navigate", "sec-fetch-user": "?1" },
    { "sec-fetch-site": "same-origin" },
    { origin: "http://127.0.0.1:3000" },
    { referer: "http://127.0.0.1:3000/docs/?x=y" },
    { referer: "https://unreel.example.com/" },
    { "sec-fetch-site": "none", referer: "http://attacker.net/" },
    { "sec-fetch-site": "same-site", origin: "https://unreel.example.com" },
    { "sec-fetch-site": "cross-site", origin: "https://attacker.net", authorization: "Bearer unreel_key" },
  ])("which programs, the person at the browser, its own pages and pages with a key may: %o", async (headers) => {
    expect([400, 404, 406]).toContain(await passes(headers));
  });
});

it("POST with a key in Authorization may come from any page, with the cookie of a session it may not", async () => {
  const headers = { "sec-fetch-site": "cross-site", origin: "https://attacker.net" };
  expect(await inject("POST", "/tasks/", { ...headers, authorization: "Bearer unreel_key" })).toEqual(created);
  expect(await inject("POST", "/tasks/", { ...headers, cookie: "unreel_session=unreel_key" })).toEqual(crossSite);
});

describe("a request that is refused", () => {
  it("says which setting adds hosts", async () => {
    const response = await app.inject({
      url: "/docs",
      headers: { host: "rebind.attacker.net:80" },
    });
    expect(response.json().detail).toMatch(/rebind\.attacker\.net:80.*ALLOWED_HOSTS/);
    const headers = { origin: "https://attacker.net" };
    const post = await app.inject({ method: "DELETE", url: "/tasks/x", headers });
    expect(post.json().detail).toBe(
      "web pages of other sites may not send DELETE requests to this service, got Origin: https://attacker.net; " +
        "if the page belongs to this service, add its host to ALLOWED_HOSTS, else its origin to ALLOWED_ORIGINS",
    );
  });

  it("changes nothing: a page of another site cannot cancel a task", async () => {
    const task = (await app.inject({ method: "POST", url: "/tasks/", payload: { url: pageUrl } })).json();
    const headers = { "content-type": "text/plain", origin: "https://attacker.net" };
    const url = `/tasks/${task.id}`;
    const refused = await app.inject({ method: "POST", url: `${url}/cancel`, headers });
    expect(refused.json()).toMatchObject({ status: 403, code: "cross_site", retryable: false });
    expect((await app.inject(url)).json()).toMatchObject({ state: "queued" });
  });

  it("is refused by a process that only runs tasks too", async () => {
    await using worker = await buildWorkerApp({ store: createMemoryStore() });
    const live = (host: string) => worker.inject({ url: "/health/live", headers: { host } });
    expect((await live("rebind.attacker.net")).json()).toMatchObject({ status: 421 });
    expect((await live("worker:3000")).statusCode).toBe(200);
  });
});
