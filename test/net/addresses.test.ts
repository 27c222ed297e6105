import { describe, expect, it, test } from "vitest";
import { parseNetworks, specialClassOf } from "../../src/net/addresses/addresses.ts";
import { corpusRows } from "./corpus.ts";

describe("specialClassOf", () => {
  it.each([
    ["0.0.0.0", "this network"],
    ["10.255.255.255", "private"],
    ["100.127.255.255", "shared (carrier-grade NAT)"],
    ["127.0.0.1", "loopback"],
    ["169.254.169.254", "link-local"],
    ["172.31.255.255", "private"],
    ["192.0.0.8", "IETF protocol assignments"],
    ["192.0.2.77", "documentation"],
    ["192.88.99.1", "6to4 relay anycast"],
    ["192.168.255.255", "private"],
    ["198.18.0.0", "benchmarking"],
    ["198.51.100.9", "documentation"],
    ["203.0.113.9", "documentation"],
    ["239.255.255.255", "multicast"],
    ["255.255.255.254", "reserved"],
    ["255.255.255.255", "broadcast"],
    ["::", "unspecified"],
    ["::1", "loopback"],
    ["::7f00:1", "IPv4-compatible"],
    ["::ffff:8.8.8.8", "IPv4-mapped"],
    ["::ffff:0:7f00:1", "IPv4-translated"],
    ["64:ff9b::808:808", "IPv4 behind NAT64"],
    ["64:ff9b:1::1", "IPv4 behind local NAT64"],
    ["100::1", "discard-only"],
    ["100:0:0:1::1", "dummy prefix"],
    ["2001:1ff::1", "IETF protocol assignments"],
    ["2001:db8::1", "documentation"],
    ["2002:7f00:1::", "6to4"],
    ["3fff:fff::1", "documentation"],
    ["4000::1", "reserved"],
    ["5f00::1", "segment routing"],
    ["fd00::1", "unique local"],
    ["fe80::1", "link-local"],
    ["fe80::1%eth0", "link-local"],
    ["FEC0::1", "site-local"],
    ["ff02::1", "multicast"],
    ["localhost", "not an IP address"],
    ["127.1", "not an IP address"],
    ["", "not an IP address"],
  ])("calls %s %s", (address, name) => {
    expect(specialClassOf(address)).toBe(name);
  });

  it.each([
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "126.255.255.255",
    "128.0.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.0",
    "223.255.255.255",
    "2001:200::1",
    "2001:db7:ffff::1",
    "2003::1",
    "3ffe::1",
    "3fff:1000::1",
    "2606:2800:220:1:248:1893:25c8:1946",
  ])("has no class for the public address %s", (address) => {
    expect(specialClassOf(address)).toBeUndefined();
  });
});

describe("parseNetworks", () => {
  it("finds addresses in IPv4 and IPv6 networks, also with bits set after the prefix", () => {
    const networks = parseNetworks(["10.1.2.3/8", "fd00::/8", "fe80::/10", "192.168.7.7/32"]);
    expect(["10.9.9.9", "fd12::1", "fe80::1%lo", "192.168.7.7"].map(networks.has)).not.toContain(false);
    expect(["11.0.0.1", "fc00::1", "192.168.7.8", "nonsense"].map(networks.has)).not.toContain(true);
  });

  it("does not mix IPv4 and IPv6", () => {
    expect(parseNetworks(["::/0"]).has("127.0.0.1")).toBe(false);
    expect(parseNetworks(["::ffff:0:0/96"]).has("127.0.0.1")).toBe(false);
    expect(parseNetworks(["0.0.0.0/0"]).has("::ffff:127.0.0.1")).toBe(false);
  });

  it.each([
    "10.0.0.0",
    "10.0.0.0/33",
    "fd00::/129",
    "10.0.0/8",
    "10.0.0.0/",
    "10.0.0.0/8/8",
    "10.0.0.0/-1",
    "10.0.0.0/1e1",
    "fe80::1%lo/64",
    "localhost/8",
    "/8",
    " 10.0.0.0/8",
  ])("refuses %j and names it", (text) => {
    expect(() => parseNetworks(["127.0.0.0/8", text])).toThrow(
      `ALLOW_NETWORKS must be networks like 127.0.0.0/8 or fd00::/8, got ${JSON.stringify(text)}`,
    );
  });
});

interface Row {
  ip: string;
  expect: "block" | "allow" | "policy";
  class: string;
}
const rows = corpusRows<Row>("ssrf_ips.json").filter((row) => row.expect !== "policy");

describe("the corpus of addresses", () => {
  test.skipIf(rows.length === 0)("is here", () => {
    expect(rows.length).toBeGreaterThan(100);
  });
  test.each(rows)("$expect $ip ($class)", (row) => {
    expect(specialClassOf(row.ip) === undefined).toBe(row.expect === "allow");
  });
});
