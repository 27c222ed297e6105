import type { IncomingMessage, ServerResponse } from "node:http";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { DownloadFormat, PageInfo } from "../../src/model/page-info.ts";
import { createPageResolver } from "./page/local-reader.ts";
import { jsonLd, pageUrl, resolvePage } from "./page/saved-client.ts";
import type { ResolveContext } from "../../src/resolvers/resolver.ts";
import { localClient } from "../net/client.ts";
import { startUpstream, type Upstream } from "../net/upstream.ts";

const hls = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=800000\nlow.m3u8\n";
const frame = (url: string) => `<title>Otters</title><iframe src="${url}" allowfullscreen></iframe>`;
const video = (url: string) => `<title>Otters</title><video src="${url}"></video>`;

/** What a path responds with: a text, or a function that responds itself; `undefined`: nothing, ever. */
type Route = string | undefined | ((request: IncomingMessage, response: ServerResponse) => void);

interface Requested {
  path: string;
  referer: string | undefined;
  cookie: string | undefined;
}

interface Visited {
  info: Omit<PageInfo, "formats"> & { formats: DownloadFormat[] };
  requested: Requested[];
}

interface TestSite extends Upstream {
  requested: Requested[];
  visit(path: string, context?: Partial<ResolveContext>, linkTimeoutMs?: number): Promise<Visited>;
}

/** Starts a site on 127.0.0.1, which is also `localhost`: another site to a browser. */
async function startSite(createRoutes: (site: Upstream) => Record<string, Route>): Promise<TestSite> {
  const requested: Requested[] = [];
  const upstream = await startUpstream((request, response) => {
    const { url: path = "", headers } = request;
    requested.push({ path, referer: headers.referer, cookie: headers.cookie });
    const route = routes[path];
    if (typeof route === "function") route(request, response);
    else if (route !== undefined) response.setHeader("content-type", typeOf(path)).end(route);
    else if (!(path in routes)) response.writeHead(404).end();
  });
  const routes = createRoutes(upstream);
  const client = localClient({ allowNetworks: ["127.0.0.0/8", "::1/128"] });
  return {
    ...upstream,
    requested,
    async visit(path, context = {}, linkTimeoutMs = 60_000) {
      const resolver = createPageResolver({ client, pageMaxBytes: 1e6, linkTimeoutMs });
      const { signal } = new AbortController();
      const info = await resolver.resolve(upstream.url(path), { signal, ...context });
      return { info, requested };
    },
  };
}

const typeOf = (path: string) => (path.endsWith(".m3u8") ? "application/vnd.apple.mpegurl" : "text/html");

const setCookies =
  (fields: string[], body: string, headers: Record<string, string> = {}): Route =>
  (_request, response) => {
    const status = headers["location"] === undefined ? 200 : 302;
    response.writeHead(status, { "content-type": "text/html", "set-cookie": fields, ...headers });
    response.end(body);
  };

describe("the Referer of what a page leads to", () => {
  it("is the page; its formats need not state it", async () => {
    const site = await startSite(() => ({
      "/watch": `<link rel="alternate" type="application/json+oembed" href="/oembed">${video("/main.m3u8")}`,
      "/main.m3u8": hls,
    }));
    const { info, requested } = await site.visit("/watch");
    const referer = site.url("/watch").href;
    expect(requested.map(({ path }) => path).toSorted()).toEqual(["/low.m3u8", "/main.m3u8", "/oembed", "/watch"]);
    expect(requested.slice(1)).toMatchObject([{ referer }, { referer }, { referer }]);
    expect(info.formats).toHaveLength(1);
    expect(info.formats[0]).not.toHaveProperty("http_headers");
  });

  it("is the page after redirects, which its formats then state", async () => {
    const site = await startSite(() => ({
      "/old": (_request, response) => void response.writeHead(301, { location: "/watch" }).end(),
      "/watch": video("/main.m3u8"),
      "/main.m3u8": hls,
    }));
    const { info, requested } = await site.visit("/old");
    const referer = site.url("/watch").href;
    expect(requested.slice(2)).toMatchObject([
      { path: "/main.m3u8", referer },
      { path: "/low.m3u8", referer },
    ]);
    expect(info.formats).toMatchObject([{ http_headers: { Referer: referer } }]);
  });

  it.each([
    ["a file", "/1.mp4"],
    ["a manifest", "/main.m3u8"],
  ])("is the page that lists it for %s, whose formats state it", async (_, path) => {
    const film: Route = (_request, response) => void response.writeHead(200, { "content-type": "video/mp4" }).end("x");
    const site = await startSite(() => ({ "/1.mp4": film, "/main.m3u8": hls }));
    const { info, requested } = await site.visit(path, { referrer: new URL("http://lists.example.com/") });
    expect(requested[0]).toMatchObject({ path, referer: "http://lists.example.com/" });
    expect(info.formats).toMatchObject([{ http_headers: { Referer: "http://lists.example.com/" } }]);
  });

  it("is nothing from https to http", async () => {
    const site = await startSite(() => ({ "/watch": video("/1.mp4") }));
    const { requested } = await site.visit("/watch", { referrer: new URL("https://lists.example.com/") });
    expect(requested[0]?.referer).toBeUndefined();
  });

  it("is the player's page for what that leads to", async () => {
    const site = await startSite((self) => ({
      "/watch": frame(self.url("/embed/1", "localhost").href),
      "/embed/1": `<video><source src="/main.m3u8"><source src="${self.url("/1.mp4").href}"></video>`,
      "/main.m3u8": hls,
    }));
    const { info, requested } = await site.visit("/watch");
    const player = site.url("/embed/1", "localhost");
    expect(requested.slice(0, 3)).toMatchObject([
      { path: "/watch" },
      { path: "/embed/1", referer: site.url("/").href },
      { path: "/main.m3u8", referer: player.href },
    ]);
    const last = requested.slice(3).toSorted((a, b) => a.path.localeCompare(b.path));
    expect(last).toMatchObject([
      { path: "/1.mp4", referer: `${player.origin}/` },
      { path: "/low.m3u8", referer: player.href },
    ]);
    const stated = info.formats.map(({ url, http_headers }) => [url, http_headers?.["Referer"]]);
    expect(new Map(stated as [string, string][])).toEqual(
      new Map([
        [site.url("/low.m3u8", "localhost").href, player.href],
        [site.url("/1.mp4").href, `${player.origin}/`],
      ]),
    );
  });

  it("is the page that embeds it for a player that is a manifest", async () => {
    const site = await startSite(() => ({
      "/watch": frame("/embed/1"),
      "/embed/1": (_request, response) =>
        void response.setHeader("content-type", "application/vnd.apple.mpegurl").end(hls),
    }));
    const { info } = await site.visit("/watch");
    expect(info.formats).toMatchObject([{ url: site.url("/embed/low.m3u8").href }]);
    expect(info.formats[0]).not.toHaveProperty("http_headers");
  });
});

describe("the cookies that a page sets", () => {
  const routes = (): Record<string, Route> => ({
    "/old": setCookies(["first=1; Path=/"], "", { location: "/watch" }),
    "/watch": setCookies(["page=2; Path=/", "other=3; Domain=example.com"], frame("/embed/1")),
    "/embed/1": setCookies(["player=4; Path=/; Max-Age=3600"], video("/main.m3u8")),
    "/main.m3u8": hls,
  });

  it("are sent where they apply, each visit with its own", async () => {
    const site = await startSite(routes);
    for (const _ of [1, 2]) {
      site.requested.length = 0;
      expect((await site.visit("/old")).requested).toMatchObject([
        { path: "/old", cookie: undefined },
        { path: "/watch", cookie: "first=1" },
        { path: "/embed/1", cookie: "first=1; page=2" },
        { path: "/main.m3u8", cookie: "first=1; page=2; player=4" },
        { path: "/low.m3u8", cookie: "first=1; page=2; player=4" },
      ]);
    }
  });

  it("are stated with the formats for a download, and never otherwise", async () => {
    const site = await startSite(routes);
    const { info } = await site.visit("/old", { forDownload: true });
    expect(info.formats.map(({ cookies }) => cookies)).toEqual([
      expect.stringMatching(
        /^first=1; Domain=127\.0\.0\.1; Path=\/; page=2; Domain=127\.0\.0\.1; Path=\/; player=4; Domain=127\.0\.0\.1; Path=\/; Expires=\d{10}$/,
      ),
    ]);
    expect(JSON.stringify((await site.visit("/old")).info)).not.toMatch(/first=1|cookies/);
  });

  it("are no field of the formats if there are none", async () => {
    const site = await startSite(() => ({ "/watch": video("/1.mp4") }));
    const { info } = await site.visit("/watch", { forDownload: true });
    expect(info.formats).toHaveLength(1);
    expect(info.formats[0]).not.toHaveProperty("cookies");
  });
});

describe("all that a page leads to", () => {
  const outer = { title: "Otters", formats: [] };
  const lead = {
    "a player's page that does not respond": { "/watch": frame("/embed/1"), "/embed/1": undefined },
    "one that ends in the middle of it": {
      "/watch": frame("/embed/1"),
      "/embed/1": (_: unknown, response: ServerResponse) =>
        void response.setHeader("content-type", "text/html").write("<title>Player</title>"),
    },
    "two players' pages": {
      "/watch": frame("/embed/1") + frame("/embed/2"),
      "/embed/1": undefined,
      "/embed/2": undefined,
    },
    "a player's page in another": {
      "/watch": frame("/embed/1"),
      "/embed/1": frame("/embed/2"),
      "/embed/2": undefined,
    },
  } satisfies Record<string, Record<string, Route>>;

  it.each(Object.entries(lead))("shares one time limit: %s", async (_, routes) => {
    const site = await startSite(() => routes);
    const isNested = typeof routes["/embed/1"] === "string";
    const expected = ["/watch", "/embed/1", ...(isNested ? ["/embed/2"] : [])];
    const { info, requested } = await visitUntil(site, expected.at(-1)!);
    expect(info).toMatchObject(outer);
    // Once the time is over, nothing more is requested.
    expect(requested.map(({ path }) => path)).toEqual(expected);
  });

  it.each(Object.entries(lead))("ends before the caller's deadline: %s", async (_, routes) => {
    const site = await startSite(() => routes);
    const deadlineMs = performance.now() + 1_500;
    expect((await site.visit("/watch", { deadlineMs })).info).toMatchObject(outer);
  });

  it("keeps what a player's page states if its manifest does not respond in time", async () => {
    const site = await startSite(() => ({
      "/watch": frame("/embed/1"),
      "/embed/1": video("/main.m3u8"),
      "/main.m3u8": undefined,
    }));
    const { info } = await visitUntil(site, "/main.m3u8");
    expect(info.formats).toMatchObject([{ format_id: "m3u8", url: site.url("/main.m3u8").href }]);
  });
});

/** Visits `/watch`; the time for all that it leads to is over once `path` has been requested. */
async function visitUntil(site: TestSite, path: string): Promise<Visited> {
  const limitMs = 300;
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const visited = site.visit("/watch", {}, limitMs);
  await expect.poll(() => site.requested.at(-1)?.path).toBe(path);
  vi.advanceTimersByTime(limitMs);
  return visited;
}

describe("a page that only sends the browser on", () => {
  const refresh = (content: string, more = "") =>
    `<title>You are redirected</title><meta http-equiv="Refresh" content="${content}">${more}`;

  it.each([
    "0; url=/film",
    "0;URL='/film'",
    "5 ; /film",
    "0.5,url=&quot;/film&quot; now",
    ";url=/film",
    "0\nhttps://video.example.com/film",
  ])("is what is there: %j", async (content) => {
    const film = `<title>The film</title><video src="/film.mp4" controls></video>`;
    const info = await resolvePage(refresh(content), { "https://video.example.com/film": { body: film } });
    expect(info).toMatchObject({ url: pageUrl, webpage_url: "https://video.example.com/film", title: "The film" });
    expect(info.formats.map(({ url }) => url)).toEqual(["https://video.example.com/film.mp4"]);
  });

  it("is read over several of them, with what they send as Referer", async () => {
    const site = await startSite(() => ({
      "/1": refresh("0;url=/2"),
      "/2": refresh("0;url=/3"),
      "/3": refresh("0;url=/film"),
      "/film": video("/main.m3u8"),
      "/main.m3u8": hls,
    }));
    const { info, requested } = await site.visit("/1");
    expect(requested.map(({ path, referer }) => [path, referer && new URL(referer).pathname]).slice(0, 5)).toEqual([
      ["/1", undefined],
      ["/2", "/1"],
      ["/3", "/2"],
      ["/film", "/3"],
      ["/main.m3u8", "/film"],
    ]);
    expect(info.formats).toMatchObject([{ http_headers: { Referer: site.url("/film").href } }]);
  });

  it("may lead to a list", async () => {
    const list = {
      "@type": "ItemList",
      itemListElement: [
        { url: "/a", "@type": "ListItem" },
        { url: "/b", "@type": "ListItem" },
      ],
    };
    const others = { "https://video.example.com/list": { body: jsonLd(list) } };
    const { entries } = await resolvePage(refresh("0;url=/list"), others);
    expect(entries?.map(({ url }) => url)).toEqual(["https://video.example.com/a", "https://video.example.com/b"]);
  });

  it.each([
    ["it has a video of its own", "0;url=/film", `<video src="/own.mp4" controls></video>`],
    ["it leads there only after a while, as one that updates itself", "30;url=/film", ""],
    ["it leads to a front page, as one that is gone", "0;url=/", ""],
    ["it leads to itself", "0;url=#", ""],
    ["what is there has no video, as for browsers without scripts", "0;url=/none", ""],
    ["nothing is there", "0;url=/gone", ""],
    ["it names no URL", "0", ""],
  ])("stays what it is if %s", async (_, content, more) => {
    const film = { body: `<title>The film</title><video src="/film.mp4" controls></video>` };
    const info = await resolvePage(refresh(content, more), {
      "https://video.example.com/film": film,
      "https://video.example.com/": film,
      "https://video.example.com/none": { body: "<title>Nothing</title>" },
    });
    expect(info).toMatchObject({ title: "You are redirected", webpage_url: pageUrl });
    expect(info.formats.map(({ url }) => url)).toEqual(more === "" ? [] : ["https://video.example.com/own.mp4"]);
  });
});
