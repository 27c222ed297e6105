import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { newSecret } from "../../src/keys/secrets.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { parseNetworks } from "../../src/net/addresses/addresses.ts";
import { type AppOptions } from "./app.ts";
import { addKey } from "./keys.ts";
import { listenApp, openApp } from "./open-app.ts";

const client = "203.0.113.7";
const proxy = "10.0.0.2";
const outer = "10.0.0.1";
const stranger = "198.51.100.9";

type Headers = Record<string, string>;

/** An app that trusts the proxies of 10.0.0.0/8, and what its log says of requests. */
async function open(options: AppOptions = {}) {
  const lines: Record<string, unknown>[] = [];
  const logger = pino({ level: "info" }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const store = createMemoryStore();
  const anna = await addKey(store, "anna");
  const app = await openApp({ store, logger, trustedProxies: parseNetworks(["10.0.0.0/8", "fd00::/8"]), ...options });
  /** Returns the `ip` of the request in the log. */
  async function ipOf(headers: Headers, remoteAddress = proxy): Promise<unknown> {
    await app.inject({ url: "/tasks/", remoteAddress, headers: { ...anna.headers, ...headers } });
    return lines.at(-1)?.["ip"];
  }
  return { app, anna, lines, ipOf };
}

describe("the address of a client", () => {
  test.each<[headers: Headers, ip: string | undefined]>([
    [{ "x-forwarded-for": client }, client],
    [{ "x-forwarded-for": `${client}:50123` }, client],
    [{ "x-forwarded-for": `${client}, ${outer}` }, client],
    [{ "x-forwarded-for": `127.0.0.1, 192.0.2.1, ${client},${outer}` }, client],
    [{ "x-forwarded-for": `${outer}, ${outer}` }, outer],
    [{ "x-forwarded-for": "2001:DB8::1" }, "2001:db8:0:0"],
    [{ "x-forwarded-for": `[2001:db8::1]:443, fd00::1` }, "2001:db8:0:0"],
    [{ "x-forwarded-for": `::ffff:${client}, ::ffff:${outer}` }, client],
    [{ "x-forwarded-for": "127.0.0.1" }, undefined],
    [{ forwarded: `for=${client};proto=https;by=${proxy}` }, client],
    [{ forwarded: `For="[2001:db8::1]:4711"; Host=a.test` }, "2001:db8:0:0"],
    [{ forwarded: `for=192.0.2.1, for=${client}, for="${outer}:80"` }, client],
    [{ forwarded: `for="192.0.2.1, for=${client}` }, client],
    [{ "x-forwarded-for": client, forwarded: "for=192.0.2.1" }, client],
  ])("is what the proxy says: %o", async (headers, ip) => {
    const { ipOf } = await open();
    expect(await ipOf(headers)).toBe(ip);
    expect(await ipOf(headers, `::ffff:${proxy}`)).toBe(ip);
    expect(await ipOf(headers, stranger)).toBe(stranger);
  });

  test.each<[headers: Headers]>([
    [{ "x-forwarded-for": "" }],
    [{ "x-forwarded-for": "unknown" }],
    [{ "x-forwarded-for": `${client}, 10.0.0.300` }],
    [{ "x-forwarded-for": `${client}, <script>` }],
    [{ "x-forwarded-for": `${client},` }],
    [{ "x-forwarded-for": `[${client}]` }],
    [{ forwarded: "for=_hidden" }],
    [{ forwarded: `for=${client},` }],
    [{ forwarded: "=;;=;for" }],
    [{ forwarded: `${";".repeat(1_000)}for=${client}` }],
    [{ forwarded: `__proto__=${client}` }],
    [{ "x-real-ip": client }],
  ])("is that of the proxy if it is malformed: %o", async (headers) => {
    const { ipOf } = await open();
    expect(await ipOf(headers)).toBe(proxy);
  });

  test("is what the proxy has added, however long the list before it", async () => {
    const { ipOf } = await open();
    for (const before of ["1.2.3.4,".repeat(1_500), ",".repeat(12_000), '"'.repeat(12_001), " ".repeat(12_000)]) {
      expect(await ipOf({ "x-forwarded-for": `${before},${client}` })).toBe(client);
      expect(await ipOf({ forwarded: `${before},for=${client}` })).toBe(client);
    }
    expect(await ipOf({ "x-forwarded-for": `${client},${`${outer},`.repeat(1_000)}${outer}` })).toBe(outer);
  });

  test("is what proxies on this machine say, unless they are not trusted", async () => {
    const headers = { "x-forwarded-for": client };
    const byDefault = await open({ trustedProxies: parseNetworks(["127.0.0.0/8", "::1/128"]) });
    for (const local of ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
      expect(await byDefault.ipOf(headers, local)).toBe(client);
    expect(await byDefault.ipOf(headers, proxy)).toBe(proxy);
    const without = await open({ trustedProxies: parseNetworks([]) });
    expect(await without.ipOf(headers, "127.0.0.1")).toBeUndefined();
  });

  test("may come in several lines, and without Host in HTTP/1.0", async () => {
    const { app, anna, lines } = await open({ trustedProxies: parseNetworks(["127.0.0.0/8"]) });
    const port = await listenApp(app);
    const fields = [
      "X-Forwarded-For: 192.0.2.1",
      `X-Forwarded-For: ${client}`,
      "x-forwarded-for: 127.0.0.9",
      `Authorization: ${anna.headers.authorization}`,
    ];
    const socket = connect(port, "127.0.0.1");
    await once(socket, "connect");
    socket.write(`GET /tasks/ HTTP/1.0\r\n${fields.join("\r\n")}\r\n\r\n`);
    expect(await text(socket)).toMatch(/^HTTP\/1.1 200 /);
    expect(lines.at(-1)).toMatchObject({ ip: client, status: 200 });
  });

  test("is what wrong keys are counted for", async () => {
    const { app } = await open();
    const guess = async (from: string) => {
      const headers = { authorization: `Bearer ${newSecret()}`, "x-forwarded-for": `8.8.8.8, ${from}` };
      return (await app.inject({ url: "/tasks/", remoteAddress: proxy, headers })).statusCode;
    };
    for (let n = 0; n < 20; n += 1) expect(await guess(client)).toBe(401);
    expect([await guess(client), await guess(stranger)]).toEqual([429, 401]);
  });
});

describe("the host that a proxy was asked for", () => {
  async function statusOf(headers: Headers, remoteAddress = proxy): Promise<number> {
    const { app } = await open({
      allowedHosts: new Set(["unreel.example.com"]),
      trustedProxies: parseNetworks(["10.0.0.0/8", "127.0.0.0/8"]),
    });
    const payload = { key: "unreel_wrong" };
    const options = { method: "POST", url: "/session", remoteAddress, payload } as const;
    return (await app.inject({ ...options, headers: { host: "backend:3000", ...headers } })).statusCode;
  }
  const [ok, crossSite, misdirected] = [401, 403, 421];
  const nas = { "x-forwarded-host": "nas.lan:8443", origin: "https://nas.lan:8443" };

  test.each<[headers: Headers, status: number]>([
    [nas, ok],
    [{ forwarded: `for=${client};host="nas.lan:8443"`, origin: "https://nas.lan:8443" }, ok],
    [{ ...nas, "x-forwarded-host": "other.test, nas.lan:8443", "x-forwarded-for": client }, ok],
    [{ ...nas, "x-forwarded-host": "nas.lan:8443, other", "x-forwarded-for": `${client}, ${outer}` }, ok],
    [{ ...nas, origin: "http://backend:3000" }, crossSite],
    [{ ...nas, "x-forwarded-host": "a b/c", origin: "http://backend:3000" }, ok],
    [{ "x-forwarded-host": "unreel.example.com" }, ok],
    [{ "x-forwarded-host": "rebind.attacker.net" }, misdirected],
    [{ "x-forwarded-host": "localhost", host: "rebind.attacker.net" }, misdirected],
  ])("is the request's own, and must be one of the service's: %o → %s", async (headers, status) => {
    expect(await statusOf(headers)).toBe(status);
  });

  test("does not count from others", async () => {
    expect(await statusOf(nas, stranger)).toBe(crossSite);
    expect(await statusOf({ "x-forwarded-host": "rebind.attacker.net" }, stranger)).toBe(ok);
    expect(await statusOf({ "x-forwarded-host": "localhost", host: "rebind.attacker.net" }, "127.0.0.1")).toBe(
      misdirected,
    );
  });
});

test("a session's cookies are for HTTPS alone if a proxy that is trusted says that the browser uses it", async () => {
  const { app, anna } = await open();
  async function isSecure(headers: Headers, remoteAddress = proxy): Promise<boolean> {
    const payload = { key: anna.secret };
    const response = await app.inject({ method: "POST", url: "/session", remoteAddress, headers, payload });
    return response.cookies.every(({ secure }) => secure === true);
  }
  const https = { "x-forwarded-proto": "https" };
  expect(await isSecure(https)).toBe(true);
  expect(await isSecure({ ...https, "x-forwarded-for": `${client}, ${outer}` })).toBe(true);
  expect(await isSecure({ forwarded: `for=${client};proto=HTTPS` })).toBe(true);
  expect(await isSecure({ "x-forwarded-proto": "https, http", "x-forwarded-for": client })).toBe(false);
  expect(await isSecure({ "x-forwarded-proto": "httpsx" })).toBe(false);
  expect(await isSecure(https, stranger)).toBe(false);
});
