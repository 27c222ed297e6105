import { getEventListeners, once } from "node:events";
import { createServer } from "node:http";
import { Value } from "@sinclair/typebox/value";
import { describe, expect, it } from "vitest";
import { watchConnects } from "../net/connects.ts";
import { bodyText, type OpenResolver, resolve, start } from "./resolver/harness.ts";
import { startTicks } from "./ticks.ts";

/** How a resolver differs from those that read pages themselves. */
interface ResolverTraits {
  /** The names that a record's `resolver` may have; default the resolver's own. */
  readers?: string[];
  /** Error codes by path, instead of the usual ones. */
  codes?: Readonly<Record<string, string>>;
  /** Whether it requests what oEmbed links lead to; default true. */
  followsLinks?: boolean;
}

/** The contract of `src/resolvers/resolver.ts`; `fetchesPages` is false for one that requests nothing. */
export function describeResolver(
  name: string,
  fetchesPages: boolean,
  open: OpenResolver,
  traits: ResolverTraits = {},
): void {
  describe(`${name}, as any resolver,`, () => {
    describeOutput(open, traits);
    describeIndependence(open);
    describeStart(open);
    if (fetchesPages) {
      describeFetching(open);
      describeErrors(open, traits);
      describeAbort(open, traits);
      describeClose(open);
    }
  });
}

function describeOutput(open: OpenResolver, { readers }: ResolverTraits): void {
  it.each(["/video", "/text", "/moved", "/video?list=a%20b&x=é#part"])(
    "returns plain JSON that matches its schema, with the URL as asked: %s",
    async (path) => {
      const { resolver, url } = await start(open);
      const info = await resolve(resolver, url(path));
      expect([...Value.Errors(resolver.output, info)]).toEqual([]);
      expect(JSON.parse(JSON.stringify(info))).toEqual(info);
      expect(info).toMatchObject({ url: url(path).href });
      expect(readers ?? [resolver.name]).toContain(info["resolver"]);
    },
  );

  it("returns a value that the caller may change", async () => {
    const { resolver, url } = await start(open);
    const first = await resolve(resolver, url("/video"));
    const before = { ...structuredClone(first), fetched_at: null };
    emptyDeeply(first);
    expect({ ...(await resolve(resolver, url("/video"))), fetched_at: null }).toEqual(before);
  });

  it("changes neither the URL nor the context, and leaves no listener on the signal", async () => {
    const { resolver, url } = await start(open);
    const { signal } = new AbortController();
    const asked = url("/moved?x=1#part");
    const before = asked.href;
    await resolver.resolve(asked, Object.freeze({ signal }));
    expect(asked.href).toBe(before);
    await expect.poll(() => getEventListeners(signal, "abort")).toEqual([]);
  });
}

function describeIndependence(open: OpenResolver): void {
  it("reads several pages at once, and one page several times at once", async () => {
    const { resolver, url } = await start(open);
    const urls = ["/video", "/text", "/video", "/moved", "/video?2"].map((path) => url(path));
    const infos = await Promise.all(urls.map((each) => resolve(resolver, each)));
    expect(infos).toMatchObject(urls.map(({ href }) => ({ url: href })));
  });
}

function describeStart(open: OpenResolver): void {
  it("requests nothing for a signal that is aborted already", async () => {
    const { resolver, url, upstream } = await start(open);
    const reason = new Error("changed my mind");
    await expect(resolver.resolve(url("/video"), { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(upstream.sockets).toEqual([]);
  });

  it("never connects to an address that is not allowed", async () => {
    const { resolver, url, upstream } = await start(open, { allowNetworks: [] });
    const outcome = await resolve(resolver, url("/video")).catch((error: unknown) => error);
    if (outcome instanceof Error) expect(outcome).toMatchObject({ code: "address_blocked" });
    expect(upstream.sockets).toEqual([]);
  });

  it("can be closed twice", async () => {
    const { resolver, url } = await start(open);
    await resolve(resolver, url("/video"));
    await resolver.close();
    await resolver.close();
  });
}

function describeFetching(open: OpenResolver): void {
  it("reads the page again in each call", async () => {
    const { resolver, url, requests } = await start(open);
    await resolve(resolver, url("/video"));
    const first = requests.length;
    await resolve(resolver, url("/video"));
    expect(requests.filter((path) => path === "/video")).toHaveLength(2);
    expect(requests).toHaveLength(2 * first);
  });

  it("keeps one call apart from the failure and the abort of others", async () => {
    const { resolver, url, whenRequested } = await start(open);
    const abort = new AbortController();
    const reason = new Error("changed my mind");
    const stalled = resolver.resolve(url("/stalled"), { signal: abort.signal }).catch((error: unknown) => error);
    await whenRequested("/stalled");
    await expect(resolve(resolver, url("/404"))).rejects.toMatchObject({ code: "upstream_status" });
    const pending = resolve(resolver, url("/video"));
    abort.abort(reason);
    expect(await stalled).toBe(reason);
    expect(await pending).toMatchObject({ url: url("/video").href });
  });

  it("does not connect to a forbidden address that the page leads to", async () => {
    const connects = watchConnects();
    const { resolver, url } = await start(open, {}, (_request, response) => {
      response.setHeader("content-type", "text/html").end(`
        <link rel="alternate" type="application/json+oembed" href="http://10.0.0.1/oembed">
        <meta property="og:video" content="http://[::1]:9/main.m3u8">
        <video src="http://127.0.0.2:9/main.mpd"><source src="http://169.254.169.254/1.mp4"></video>`);
    });
    expect(await resolve(resolver, url("/"))).toMatchObject({ url: url("/").href });
    expect(new Set(connects)).toEqual(new Set(["127.0.0.1"]));
  });
}

function describeErrors(open: OpenResolver, { codes }: ResolverTraits): void {
  it.each(
    [
      ["/404", "upstream_status"],
      ["/503", "upstream_status"],
      ["/image", "upstream_invalid"],
      ["/loop", "upstream_invalid"],
      ["/cut", "upstream_unreachable"],
      ["/silent", "upstream_timeout"],
      ["/stalled", "upstream_timeout"],
      ["/inward", "address_blocked"],
    ].map(([path = "", code = ""]) => [path, codes?.[path] ?? code] as const),
  )("rejects for %s with %s, without a word of the body", async (path, code) => {
    const { resolver, url } = await start(open, code === "upstream_timeout" ? { idleTimeoutMs: 500 } : {});
    const error: unknown = await resolve(resolver, url(path)).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: "ServiceError", code });
    expect(String(error)).not.toContain(bodyText);
  });

  it("rejects with upstream_unreachable where nothing listens", async () => {
    const { resolver } = await start(open);
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    const port = typeof address === "object" ? address?.port : undefined;
    server.close();
    await once(server, "close");
    await expect(resolve(resolver, new URL(`http://127.0.0.1:${port}/`))).rejects.toMatchObject({
      name: "ServiceError",
      code: "upstream_unreachable",
    });
  });
}

function describeAbort(open: OpenResolver, { followsLinks = true }: ResolverTraits): void {
  const paths = ["/silent", "/stalled", ...(followsLinks ? ["/leads-to-silence"] : [])];
  it.each(paths)("ends everything within a second of the abort: %s", async (path) => {
    const { resolver, url, upstream, whenRequested } = await start(open);
    const abort = new AbortController();
    const reason = new Error("changed my mind");
    const outcome = resolver.resolve(url(path), { signal: abort.signal }).catch((error: unknown) => error);
    await whenRequested(path === "/leads-to-silence" ? "/silent" : path);
    const elapsedMs = startTicks();
    abort.abort(reason);
    expect(await outcome).toBe(reason);
    expect(elapsedMs()).toBeLessThan(1_000);
    const isOver = () => upstream.sockets.at(-1)?.destroyed;
    await expect.poll(isOver).toBe(true);
  });
}

function describeClose(open: OpenResolver): void {
  it("rejects with unavailable what is running when it is closed, and what comes later", async () => {
    const { resolver, url, upstream, whenRequested } = await start(open);
    const running = resolve(resolver, url("/silent")).catch((error: unknown) => error);
    await whenRequested("/silent");
    await resolver.close();
    expect(await running).toMatchObject({ code: "unavailable" });
    await expect(resolve(resolver, url("/video"))).rejects.toMatchObject({ code: "unavailable" });
    await expect.poll(() => upstream.sockets.every(({ destroyed }) => destroyed)).toBe(true);
  });
}

function emptyDeeply(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  for (const each of Object.values(value)) emptyDeeply(each);
  for (const key of Object.keys(value)) Reflect.deleteProperty(value, key);
}
