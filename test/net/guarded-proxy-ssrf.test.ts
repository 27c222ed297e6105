import { describe, expect, it, test } from "vitest";
import type { Lookup } from "../../src/net/addresses/address-guard.ts";
import { watchConnects } from "./connects.ts";
import { attackUrls, expecting, lookupTo, publicAddress } from "./attack-urls.ts";
import { credentialLine, localProxy, localRun, openRun, sendRaw } from "./proxy-client.ts";
import { startUpstream } from "./upstream.ts";

/** The two forms in which a local program asks for a URL, whatever its scheme. */
const forms = {
  "absolute-form": ({ host, pathname, search }: URL) =>
    `GET http://${host}${pathname}${search} HTTP/1.1\r\nHost: ${host}\r\n`,
  CONNECT: ({ hostname, port, protocol }: URL) =>
    `CONNECT ${hostname}:${port || (protocol === "https:" ? 443 : 80)} HTTP/1.1\r\n`,
};

/**
 * Sends both forms through a proxy without allowed networks. Returns for each the status, the code of the
 * run's error, and the addresses of the connections that the proxy has opened.
 */
async function attempt(url: URL, lookup: Lookup, connects: readonly string[]) {
  const proxy = await localProxy({ allowNetworks: [], lookup });
  const results: { status: number; code: string | undefined; opened: string[] }[] = [];
  for (const requestOf of Object.values(forms)) {
    const before = connects.length;
    const run = openRun(proxy);
    const answer = await sendRaw(run, `${requestOf(url)}${credentialLine(run)}\r\n`);
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1]);
    // The first is the one to the proxy itself.
    results.push({ status, code: run.error?.code, opened: connects.slice(before + 1) });
  }
  return results;
}

const twice = <T>(result: T) => [result, result];
const blocked = twice({ status: 403, code: "address_blocked", opened: [] });
const malformed = twice({ status: 400, code: undefined, opened: [] });
const connectedTo = (address: string | undefined) =>
  twice({ status: 502, code: "upstream_unreachable", opened: [address] });

describe("the corpus of attack URLs, through the proxy in both forms", () => {
  test.skipIf(attackUrls.length === 0)("is here", () => {
    expect(attackUrls.length).toBeGreaterThan(400);
  });

  test.each(expecting("block").filter(({ dns }) => dns?.mode === undefined))(
    "$id $title is refused before there is a socket, on its own port and on one that listens",
    async ({ url: text, dns }) => {
      const canary = await startUpstream((_request, response) => response.end("secret"));
      const lookup = lookupTo(...(dns === null ? ["127.0.0.1"] : [...(dns.AAAA ?? []), ...(dns.A ?? [])]));
      const connects = watchConnects();
      const [url, listening] = [new URL(text), new URL(text)];
      listening.port = `${canary.port}`;
      expect(await attempt(url, lookup, connects)).toEqual(blocked);
      expect(await attempt(listening, lookup, connects)).toEqual(blocked);
      expect(canary.sockets).toEqual([]);
    },
  );

  test.each(expecting("block").filter(({ dns }) => dns?.mode !== undefined))(
    "$id $title is connected to by its first lookup only",
    async ({ url }) => {
      const results = [[publicAddress], [publicAddress], ["127.0.0.1"]];
      const lookup: Lookup = (...call) => lookupTo(...(results.shift() ?? []))(...call);
      expect(await attempt(new URL(url), lookup, watchConnects())).toEqual(connectedTo(publicAddress));
      expect(results).toEqual([["127.0.0.1"]]);
    },
  );

  test.each(expecting("allow"))("$id $title is connected to", async ({ url: text, dns }) => {
    const url = new URL(text);
    const address = dns?.A?.[0] ?? url.hostname.replace(/^\[|\]$/g, "");
    expect(await attempt(url, lookupTo(...(dns?.A ?? [])), watchConnects())).toEqual(connectedTo(address));
  });

  test.each(expecting("dns"))("$id $title is decided by what its name resolves to", async ({ url: text }) => {
    const url = new URL(text);
    const connects = watchConnects();
    const open = await attempt(url, lookupTo(publicAddress), connects);
    const closed = await attempt(url, lookupTo(publicAddress, "10.0.0.1"), connects);
    // WHATWG allows these in a host, but HTTP in no request's target (RFC 3986).
    const isTarget = !/["`{}]/.test(url.host);
    expect(open).toEqual(isTarget ? connectedTo(publicAddress) : malformed);
    expect(closed).toEqual(isTarget ? blocked : malformed);
  });

  test.each(expecting("reject", "policy", "error"))(
    "$id $title, as it is written, opens nothing on this machine",
    async ({ url }) => {
      const connects = watchConnects();
      const run = await localRun({ allowNetworks: [], lookup: lookupTo("127.0.0.1") });
      const answer = await sendRaw(run, `GET ${url} HTTP/1.1\r\nHost: a\r\n${credentialLine(run)}\r\n`);
      expect(answer).toMatch(/^HTTP\/1\.1 (400|403|407|502) /);
      const opened = connects.slice(1);
      expect(opened.filter((address) => /^(127\.|::)/.test(address))).toEqual([]);
    },
  );
});

it.each(Object.entries(forms))("refuses a name with a public and a private address: %s", async (_form, requestOf) => {
  const connects = watchConnects();
  const run = await localRun({ allowNetworks: [], lookup: lookupTo(publicAddress, "10.0.0.1") });
  const request = requestOf(new URL("http://video.test/"));
  const answer = await sendRaw(run, `${request}${credentialLine(run)}\r\n`);
  expect(answer).toMatch(/^HTTP\/1\.1 403 /);
  expect(run.error).toMatchObject({
    code: "address_blocked",
    message: expect.stringContaining("video.test, which resolves to 10.0.0.1 (private)"),
  });
  expect(connects).toEqual(["127.0.0.1"]);
});

it.each(Object.entries(forms))(
  "refuses a connection that has reached another address than it was opened to: %s",
  async (_form, requestOf) => {
    // The kernel connects 0.0.0.0 to 127.0.0.1, which is not allowed here.
    const upstream = await startUpstream((_request, response) => response.end("secret"));
    const run = await localRun({ allowNetworks: ["0.0.0.0/32"] });
    const request = requestOf(upstream.url("/", "0.0.0.0"));
    expect(await sendRaw(run, `${request}${credentialLine(run)}\r\n`)).toMatch(/^HTTP\/1\.1 403 /);
    expect(run.error?.code).toBe("address_blocked");
  },
);

it("opens what ALLOW_NETWORKS names, and still refuses the rest", async () => {
  const upstream = await startUpstream((_request, response) => response.end("page"));
  const run = await localRun({ allowNetworks: ["127.0.0.0/8", "fd00::/8"] });
  const get = (url: URL) => sendRaw(run, `${forms["absolute-form"](url)}${credentialLine(run)}\r\n`);
  expect(await get(upstream.url("/"))).toMatch(/^HTTP\/1\.1 200 /);
  for (const host of ["10.0.0.1", "[::1]", "169.254.169.254"]) {
    expect(await get(new URL(`http://${host}/`))).toMatch(/^HTTP\/1\.1 403 /);
  }
});
