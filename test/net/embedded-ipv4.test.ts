import { describe, expect, it } from "vitest";
import { AddressGuard } from "../../src/net/addresses/address-guard.ts";
import { get, localClient } from "./client.ts";
import { watchConnects } from "./connects.ts";

function isAllowed(address: string, ...allowNetworks: string[]): boolean {
  const guard = new AddressGuard({ allowNetworks, lookupTimeoutMs: 1_000 });
  return guard.findProblem(address, address) === undefined;
}

/** Forms of 127.0.0.1 in IPv6. */
const loopback: [string, string][] = [
  ["IPv4-mapped", "::ffff:127.0.0.1"],
  ["IPv4-mapped, in full", "0:0:0:0:0:FFFF:7F00:1"],
  ["IPv4-compatible", "::127.0.0.1"],
  ["IPv4-translated", "::ffff:0:7f00:1"],
  ["NAT64", "64:ff9b::127.0.0.1"],
  ["local NAT64, prefix of 96 bits", "64:ff9b:1:abcd::7f00:1"],
  ["local NAT64, prefix of 64 bits", "64:ff9b:1:2:7f:0:100:0"],
  ["local NAT64, prefix of 56 bits", "64:ff9b:1:7f:0:1::"],
  ["local NAT64, prefix of 48 bits", "64:ff9b:1:7f00:0:100::"],
  ["6to4", "2002:7f00:1::1"],
  ["Teredo", "2001:0:4136:e378:8000:63bf:80ff:fffe"],
  ["ISATAP", "fe80::5efe:127.0.0.1"],
  ["ISATAP with a zone", "fe80::200:5efe:7f00:1%eth0"],
  ["ISATAP below a public prefix", "2606:2800::5efe:127.0.0.1"],
];

describe("an IPv4 address in an IPv6 form", () => {
  it.each(loopback)("is not opened by an IPv6 network: %s", (_form, address) => {
    expect(isAllowed(address)).toBe(false);
    expect(isAllowed(address, "::/0")).toBe(false);
    expect(isAllowed(address, "::/1", "::/96", "::ffff:0:0/96", "64:ff9b::/96")).toBe(false);
  });

  it.each(loopback.filter(([form]) => !form.startsWith("local NAT64")))(
    "is opened by its IPv4 network, and by no other: %s",
    (_form, address) => {
      expect(isAllowed(address, "127.0.0.0/8")).toBe(true);
      expect(isAllowed(address, "10.0.0.0/8", "0.0.0.0/8")).toBe(false);
    },
  );

  it("behind a local NAT64 must be allowed for every length that the prefix may have", () => {
    expect(isAllowed("64:ff9b:1::7f00:1", "127.0.0.0/8")).toBe(false);
    expect(isAllowed("64:ff9b:1::7f00:1", "0.0.0.0/0")).toBe(true);
  });

  it("that is public is opened by an IPv6 network, as behind NAT64", () => {
    expect(isAllowed("64:ff9b::8.8.8.8")).toBe(false);
    expect(isAllowed("64:ff9b::8.8.8.8", "64:ff9b::/96")).toBe(true);
    expect(isAllowed("64:ff9b::10.0.0.1", "64:ff9b::/96")).toBe(false);
  });

  it("that is public below a public prefix, as of ISATAP, needs no network", () => {
    expect(isAllowed("2606:2800::5efe:8.8.8.8")).toBe(true);
  });
});

it("lets IPv6 networks open the addresses that are IPv6 only", () => {
  for (const address of ["::1", "::", "fd00::1", "fe80::1%eth0", "2001:db8::1"]) {
    expect(isAllowed(address, "::/0")).toBe(true);
    expect(isAllowed(address, "0.0.0.0/0")).toBe(false);
  }
});

it.each(["[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "mapped.test"])(
  "connects to no socket for %s while ::/0 is allowed",
  async (host) => {
    const connects = watchConnects();
    const lookup = async () => [{ address: "::ffff:127.0.0.1", family: 6 }];
    const client = localClient({ allowNetworks: ["::/0"], lookup });
    await expect(get(client, new URL(`http://${host}/`))).rejects.toMatchObject({
      code: "address_blocked",
    });
    expect(connects).toEqual([]);
  },
);
