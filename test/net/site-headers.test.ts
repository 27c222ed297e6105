import { describe, expect, it } from "vitest";
import type { HeadersFor } from "../../src/net/client.ts";
import { createPageHeaders, createSiteHeaders } from "../../src/net/http/site-headers.ts";
import { localClient, read } from "./client.ts";
import { startUpstream } from "./upstream.ts";

const page = "https://www.example.com/watch?v=7#t=5";
const url = "https://media.example.com/film/1.mp4";
const fieldsAt = (headers: HeadersFor, target = url) => headers(new URL(target));

describe("the Referer of a page", () => {
  const headers = createPageHeaders(new URL(page));
  it.each([
    ["to its own origin: its URL without fragment", "https://www.example.com/a.m3u8", page.slice(0, -4)],
    ["to another origin: its origin", "https://media.example.com/", "https://www.example.com/"],
    ["to another port: its origin", "https://www.example.com:8443/", "https://www.example.com/"],
    ["from https to http: none", "http://www.example.com/", undefined],
  ])("%s", (_case, target, referer) => {
    expect(fieldsAt(headers, target)).toEqual(referer === undefined ? {} : { referer });
  });

  it("has no user name, and of a long URL only the origin", () => {
    const named = createPageHeaders(new URL("https://me:secret@www.example.com/"));
    expect(fieldsAt(named, "https://www.example.com/a")).toEqual({
      referer: "https://www.example.com/",
    });
    const long = createPageHeaders(new URL(`https://www.example.com/${"a".repeat(5_000)}`));
    expect(fieldsAt(long, "https://www.example.com/a")).toEqual({
      referer: "https://www.example.com/",
    });
  });

  it("gives way to that of the format, which may be none", () => {
    const own = createSiteHeaders({ url, http_headers: { Referer: "https://other.example/" } }, page);
    expect(fieldsAt(own)).toEqual({ referer: "https://other.example/" });
    expect(fieldsAt(createSiteHeaders({ url, http_headers: { Referer: "" } }, page))).toEqual({});
  });
});

it("sends only header fields that a site may choose", () => {
  const http_headers = {
    "User-Agent": "Player/1.0",
    "accept-language": "de",
    Origin: "https://www.example.com",
    Cookie: "session=secret",
    Host: "internal.example",
    Range: "bytes=0-1",
    Connection: "close",
    "Transfer-Encoding": "chunked",
    "X-Forwarded-For": "127.0.0.1",
  };
  expect(fieldsAt(createSiteHeaders({ url, http_headers }, ""))).toEqual({
    "user-agent": "Player/1.0",
    origin: "https://www.example.com",
  });
});

it("sends Authorization only to the origin of the format", () => {
  const headers = createSiteHeaders({ url, http_headers: { Authorization: "Bearer x" } }, "");
  expect(fieldsAt(headers, "https://media.example.com/2")).toEqual({ authorization: "Bearer x" });
  for (const other of ["https://example.com/", "http://media.example.com/", url.replace(".com", ".com:444")]) {
    expect(fieldsAt(headers, other)).toEqual({});
  }
});

describe("a cookie is sent", () => {
  const cases: readonly (readonly [string, string, string, string | undefined])[] = [
    ["to its host", "a=1; Domain=media.example.com; Path=/", url, "a=1"],
    ["to the format's host if it names none", "a=1", url, "a=1"],
    ["to no other host if it names none", "a=1", "https://example.com/", undefined],
    ["to subdomains of a domain with a dot", "a=1; Domain=.example.com", url, "a=1"],
    ["to that domain itself", "a=1; Domain=.example.com", "https://example.com/", "a=1"],
    ["not to subdomains of a host", "a=1; Domain=example.com", url, undefined],
    ["not to a host that only ends alike", "a=1; Domain=.example.com", "https://badexample.com/", undefined],
    ["not to all hosts of a public suffix", "a=1; Domain=.com", url, undefined],
    [
      "not to all hosts of a public suffix of two labels",
      "a=1; Domain=.co.uk",
      "https://www.example.co.uk/",
      undefined,
    ],
    ["not to subdomains of an address", "a=1; Domain=.0.0.1", "http://127.0.0.1/", undefined],
    ["to a host without a dot, as Python names it", "a=1; Domain=localhost.local", "http://localhost/", "a=1"],
    ["below its path", "a=1; Domain=.example.com; Path=/film", url, "a=1"],
    ["not beside its path", "a=1; Domain=.example.com; Path=/fil", url, undefined],
    ["over https if it is secure", "a=1; Domain=.example.com; Secure", url, "a=1"],
    ["not over http if it is secure", "a=1; Domain=.example.com; Secure", url.replace("s", ""), undefined],
    ["before it expires", "a=1; Expires=32503680000", url, "a=1"],
    ["not after it expires, in seconds", "a=1; Expires=1577836800", url, undefined],
    ["not after it expires, by date", "a=1; Expires=Wed, 01 Jan 2020 00:00:00 GMT", url, undefined],
    ["not after its age", "a=1; Max-Age=0", url, undefined],
    ["unquoted", String.raw`a="b\054 c\"d="; Domain=.example.com`, url, 'a=b, c"d='],
    ["with others, longer paths first", "a=1; Path=/; b=2; Path=/film; c=3; Path=/", url, "b=2; a=1; c=3"],
    ["unless it would end the field", 'a="b\\015\\012X: 1"; b=2', url, "b=2"],
    ["unless it would begin another", String.raw`a="b\073 c=3"; b=2`, url, "b=2"],
  ];
  it.each(cases)("%s", (_case, cookies, target, expected) => {
    const cookie = fieldsAt(createSiteHeaders({ url, cookies }, ""), target)["cookie"];
    expect(cookie).toBe(expected);
  });

  it("in a time that grows with the text alone", () => {
    const cookies = `${"a=1; ".repeat(20_000)}${" ".repeat(100_000)}b${" ".repeat(100_000)}="${"\\".repeat(100_000)}`;
    const before = process.threadCpuUsage();
    createSiteHeaders({ url, cookies }, "");
    const { user, system } = process.threadCpuUsage(before);
    expect((user + system) / 1_000).toBeLessThan(1_000);
  });
});

it("sends each hop of a redirect its own fields", async () => {
  const seen: Record<string, unknown>[] = [];
  const last = await startUpstream(({ headers }, response) => {
    seen.push(headers);
    response.end("film");
  });
  const first = await startUpstream(({ headers }, response) => {
    seen.push(headers);
    response.writeHead(302, { location: last.url("/film", "localhost").href }).end();
  });
  const start = first.url("/film");
  const headers = createSiteHeaders(
    {
      url: start.href,
      http_headers: { Authorization: "Bearer x", "User-Agent": "Player/1.0" },
      cookies: "session=1; Domain=127.0.0.1; Path=/",
    },
    first.url("/watch").href,
  );
  expect(await read(localClient({ allowNetworks: ["127.0.0.0/8", "::1/128"] }), start, { headers })).toBe("film");
  const agent = { "user-agent": "Player/1.0" };
  expect(seen).toMatchObject([
    { ...agent, cookie: "session=1", authorization: "Bearer x", referer: first.url("/watch").href },
    { ...agent, referer: first.url("/").href },
  ]);
  expect(seen[1]).not.toHaveProperty("cookie");
  expect(seen[1]).not.toHaveProperty("authorization");
});

it("lets no header replace the range", async () => {
  const upstream = await startUpstream(({ headers }, response) => {
    response.end(JSON.stringify(headers));
  });
  const headers = () => ({ range: "bytes=9-", "if-range": '"other"', accept: "video/*" });
  const options = { headers, range: { offset: 0, length: 1 }, ifRange: '"v1"' };
  expect(JSON.parse(await read(localClient(), upstream.url("/"), options))).toMatchObject({
    accept: "video/*",
    range: "bytes=0-0",
    "if-range": '"v1"',
  });
});
