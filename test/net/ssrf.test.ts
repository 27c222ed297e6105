import { describe, expect, it } from "vitest";
import type { Lookup } from "../../src/net/addresses/address-guard.ts";
import { createHttpClient } from "../../src/net/http/http-client.ts";
import { get, localClient, read } from "./client.ts";
import { watchConnects } from "./connects.ts";
import { startUpstream } from "./upstream.ts";

const publicAddress = "93.184.216.34";

/** Creates a lookup that returns these addresses one after the other and records the names. */
function lookupReturning(...results: string[][]) {
  const lookups: string[] = [];
  const lookup: Lookup = async (name) => {
    lookups.push(name);
    const addresses = results.length > 1 ? results.shift() : results[0];
    return (addresses ?? []).map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
  };
  return { lookup, lookups };
}

describe("with no network allowed", () => {
  it.each([
    ["http://127.0.0.1/", "127.0.0.1 (loopback)"],
    ["http://2130706433/", "127.0.0.1 (loopback)"],
    ["http://0x7f.1/", "127.0.0.1 (loopback)"],
    ["http://0177.0.0.1/", "127.0.0.1 (loopback)"],
    ["http://127.0.0.1/", "127.0.0.1 (loopback)"],
    ["http://0/", "0.0.0.0 (this network)"],
    ["https://10.0.0.1/", "10.0.0.1 (private)"],
    ["http://169.254.169.254/latest/meta-data/", "169.254.169.254 (link-local)"],
    ["http://[::]/", ":: (unspecified)"],
    ["http://[::1]/", "::1 (loopback)"],
    ["http://[::ffff:127.0.0.1]/", "::ffff:7f00:1 (IPv4-mapped)"],
    ["http://[64:ff9b::7f00:1]/", "64:ff9b::7f00:1 (IPv4 behind NAT64)"],
    ["http://[2002:7f00:1::]/", "2002:7f00:1:: (6to4)"],
    ["https://[fd00::1]/", "fd00::1 (unique local)"],
  ])("refuses %s before there is a socket", async (url, shown) => {
    const connects = watchConnects();
    const { lookup, lookups } = lookupReturning([publicAddress]);
    await expect(get(localClient({ allowNetworks: [], lookup }), new URL(url))).rejects.toMatchObject({
      name: "ServiceError",
      code: "address_blocked",
      message:
        `refused to connect to ${shown}: only public addresses are fetched; ` +
        "ALLOW_NETWORKS can open other networks",
    });
    expect(connects).toEqual([]);
    expect(lookups).toEqual([]);
  });

  it.each([
    "localhost",
    "LOCALHOST.",
    "a.localhost",
    "printer.local",
    "metadata.google.internal",
    "router.home.arpa",
    "kubernetes.default.svc",
  ])("refuses %s without a lookup", async (host) => {
    const connects = watchConnects();
    const { lookup, lookups } = lookupReturning([publicAddress]);
    const client = localClient({ allowNetworks: [], lookup });
    await expect(get(client, new URL(`http://${host}/`))).rejects.toMatchObject({
      code: "address_blocked",
      message: expect.stringContaining(`${host.toLowerCase()}, a name of local networks`),
    });
    expect([...lookups, ...connects]).toEqual([]);
  });

  it.each([
    [["127.0.0.1"], "127.0.0.1 (loopback)"],
    [[publicAddress, "10.0.0.1"], "10.0.0.1 (private)"],
    [["2606:2800:220:1::1", "::ffff:7f00:1"], "::ffff:7f00:1 (IPv4-mapped)"],
    [["fe80::1%lo"], "fe80::1%lo (link-local)"],
    [["example.com"], "example.com (not an IP address)"],
  ])("refuses a name that resolves to %j, in whatever order", async (addresses, shown) => {
    const connects = watchConnects();
    const client = localClient({ allowNetworks: [], lookup: lookupReturning(addresses).lookup });
    for (const url of ["http://video.test/", "https://video.test./"]) {
      await expect(get(client, new URL(url))).rejects.toMatchObject({
        code: "address_blocked",
        message: expect.stringMatching(/^refused to connect to video\.test\.?, which resolves to /),
      });
      await expect(get(client, new URL(url))).rejects.toThrow(`which resolves to ${shown}: only`);
    }
    expect(connects).toEqual([]);
  });

  it("connects to all the addresses that it checked, and to no others", async () => {
    const connects = watchConnects();
    const addresses = [publicAddress, "2606:2800:220:1::1"];
    const { lookup, lookups } = lookupReturning(addresses, ["127.0.0.1"]);
    const client = localClient({ allowNetworks: [], lookup });
    await expect(get(client, new URL("http://video.test/"))).rejects.toMatchObject({
      code: "upstream_unreachable",
    });
    expect(connects).toEqual(addresses);
    expect(lookups).toEqual(["video.test"]);
  });
});

describe("with 127.0.0.0/8 allowed", () => {
  it("fetches from there by address and by name, with one lookup per connection", async () => {
    const upstream = await startUpstream((_request, response) => response.end("page"));
    const { lookup, lookups } = lookupReturning(["127.0.0.1"], ["127.0.0.2"]);
    const client = localClient({ lookup, perHost: 1 });
    expect(await read(client, upstream.url("/"))).toBe("page");
    expect(await read(client, upstream.url("/", "video.test"))).toBe("page");
    expect(await read(client, upstream.url("/", "video.test"))).toBe("page");
    expect(lookups).toEqual(["video.test"]);
  });

  it("fetches from there by an IPv4-mapped address", async () => {
    const upstream = await startUpstream((_request, response) => response.end("page"));
    expect(await read(localClient(), upstream.url("/", "[::ffff:127.0.0.1]"))).toBe("page");
  });

  it("decides on localhost by its addresses", async () => {
    const upstream = await startUpstream((_request, response) => response.end("page"));
    const only4 = localClient({ lookup: lookupReturning(["127.0.0.1"]).lookup });
    expect(await read(only4, upstream.url("/", "localhost"))).toBe("page");
    const both = localClient({ lookup: lookupReturning(["127.0.0.1", "::1"]).lookup });
    await expect(get(both, upstream.url("/", "localhost"))).rejects.toThrow(
      "refused to connect to localhost, which resolves to ::1 (loopback)",
    );
  });

  it("still refuses what is in no allowed network", async () => {
    const connects = watchConnects();
    const client = localClient({ allowNetworks: ["127.0.0.0/8", "fd00::/8"] });
    for (const host of ["10.0.0.1", "[::1]", "[::ffff:10.0.0.1]", "169.254.169.254"]) {
      await expect(get(client, new URL(`http://${host}/`))).rejects.toMatchObject({
        code: "address_blocked",
      });
    }
    expect(connects).toEqual([]);
  });
});

it("refuses a connection that has reached another address than it was opened to", async () => {
  // The kernel connects 0.0.0.0 to 127.0.0.1, which is not allowed here.
  const upstream = await startUpstream((_request, response) => response.end("secret"));
  const client = localClient({ allowNetworks: ["0.0.0.0/32"] });
  await expect(get(client, upstream.url("/", "0.0.0.0"))).rejects.toMatchObject({
    code: "address_blocked",
    message: expect.stringContaining("0.0.0.0, which resolves to 127.0.0.1 (loopback)"),
  });
});

it("names an entry that is not a network", () => {
  expect(() => createHttpClient({ allowNetworks: ["127.0.0.0/8", "10.0.0/8"] })).toThrow(
    'ALLOW_NETWORKS must be networks like 127.0.0.0/8 or fd00::/8, got "10.0.0/8"',
  );
});
