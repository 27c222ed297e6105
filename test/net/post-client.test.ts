import { describe, expect, onTestFinished, test } from "vitest";
import { createPostClient, everyNetwork, type PostClientOptions } from "../../src/net/http/post-client.ts";
import { startUpstream } from "./upstream.ts";

function open(options: Partial<PostClientOptions> = {}) {
  const client = createPostClient({ allowNetworks: everyNetwork, perHost: 4, ...options });
  onTestFinished(() => client.close());
  const { signal } = new AbortController();
  return {
    client,
    post: (url: URL) => client.post(url, { headers: { "x-kind": "test" }, body: "{}", signal }),
  };
}

describe("the client for POST", () => {
  test.each([200, 302, 307, 404, 500])("resolves with %i, and follows nothing", async (status) => {
    const seen: unknown[] = [];
    const upstream = await startUpstream((request, response) => {
      seen.push([request.method, request.url, request.headers["x-kind"]]);
      response.writeHead(status, { location: "/elsewhere", "retry-after": "7" }).end("body");
    });
    const response = await open().post(upstream.url("/hook?a=b"));
    expect([response.status, response.headers.get("retry-after")]).toEqual([status, "7"]);
    expect(seen).toEqual([["POST", "/hook?a=b", "test"]]);
  });

  test("reaches local names and private addresses only if their networks are allowed", async () => {
    const upstream = await startUpstream((_, response) => void response.end());
    const strict = open({ allowNetworks: [] });
    for (const host of ["127.0.0.1", "localhost"]) {
      const url = upstream.url("/", host);
      await expect(strict.post(url)).rejects.toMatchObject({ code: "address_blocked" });
      expect(await open().post(url)).toMatchObject({ status: 200 });
    }
  });

  test.each(["ftp://127.0.0.1/", "http://name:word@127.0.0.1/"])("sends nothing to %s", async (url) => {
    await expect(open().post(new URL(url))).rejects.toMatchObject({ code: "invalid_url" });
  });

  test("uses a connection again, unless the response is longer than a few KiB", async () => {
    let length = 10;
    const upstream = await startUpstream((_, response) => void response.end(Buffer.alloc(length)));
    const { post } = open();
    await post(upstream.url("/"));
    length = 1024 * 1024;
    await post(upstream.url("/"));
    expect(upstream.sockets).toHaveLength(1);
    await post(upstream.url("/"));
    expect(upstream.sockets).toHaveLength(2);
  });

  test("gives a server that does not respond up after the time limit", async () => {
    const upstream = await startUpstream(() => {});
    const waiting = open({ totalTimeoutMs: 50 }).post(upstream.url("/hook?token=hidden"));
    await expect(waiting).rejects.toMatchObject({
      code: "upstream_timeout",
      message: expect.not.stringContaining("hidden"),
    });
  });

  test("is unavailable once it is closed", async () => {
    const upstream = await startUpstream((_, response) => void response.end());
    const { client, post } = open();
    await client.close();
    await expect(post(upstream.url("/"))).rejects.toMatchObject({ code: "unavailable" });
  });
});
