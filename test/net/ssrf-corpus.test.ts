import { describe, expect, test } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import type { Lookup } from "../../src/net/addresses/address-guard.ts";
import { createHttpClient } from "../../src/net/http/http-client.ts";
import { parseHttpUrl } from "../../src/net/http-url.ts";
import { get } from "./client.ts";
import { watchConnects } from "./connects.ts";
import { attackUrls, expecting, lookupTo, publicAddress } from "./attack-urls.ts";
import { startUpstream } from "./upstream.ts";

/** Fetches a URL as a user entered it. Returns the error's code and the addresses of the connections. */
async function attempt(text: string, lookup: Lookup) {
  const connects = watchConnects();
  const client = createHttpClient({ lookup });
  try {
    await get(client, parseHttpUrl(text));
    return { code: "fetched", connects };
  } catch (error) {
    return { code: error instanceof ServiceError ? error.code : String(error), connects };
  } finally {
    await client.close();
  }
}

describe("the corpus of attack URLs", () => {
  test.skipIf(attackUrls.length === 0)("is here", () => {
    expect(attackUrls.length).toBeGreaterThan(400);
  });

  test.each(expecting("reject"))("$id $title is refused as a URL", async ({ url }) => {
    expect(await attempt(url, lookupTo(publicAddress))).toEqual({
      code: "invalid_url",
      connects: [],
    });
  });

  // If a row states nothing about its name, a local resolver would return a local address.
  test.each(expecting("block").filter(({ dns }) => dns?.mode === undefined))(
    "$id $title is refused before there is a socket, on its own port and on one that listens",
    async ({ url, dns }) => {
      const canary = await startUpstream((_request, response) => response.end("secret"));
      const lookup = lookupTo(...(dns === null ? ["127.0.0.1"] : [...(dns.AAAA ?? []), ...(dns.A ?? [])]));
      const listening = URL.parse(url);
      if (listening !== null) listening.port = `${canary.port}`;
      for (const text of [url, listening?.href ?? url]) {
        const { code, connects } = await attempt(text, lookup);
        expect(code).toBe(/\p{Cc}/u.test(text) ? "invalid_url" : "address_blocked");
        expect(connects).toEqual([]);
      }
      expect(canary.sockets).toEqual([]);
    },
  );

  test.each(expecting("block").filter(({ dns }) => dns?.mode !== undefined))(
    "$id $title is connected to by its first lookup only",
    async ({ url }) => {
      const results = [[publicAddress], ["127.0.0.1"]];
      const lookup: Lookup = (...call) => lookupTo(...(results.shift() ?? []))(...call);
      const { connects } = await attempt(url, lookup);
      expect(connects).toEqual([publicAddress]);
      expect(results).toEqual([["127.0.0.1"]]);
    },
  );

  test.each(expecting("allow"))("$id $title is connected to", async ({ url, dns }) => {
    const { code, connects } = await attempt(url, lookupTo(...(dns?.A ?? [])));
    expect(code).toBe("upstream_unreachable");
    expect(connects).toEqual([dns?.A?.[0] ?? new URL(url).hostname.replace(/^\[|\]$/g, "")]);
  });

  test.each(expecting("dns"))("$id $title is decided by what its name resolves to", async ({ url }) => {
    const open = await attempt(url, lookupTo(publicAddress));
    const closed = await attempt(url, lookupTo(publicAddress, "10.0.0.1"));
    expect(closed.connects).toEqual([]);
    if (isRefusedAsText(url)) {
      expect([open, closed.code]).toEqual([{ code: "invalid_url", connects: [] }, "invalid_url"]);
    } else {
      expect(open.connects).toEqual([publicAddress]);
      expect(closed.code).toBe("address_blocked");
    }
  });

  test.each(expecting("policy", "error"))("$id $title ends in one of our errors", async ({ url, dns }) => {
    const { code, connects } = await attempt(url, lookupTo(...(dns?.A ?? [])));
    expect(code).toMatch(/^(invalid_url|address_blocked|upstream_unreachable)$/);
    expect(connects.filter((address) => address.startsWith("127."))).toEqual([]);
  });
});

/** Credentials and control characters, where our rules are stricter than WHATWG's. */
function isRefusedAsText(text: string): boolean {
  const url = new URL(text);
  return /\p{Cc}/u.test(text) || url.username !== "" || url.password !== "";
}
