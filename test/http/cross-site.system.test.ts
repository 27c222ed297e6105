import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { pino } from "pino";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { Resolver } from "../../src/resolvers/resolver.ts";
import { createStubResolver } from "../../src/resolvers/stub.ts";
import { parseOrigins } from "../../src/config/lists.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { isChromiumMissing, launchChromium } from "../web/chromium.ts";
import { type AppOptions } from "./app.ts";
import { pageUrl } from "./requests.ts";
import { openApp } from "./open-app.ts";

const asked = `info?url=${encodeURIComponent(pageUrl)}`;

/** What a page can do without a click, and with one. */
const ways: Record<string, (url: string) => string> = {
  image: (url) => `<img src="${url}">`,
  "image without referrer": (url) => `<img referrerpolicy="no-referrer" src="${url}">`,
  script: (url) => `<script src="${url}"></script>`,
  frame: (url) => `<iframe src="${url}"></iframe>`,
  form: (url) => `<form action="${url.split("?")[0]}"><input name="url" value="${pageUrl}"></form>
    <script>document.forms[0].submit()</script>`,
  navigation: (url) => `<script>location = "${url}"</script>`,
  fetch: (url) => `<script>fetch("${url}", { mode: "no-cors", credentials: "include" })</script>`,
  "fetch with CORS": (url) => `<script>fetch("${url}").catch(() => {})</script>`,
  stream: (url) => `<script>new EventSource("${url.replace(/info.*/, "tasks/events")}")</script>`,
};

/** A service that notes the pages that it reads, and the status of the first response at `path`: browsers hide it from pages. */
async function startService(options: Pick<AppOptions, "allowedOrigins" | "store"> = {}, path?: string) {
  const status = Promise.withResolvers<unknown>();
  const logger = pino({ level: "info" }, { write: (line: string) => noteStatus(JSON.parse(line)) });
  function noteStatus(line: { msg: string; path?: unknown; status?: unknown }): void {
    if (line.msg === "request" && (path ?? line.path) === line.path) status.resolve(line.status);
  }
  const reads: string[] = [];
  const stub = createStubResolver();
  const resolver: Resolver = {
    ...stub,
    async resolve(url, context) {
      reads.push(url.href);
      return stub.resolve(url, context);
    },
  };
  const app = await openApp({ resolver, logger, ...options });
  await app.listen({ host: "127.0.0.1", port: 0 });
  return { port: (app.server.address() as AddressInfo).port, reads, status: status.promise };
}

/** A site with one page. */
async function startSite(html: string): Promise<string> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/html" }).end(html);
  }).listen(0, "127.0.0.1");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

describe.skipIf(isChromiumMissing)("in a browser", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchChromium();
  });
  afterAll(() => browser?.close());

  /** `localhost` is another site than 127.0.0.1; other ports of 127.0.0.1 are other origins of the same site. */
  describe.each(["localhost", "127.0.0.1"])("of a service at %s", (host) => {
    it.each(Object.entries(ways))("a page elsewhere starts no work by %s", async (_, html) => {
      const { port, reads, status } = await startService();
      const site = await startSite(html(`http://${host}:${port}/${asked}`));
      const page = await browser.newPage();
      onTestFinished(() => page.close());
      await page.goto(site, { waitUntil: "commit" });
      expect([await status, reads]).toEqual([403, []]);
    });
  });

  it.each([
    ["image", (url: string) => `<img src="${url}">`],
    ["link", (url: string) => `<a href="${url}">Film</a><script>document.links[0].click()</script>`],
    ["link to save", (url: string) => `<a download href="${url}">Film</a><script>document.links[0].click()</script>`],
    ["video", (url: string) => `<video autoplay muted src="${url}"></video>`],
  ])("a page elsewhere starts no download by %s", async (_, html) => {
    const store = createMemoryStore();
    const { port, status } = await startService({ store });
    const site = await startSite(html(`http://localhost:${port}/download?url=${encodeURIComponent(pageUrl)}`));
    const page = await browser.newPage();
    onTestFinished(() => page.close());
    await page.goto(site, { waitUntil: "commit" });
    expect([await status, (await store.count()).byState.queued]).toEqual([403, 0]);
  });

  it("the service's own page starts a download by a link to save, and none by a prefetch", async () => {
    const store = createMemoryStore();
    const { port, status } = await startService({ store }, "/download");
    const page = await browser.newPage();
    onTestFinished(() => page.close());
    await page.goto(`http://localhost:${port}/docs/`, { waitUntil: "commit" });
    const add = (html: string) =>
      page.evaluate(`document.body.insertAdjacentHTML("beforeend", ${JSON.stringify(html)})`);
    const url = `/download?url=${encodeURIComponent(pageUrl)}`;
    await add(`<link rel="prefetch" href="${url}">`);
    expect([await status, (await store.count()).byState.queued]).toEqual([403, 0]);
    const made = Promise.withResolvers<string | undefined>();
    store.events.subscribe(({ state }) => made.resolve(state));
    await add(`<a id="save" download href="${url}">Film</a>`);
    await page.evaluate('document.getElementById("save").click()');
    expect(await made.promise).toBe("queued");
  });

  it("a page of an allowed origin creates a task and reads where it is; another one does not", async () => {
    const site = await startSite("<title>App</title>");
    const { port } = await startService({ allowedOrigins: parseOrigins(new URL(site).origin) });
    const other = await startSite("<title>Other</title>");
    const results = [];
    for (const url of [site, other]) {
      const page = await browser.newPage();
      onTestFinished(() => page.close());
      await page.goto(url);
      results.push(
        await page.evaluate(
          `fetch("http://127.0.0.1:${port}/tasks/", {
            method: "POST",
            headers: { "content-type": "application/json", prefer: "wait=0" },
            body: JSON.stringify({ url: "${pageUrl}" }),
          }).then(
            async (response) => [response.status, response.headers.get("location"), (await response.json()).state],
            (error) => error.name,
          )`,
        ),
      );
    }
    expect(results).toEqual([[201, expect.stringMatching(/^\.\.\/tasks\//), "queued"], "TypeError"]);
  });

  it("whoever types the URL gets the page's information", async () => {
    const { port, reads } = await startService();
    const page = await browser.newPage();
    onTestFinished(() => page.close());
    const response = await page.goto(`http://localhost:${port}/${asked}`);
    expect([response?.status(), reads]).toEqual([200, [pageUrl]]);
  });
});
