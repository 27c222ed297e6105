import { expect, it } from "vitest";
import { bodyOf, get, localClient, read } from "./client.ts";
import { startUpstream } from "./upstream.ts";

/** Redirects every path to its query; responds to `/page` with a page. */
const redirector = () =>
  startUpstream(({ url = "" }, response) => {
    const [path = "", location] = url.split("?", 2);
    if (path === "/page") return response.end(`page of ${url}`);
    const status = Number(path.slice(1)) || 302;
    return response.writeHead(status, location === undefined ? {} : { location }).end("moved");
  });

it.each([301, 302, 303, 307, 308])("follows status %i and returns the final URL", async (status) => {
  const upstream = await redirector();
  const target = upstream.url("/page");
  const response = await get(localClient(), upstream.url(`/${status}?${target.href}`));
  expect([response.status, response.url.href]).toEqual([200, target.href]);
  expect(await bodyOf(response)).toBe("page of /page");
});

it("follows a relative Location and keeps the fragment, on one connection", async () => {
  const upstream = await redirector();
  const response = await get(localClient(), upstream.url("/a/b?../page#part"));
  expect(response.url.href).toBe(upstream.url("/page#part").href);
  expect(await bodyOf(response)).toBe("page of /page");
  expect(upstream.sockets).toHaveLength(1);
});

it("reads a Location in UTF-8", async () => {
  const upstream = await startUpstream(({ url }, response) => {
    if (url !== "/") return response.end(url);
    return response.writeHead(302, { location: Buffer.from("/ü").toString("latin1") }).end();
  });
  expect(await read(localClient(), upstream.url("/"))).toBe("/%C3%BC");
});

it("follows 5 redirects and refuses a sixth", async () => {
  const paths: string[] = [];
  const upstream = await startUpstream(({ url = "" }, response) => {
    paths.push(url);
    const left = Number(url.slice(1));
    if (left === 0) return response.end("page");
    return response.writeHead(302, { location: `/${left - 1}` }).end();
  });
  const client = localClient();
  expect(await read(client, upstream.url("/5"))).toBe("page");
  await expect(get(client, upstream.url("/6"))).rejects.toMatchObject({
    code: "upstream_invalid",
    retryable: false,
    message: expect.stringContaining("the limit is 5 redirects"),
  });
  expect(paths.slice(6)).toEqual(["/6", "/5", "/4", "/3", "/2", "/1"]);
});

it("ends a loop at the same limit", async () => {
  const upstream = await redirector();
  await expect(get(localClient(), upstream.url("/?/"))).rejects.toMatchObject({
    code: "upstream_invalid",
  });
});

it.each([
  ["http://10.0.0.1/", "redirect 1 of http://127.0.0.1:PORT/r: refused to connect to 10.0.0.1 (private)"],
  ["http://[::1]:8080/", "redirect 1 of http://127.0.0.1:PORT/r: refused to connect to ::1 (loopback)"],
  ["//169.254.169.254/", "redirect 1 of http://127.0.0.1:PORT/r: refused to connect to 169.254.169.254 (link-local)"],
  [
    "http://localhost/",
    "redirect 1 of http://127.0.0.1:PORT/r: refused to connect to localhost, which resolves to ::1 (loopback)",
  ],
])("refuses a redirect to %s and names it", async (location, message) => {
  const upstream = await redirector();
  const client = localClient({ lookup: async () => [{ address: "::1", family: 6 }] });
  await expect(get(client, upstream.url(`/r?${location}`))).rejects.toMatchObject({
    code: "address_blocked",
    retryable: false,
    message: expect.stringContaining(message.replace("PORT", `${upstream.port}`)),
  });
});

it.each([
  ["a file", "file:///etc/passwd", "is refused: the URL must begin with https:// or http://"],
  ["a script", "javascript:alert(1)", "is refused: the URL must begin with https:// or http://"],
  [
    "a URL with a password",
    "http://user:hunter2@127.0.0.1/",
    "is refused: the URL must not contain a user name or password",
  ],
  ["a long URL", `/${"a".repeat(9000)}`, "is refused: the URL must be at most 8192 characters"],
  ["half a host", "http://[::1", "has a Location that is not a URL"],
  ["no host", "http://", "has a Location that is not a URL"],
])("rejects a redirect to %s as upstream_invalid", async (_what, location, message) => {
  const upstream = await startUpstream((_request, response) => {
    response.writeHead(302, { location }).end();
  });
  const failure = get(localClient(), upstream.url("/r"));
  await expect(failure).rejects.toMatchObject({ code: "upstream_invalid" });
  await expect(failure).rejects.toThrow(`the redirect of ${upstream.url("/r").href} ${message}`);
  await expect(failure).rejects.not.toThrow("hunter2");
});

it("requires a Location", async () => {
  const upstream = await redirector();
  await expect(get(localClient(), upstream.url("/302"))).rejects.toMatchObject({
    code: "upstream_invalid",
    message: `the redirect of ${upstream.url("/302").href} has no Location`,
  });
});

it("names the redirect after which a request failed", async () => {
  const upstream = await startUpstream(({ url }, response) => {
    if (url === "/") response.writeHead(302, { location: "/gone?token=1" }).end();
    else response.writeHead(503, { "retry-after": "7" }).end();
  });
  await expect(get(localClient(), upstream.url("/"))).rejects.toMatchObject({
    code: "upstream_status",
    retryable: true,
    retryAfterS: 7,
    message: `redirect 1 of ${upstream.url("/").href}: GET ${upstream.url("/gone").href} failed with status 503`,
  });
});

it.each(["endless", "stalled"])("does not wait for the %s body of a redirect", async (kind) => {
  const upstream = await startUpstream(({ url }, response) => {
    if (url === "/page") return response.end("page");
    response.writeHead(302, { location: "/page" });
    const more = (error?: Error | null) => {
      if (!error && kind === "endless") response.write(Buffer.alloc(64 * 1024), more);
    };
    return response.write("moved", () => more());
  });
  expect(await read(localClient(), upstream.url("/"))).toBe("page");
  await expect.poll(() => upstream.sockets[0]?.destroyed).toBe(true);
});

it("sends no cookie and no fragment", async () => {
  const seen: unknown[] = [];
  const upstream = await startUpstream(({ url, headers }, response) => {
    seen.push([url, headers.cookie, headers.authorization, headers.referer]);
    if (url === "/page") return response.end();
    return response.writeHead(302, { location: "/page", "set-cookie": ["a=1", "b=2"] }).end();
  });
  const client = localClient();
  await read(client, upstream.url("/#secret"));
  await read(client, upstream.url("/page"));
  expect(seen).toEqual(["/", "/page", "/page"].map((path) => [path, undefined, undefined, undefined]));
});
