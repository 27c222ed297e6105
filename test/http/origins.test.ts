import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { App } from "../../src/http/app.ts";
import { parseOrigins } from "../../src/config/lists.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { type AppOptions, buildApp } from "./app.ts";
import { addKey } from "./keys.ts";
import { pageUrl, postTask } from "./requests.ts";

const page = "https://app.example.com";
const chrome = `chrome-extension://${"abcdefghijklmnop".repeat(2)}`;
const firefox = "moz-extension://0199d3f0-5b7e-7000-8000-0123456789ab";
const allowedOrigins = parseOrigins(`${page}, http://localhost:8080,${chrome}, moz-extension://*`);
const fromElsewhere = { "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors" };

let app: App;
afterEach(() => app.close());

const corsOf = (headers: Record<string, unknown>) =>
  Object.keys(headers).filter((name) => name.startsWith("access-control-"));

interface ApiDocument {
  paths: Record<
    string,
    Record<
      string,
      {
        parameters?: { in: string; name: string }[];
        responses: Record<string, { headers?: Record<string, unknown> }>;
      }
    >
  >;
}

const namesIn = (list: unknown) => String(list).toLowerCase().split(", ");

describe("a page of an allowed origin", () => {
  it.each([page, "http://localhost:8080", chrome, firefox])(
    "may call the service and read what it needs: %s",
    async (origin) => {
      app = await buildApp({ allowedOrigins });
      const created = await postTask(app, { url: pageUrl }, { origin, ...fromElsewhere });
      expect(created.statusCode).toBe(201);
      expect(created.headers["access-control-allow-origin"]).toBe(origin);
      expect(created.headers["access-control-expose-headers"]).toMatch(
        /^(?=.*Location)(?=.*ETag)(?=.*Content-Disposition)(?=.*Retry-After)(?=.*RateLimit)(?=.*Repr-Digest)/,
      );
      expect(created.headers).not.toHaveProperty("access-control-allow-credentials");
      const list = await app.inject({ url: "/tasks/", headers: { origin, "accept-encoding": "gzip" } });
      expect(list.headers["access-control-allow-origin"]).toBe(origin);
      expect(list.headers.vary).toBe("accept-encoding, origin");
      const failed = await app.inject({ url: "/tasks/x", headers: { origin } });
      expect([failed.statusCode, failed.headers["access-control-allow-origin"]]).toEqual([404, origin]);
      const unmet = await app.inject({ url: "/tasks/", headers: { origin, expect: "200-ok" } });
      expect([unmet.statusCode, unmet.headers["access-control-allow-origin"]]).toEqual([417, origin]);
      const stream = await app.inject({ url: "/tasks/events", headers: { origin }, payloadAsStream: true });
      stream.stream().destroy();
      expect(stream.headers).toMatchObject({ "access-control-allow-origin": origin, vary: "origin" });
    },
  );

  it("gets an answer to its preflight without a key", async () => {
    const store = createMemoryStore();
    await addKey(store, "anna");
    app = await buildApp({ store, allowedOrigins });
    const response = await app.inject({
      method: "OPTIONS",
      url: "/tasks/",
      headers: {
        origin: page,
        ...fromElsewhere,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type",
      },
    });
    expect(response.statusCode).toBe(204);
    expect(response.headers).toMatchObject({
      "access-control-allow-origin": page,
      "access-control-allow-methods": "GET, HEAD, POST, DELETE",
      "access-control-allow-headers": expect.stringMatching(/Authorization.*Content-Type.*Idempotency-Key.*Prefer/),
      vary: "origin",
    });
  });

  it.each([
    [page, "true"],
    ["https://elsewhere.example.com", undefined],
  ])("of %s that asks for an address of a private network gets: %s", async (origin, allowed) => {
    app = await buildApp({ allowedOrigins });
    const asked = { "access-control-request-method": "GET", "access-control-request-private-network": "true" };
    const { headers } = await app.inject({ method: "OPTIONS", url: "/info", headers: { origin, ...asked } });
    expect(headers["access-control-allow-private-network"]).toBe(allowed);
  });

  it("may send and read all header fields that the API describes", async () => {
    app = await buildApp({ allowedOrigins });
    const headers = { origin: page, ...fromElsewhere, "access-control-request-method": "GET" };
    const preflight = await app.inject({ method: "OPTIONS", url: "/info", headers });
    const { paths }: ApiDocument = (await app.inject("/openapi.json")).json();
    const operations = Object.values(paths).flatMap((path) => Object.values(path));
    const sent = operations.flatMap(({ parameters = [] }) => parameters.filter((each) => each.in === "header"));
    const allowed = namesIn(preflight.headers["access-control-allow-headers"]);
    expect(allowed).toEqual(expect.arrayContaining(["authorization", "tracestate", ...sent.map(({ name }) => name)]));
    const received = operations.flatMap(({ responses }) =>
      Object.values(responses).flatMap((response) => Object.keys(response.headers ?? {})),
    );
    expect(received).toContain("etag");
    const exposed = namesIn(preflight.headers["access-control-expose-headers"]);
    expect(exposed).toEqual(expect.arrayContaining(received));
  });

  it("needs a key in Authorization; the cookie of a session does not count", async () => {
    const store = createMemoryStore();
    const { secret } = await addKey(store, "anna");
    app = await buildApp({ store, allowedOrigins });
    const session = await app.inject({ method: "POST", url: "/session", payload: { key: secret } });
    const cookie = session.cookies.map(({ name, value }) => `${name}=${value}`).join("; ");
    const own = await postTask(app, { url: pageUrl }, { cookie });
    expect(own.statusCode).toBe(201);
    const withCookie = await postTask(app, { url: pageUrl }, { cookie, origin: page, ...fromElsewhere });
    expect([withCookie.statusCode, withCookie.headers["access-control-allow-origin"]]).toEqual([401, page]);
    const authorization = `Bearer ${secret}`;
    const withKey = await postTask(app, { url: pageUrl }, { authorization, origin: page, ...fromElsewhere });
    expect(withKey.statusCode).toBe(201);
  });
});

describe("all others", () => {
  it.each([
    "https://evil.example.com",
    "http://app.example.com",
    `${page}:8443`,
    "https://app.example.com.evil.com",
    "null",
    "chrome-extension://another",
    "moz-extension://*",
    "moz-extension://x",
  ])("get 403 and no header: %s", async (origin) => {
    app = await buildApp({ allowedOrigins });
    const refused = await postTask(app, { url: pageUrl }, { origin, ...fromElsewhere });
    expect([refused.statusCode, refused.json().code, corsOf(refused.headers)]).toEqual([403, "cross_site", []]);
    const preflight = await app.inject({
      method: "OPTIONS",
      url: "/tasks/",
      headers: { origin, "access-control-request-method": "POST" },
    });
    expect(corsOf(preflight.headers)).toEqual([]);
    expect((await app.inject("/tasks/")).json().tasks).toEqual([]);
  });

  it("images of an allowed page start no work", async () => {
    app = await buildApp({ allowedOrigins });
    const headers = { referer: `${page}/`, "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" };
    expect((await app.inject({ url: `/info?url=${pageUrl}`, headers })).statusCode).toBe(403);
  });

  it("nothing changes without the setting", async () => {
    app = await buildApp();
    const list = await app.inject({ url: "/tasks/", headers: { origin: page } });
    expect([corsOf(list.headers), list.headers.vary]).toEqual([[], "accept-encoding"]);
  });
});

describe("a refusal that no route sends", () => {
  const long = "a".repeat(20_000);
  const json = "host: a\r\ncontent-type: application/json\r\n";
  const chunked = `${json}transfer-encoding: chunked\r\n\r\n`;
  const refusals: [name: string, status: number, start: string, fields: string][] = [
    ["long header fields", 431, "GET /tasks/", `host: a\r\nx: ${long}\r\n\r\n`],
    ["a long URL", 431, `GET /info?url=${long}`, "host: a\r\n\r\n"],
    ["a header line without a colon", 400, "GET /tasks/", "host: a\r\nx\r\n\r\n"],
    ["an unknown method", 400, "FETCH /tasks/", "host: a\r\n\r\n"],
    ["a broken chunk", 400, "POST /tasks/", `${chunked}ZZ\r\n`],
    ["too many chunks", 413, "POST /tasks/", `${chunked}${"1\r\n \r\n".repeat(4_097)}`],
    ["a body that does not arrive", 408, "POST /tasks/", `${json}content-length: 9\r\n\r\n{`],
    ["a path that cannot be decoded", 400, "GET /tasks/%zz", "host: a\r\nconnection: close\r\n\r\n"],
    ["a link that cannot be decoded", 404, "GET /links/%zz", "host: a\r\nconnection: close\r\n\r\n"],
    ["a public host", 421, "GET /tasks/", "host: other.example\r\nconnection: close\r\n\r\n"],
  ];

  async function listen(options: AppOptions = {}): Promise<number> {
    app = await buildApp({ ...options, allowedOrigins, finishMs: 20 });
    Object.assign(app.server, { requestTimeout: 500, headersTimeout: 500 });
    await app.listen({ port: 0, host: "127.0.0.1" });
    return (app.server.address() as { port: number }).port;
  }

  async function send(origin: string, start: string, fields: string): Promise<string> {
    const socket = connect(await listen(), "127.0.0.1");
    socket.write(`${start} HTTP/1.1\r\norigin: ${origin}\r\n${fields}`);
    return text(socket);
  }

  it.each(refusals)("can be read by a page of an allowed origin: %s", async (_name, status, start, fields) => {
    const response = await send(page, start, fields);
    expect(response).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [^]*application/problem\\+json`));
    expect(response).toContain(`\r\naccess-control-allow-origin: ${page}\r\n`);
    expect(response).toMatch(/\r\naccess-control-expose-headers: .*Retry-After.*\r\n/);
    expect(response).toMatch(/\r\nvary: (?:accept-encoding, )?origin\r\n/);
  });

  it.each(refusals)("has no such header for others: %s", async (_name, status, start, fields) => {
    const response = await send("https://evil.example.com", start, fields);
    // One that would change something is refused at once.
    expect(response).toMatch(new RegExp(`^HTTP/1\\.1 ${start.startsWith("POST") ? 403 : status} `));
    expect(response).not.toContain("access-control-");
    expect(response).toMatch(/\r\nvary: (?:accept-encoding, )?origin\r\n/);
  });

  it("can be read if the origin came before the last bytes of a header that is too long", async () => {
    const port = await listen();
    const connected = once(app.server, "connection") as Promise<[Socket]>;
    const socket = connect(port, "127.0.0.1");
    socket.write(`GET /tasks/ HTTP/1.1\r\nhost: a\r\norigin: ${page}\r\n`);
    const [peer] = await connected;
    await vi.waitFor(() => expect(peer.bytesRead).toBeGreaterThan(0), { timeout: 60_000 });
    socket.write(`x: ${long}\r\n\r\n`);
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 431 [^]*\r\naccess-control-allow-origin: \*\r\n/);
  });

  it("can be read if the service stops before there is a response", async () => {
    const store = createMemoryStore();
    const watched = vi.spyOn(store.events, "subscribe");
    const port = await listen({ store });
    const { id } = (await postTask(app, { url: pageUrl })).json();
    const before = watched.mock.calls.length;
    const streamFor = (origin: string) => fetch(`http://127.0.0.1:${port}/tasks/${id}/stream`, { headers: { origin } });
    const [allowed, other] = [streamFor(page), streamFor("https://evil.example.com")];
    await vi.waitFor(() => expect(watched).toHaveBeenCalledTimes(before + 2), { timeout: 60_000 });
    await app.close();
    const [mine, theirs] = [await allowed, await other];
    expect([mine.status, mine.headers.get("access-control-allow-origin")]).toEqual([503, page]);
    expect([theirs.status, theirs.headers.get("access-control-allow-origin")]).toEqual([503, null]);
  });
});
