import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createCookieJar, parseCookies } from "../../src/net/cookies.ts";
import { seed } from "../random.ts";
import { localClient, read } from "./client.ts";
import { startUpstream } from "./upstream.ts";

const page = "https://www.example.com/videos/otters";
const suffix = "https://github.io/";

/** Returns the `Cookie` field of a request for `url` after `from` has set these cookies. */
function sent(fields: string | string[], url = page, from = page): string | undefined {
  const jar = createCookieJar();
  jar.store(new URL(from), [fields].flat());
  return jar.fieldFor(new URL(url));
}

describe("a cookie that a response sets is sent", () => {
  it.each<[string, string | string[], string, string | undefined, string?]>([
    ["to its host", "a=1", "https://www.example.com/videos/", "a=1"],
    ["to no subdomain of its host", "a=1; Path=/", "https://cdn.www.example.com/", undefined],
    ["to no sibling of its host", "a=1; Path=/", "https://cdn.example.com/", undefined],
    ["to all of its domain", "a=1; Path=/; Domain=example.com", "https://cdn.example.com/", "a=1"],
    ["to all of its domain, with a dot", "a=1; path=/; domain=.Example.com", "https://example.com/", "a=1"],
    [
      "to no host of a public suffix that is its host",
      "a=1; Path=/; Domain=github.io",
      "https://a.github.io/",
      undefined,
      suffix,
    ],
    ["to a public suffix that is its host", "a=1; Path=/; Domain=github.io", suffix, "a=1", suffix],
    ["to its path", "a=1; Path=/videos", "https://www.example.com/videos/1", "a=1"],
    ["to its path's folder if it names none", "a=1", "https://www.example.com/videos/x/1", "a=1"],
    ["nowhere beside it", "a=1", "https://www.example.com/other", undefined],
    ["over https", "a=1; Path=/; Secure", "https://www.example.com/", "a=1"],
    ["not over http if it is secure", "a=1; Path=/; Secure", "http://www.example.com/", undefined],
    ["for its age", "a=1; Max-Age=60; Expires=Wed, 01 Jan 2020 00:00:00 GMT", page, "a=1"],
    ["not after its date", "a=1; Expires=Wed, 01-Jan-2020 00:00:00 GMT", page, undefined],
    ["with its last value", ["a=1", "b=2", "a=3; HttpOnly; SameSite=Lax"], page, "b=2; a=3"],
    ["until it is deleted", ["a=1", "b=2", "a=; Max-Age=0"], page, "b=2"],
    ["in the quotes that it has", 'a="1 2"', page, 'a="1 2"'],
    ["with long attributes", `a=1; Comment=${"x".repeat(4_000)}`, page, "a=1"],
    ["with what is equal to an attribute", "path=1", page, "path=1"],
  ])("%s", (_, fields, url, expected, from) => {
    expect(sent(fields, url, from)).toBe(expected);
  });

  it.each([
    ["of another site", "a=1; Domain=example.org", page],
    ["of a site that only ends alike", "a=1; Domain=ample.com", page],
    ["of a subdomain", "a=1; Domain=cdn.www.example.com", page],
    ["of a public suffix", "a=1; Domain=com", page],
    ["of a public suffix of two labels", "a=1; Domain=co.uk; Path=/", "https://www.example.co.uk/"],
    ["of a part of an address", "a=1; Domain=0.0.1", "http://127.0.0.1/"],
    ["that is secure although the page is not", "a=1; Secure", "http://www.example.com/"],
    ["without a name", "=1", page],
    ["that would end the field", "a=1\r\nX: 2", page],
    ["that is too long", `a=${"1".repeat(5_000)}`, page],
    ["whose attributes are too long", `a=1${";".repeat(8_192)}`, page],
    ["without a value", "a", page],
  ])("unless it is one %s", (_, field, from) => {
    expect(sent(field, from, from)).toBeUndefined();
    expect(sent([field, "b=2"], from, from)).toBe("b=2");
  });
});

it("has at most 50 cookies and 6 KiB of them, the newest", () => {
  const jar = createCookieJar();
  const many = Array.from({ length: 80 }, (_, n) => `c${n}=1; Path=/`);
  jar.store(new URL(page), many);
  expect(jar.fieldFor(new URL(page))?.split("; ")).toEqual(
    many.slice(-50).map((field) => field.replace("; Path=/", "")),
  );
  jar.store(
    new URL(page),
    Array.from({ length: 50 }, (_, n) => `long${n}=${"x".repeat(1_000)}`),
  );
  expect(jar.fieldFor(new URL(page))).toContain("long49=");
  expect(jar.fieldFor(new URL(page))!.length).toBeLessThan(6_144);
});

it("reads the last 100 fields of a response at most, as those of 2,000 would be pushed out", () => {
  const fields = (count: number) => ["a=1; Path=/", ...Array.from({ length: count }, (_, n) => `b=${n}; Path=/`)];
  expect(sent(fields(99))).toBe("a=1; b=98");
  expect(sent(fields(100))).toBe("b=99");
});

it("states its cookies as they are read again", () => {
  const octet = fc.constantFrom("a", "b", '"', "\\", ",", " ", ".", ";", "/", "Z");
  const value = fc.string({ unit: octet, maxLength: 12 });
  const attribute = fc.constantFrom("", "Path=/", "Domain=example.com", "Max-Age=99", "Secure", "Path=/a/b");
  const written = fc.tuple(fc.constantFrom("a", "b", "c"), value, attribute, attribute);
  const url = fc.constantFrom(page, "https://cdn.example.com/a/b/c", "http://www.example.com/");
  fc.assert(
    fc.property(fc.array(written, { maxLength: 5 }), url, (fields, target) => {
      const jar = createCookieJar();
      jar.store(
        new URL(page),
        fields.map(([name, ...rest]) => `${name}=${rest.join(";")}`),
      );
      const cookies = parseCookies(jar.toText(), "cdn.example.com");
      expect(cookies.fieldFor(new URL(target))).toBe(jar.fieldFor(new URL(target)));
    }),
    { seed },
  );
});

it("is filled and used by each hop of a request, and by no other request", async () => {
  const seen: (string | undefined)[] = [];
  const upstream = await startUpstream(({ url, headers }, response) => {
    seen.push(headers.cookie);
    if (url === "/start") {
      const fields = ["a=1; Path=/; Expires=Wed, 01 Jan 2070 00:00:00 GMT", "b=2; Path=/"];
      response.writeHead(302, { location: "/end", "set-cookie": fields }).end();
    } else response.writeHead(200, { "set-cookie": "b=3; Path=/" }).end("film");
  });
  const client = localClient();
  const cookies = createCookieJar();
  expect(await read(client, upstream.url("/start"), { cookies })).toBe("film");
  await read(client, upstream.url("/end"), { cookies });
  await read(client, upstream.url("/end"));
  expect(seen).toEqual([undefined, "a=1; b=2", "a=1; b=3", undefined]);
});
