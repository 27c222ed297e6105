import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import type { FastifyInstance } from "fastify";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { buildApp, buildWorkerApp } from "./app.ts";
import { buildWebFiles } from "../../src/http/routes/web.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { createTaskEvents } from "../../src/feed/task-events.ts";
import { startSubPath } from "./sub-path.ts";
import { makeFolder } from "../folder.ts";
import { listenApp } from "./open-app.ts";

let app: FastifyInstance;
beforeAll(async () => {
  app = await buildApp({ web: true });
});
afterAll(() => app.close());

const get = (url: string, headers: Record<string, string> = {}) => app.inject({ url, headers });

/** All addresses of assets that a text of the page names. */
function assetsIn(text: string): string[] {
  return [...text.matchAll(/"(assets\/[^"]+)"/g)].map(([, path]) => `/${path}`);
}

async function assets(): Promise<string[]> {
  return assetsIn((await get("/")).body);
}

describe("the web UI", () => {
  it("is served at / to every client, with a policy that lets nothing else in", async () => {
    for (const accept of ["text/html", "*/*", "application/json"]) {
      const response = await get("/", { accept });
      expect(response.statusCode).toBe(200);
      expect(response.headers).toMatchObject({
        "content-type": "text/html; charset=utf-8",
        "cache-control": "no-cache",
        "content-security-policy":
          "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; " +
          "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; " +
          "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
      });
      expect(response.body).toContain("<noscript");
      expect(response.body).not.toMatch(/<script(?![^>]* src=)|<style|javascript:/);
    }
  });

  it("takes any query, as pages are shared to /?url=", async () => {
    expect((await get("/?url=https%3A%2F%2Fsite.test%2F&text=x")).statusCode).toBe(200);
  });

  it("is sent again only when it has changed", async () => {
    const { etag } = (await get("/")).headers;
    const again = await get("/", { "if-none-match": etag as string });
    expect([again.statusCode, again.body]).toEqual([304, ""]);
    expect((await get("/", { "if-none-match": '"other"' })).statusCode).toBe(200);
  });

  it("answers HEAD, and other methods with 405", async () => {
    const head = await app.inject({ method: "HEAD", url: "/" });
    expect([head.statusCode, head.body]).toEqual([200, ""]);
    const post = await app.inject({ method: "POST", url: "/" });
    expect([post.statusCode, post.headers.allow]).toEqual([405, "GET, HEAD, OPTIONS"]);
  });

  it("has a picture for the previews of chats, a PNG of 512 pixels", async () => {
    const { body } = await get("/");
    const [, picture = ""] = /<meta property="og:image" content="([^"]+)"/.exec(body) ?? [];
    const { headers, rawPayload } = await get(`/${picture}`);
    expect(headers["content-type"]).toBe("image/png");
    expect(rawPayload.subarray(0, 8)).toEqual(Buffer.from("\x89PNG\r\n\x1a\n", "latin1"));
    expect([rawPayload.readUInt32BE(16), rawPayload.readUInt32BE(20)]).toEqual([512, 512]);
  });

  it("has a manifest, with which it can be installed and pages can be shared to it", async () => {
    const response = await get("/manifest.webmanifest");
    expect(response.headers["content-type"]).toBe("application/manifest+json");
    const manifest = response.json<{ icons: { src: string }[]; share_target: object }>();
    expect(manifest).toMatchObject({ start_url: "./", display: "standalone" });
    expect(manifest.share_target).toMatchObject({ action: "./", params: { url: "url" } });
    const icon = await get(`/${manifest.icons[0]?.src}`);
    expect(icon.headers["content-type"]).toBe("image/svg+xml");
  });
});

describe("the assets of the page", () => {
  it("are all there, never change and are JavaScript without types, CSS and icons", async () => {
    const types = new Set<string>();
    for (const path of await assets()) {
      const response = await get(path);
      expect([path, response.statusCode]).toEqual([path, 200]);
      expect(response.headers).toMatchObject({
        "cache-control": "public, max-age=31536000, immutable",
        "cross-origin-resource-policy": "same-origin",
        "x-content-type-options": "nosniff",
      });
      types.add(String(response.headers["content-type"]));
      expect(response.body).not.toMatch(/^import type|^ *\/\*\*|sourceMappingURL/m);
    }
    expect([...types].toSorted()).toEqual([
      "image/png",
      "image/svg+xml",
      "text/css; charset=utf-8",
      "text/javascript; charset=utf-8",
    ]);
  });

  it("are modules whose imports are assets too", async () => {
    const paths = (await assets()).filter((path) => path.endsWith(".js"));
    const seen = new Set(paths);
    let preacts = 0;
    for (const path of seen) {
      const { body, statusCode } = await get(path);
      expect([path, statusCode]).toEqual([path, 200]);
      if (body.includes("dangerouslySetInnerHTML")) preacts += 1;
      for (const [, name = ""] of body.matchAll(/(?:from|import)\s*\(?\s*"([^"]+)"/g)) {
        expect(name).toMatch(/^\.\.?\//);
        seen.add(new URL(name, `http://page.test${path}`).pathname);
      }
    }
    expect(preacts).toBe(1);
  });

  it("are few and light, as the page has all that its first visit needs, and no more", async () => {
    // Browsers do not fetch the picture of previews.
    const paths = (await assets()).filter((path) => !path.endsWith(".png"));
    const main = paths.find((path) => path.endsWith("/main.js")) ?? "";
    const { body } = await get(main);
    const imported = [...body.matchAll(/\bfrom"\.\/([^"]+)"/g)].map(([, name]) => name);
    const folder = main.slice(0, -"main.js".length);
    expect(paths).toEqual(expect.arrayContaining(imported.map((name) => `${folder}${name}`)));
    expect(body).toMatch(/\bimport\("\.\/found-\w+\.js"\)/);
    // With the page, the manifest, the list and the events, 9 requests and 25 kB at most.
    expect(paths.length).toBeLessThanOrEqual(5);
    const responses = ["/", ...paths].map((path) => get(path, { "accept-encoding": "gzip" }));
    const sizes = (await Promise.all(responses)).map(({ rawPayload }) => rawPayload.length + 350);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(24_000);
  });

  it("come compressed to those who accept that, the page too", async () => {
    const paths = ["/", "/manifest.webmanifest", ...(await assets())];
    for (const path of paths) {
      const plain = await get(path);
      expect(plain.headers).toMatchObject({ vary: "accept-encoding" });
      expect(plain.headers).not.toHaveProperty("content-encoding");
      const gzip = await get(path, { "accept-encoding": "gzip" });
      expect(gzip.headers["content-encoding"]).toBe("gzip");
      expect(gunzipSync(gzip.rawPayload).equals(plain.rawPayload)).toBe(true);
      const best = await get(path, { "accept-encoding": "gzip, deflate, br, zstd" });
      expect(best.headers["content-encoding"]).toBe("br");
      expect(brotliDecompressSync(best.rawPayload).equals(plain.rawPayload)).toBe(true);
    }
  });

  it("are not found under the path of another version", async () => {
    const path = (await assets())[0]!.replace(/assets\/[^/]+/, "assets/0000000000000000");
    for (const url of [path, "/assets/", "/assets/../package.json", "/assets/%2e%2e%2fmain.ts"]) {
      const response = await get(url);
      expect([url, response.statusCode]).toEqual([url, 404]);
      expect(response.json()).toMatchObject({ code: "not_found" });
    }
  });

  it("have other paths as soon as one of them changes", async () => {
    const folder = makeFolder();
    const root = new URL("../../", import.meta.url);
    cpSync(new URL("src", root), join(folder, "src"), { recursive: true });
    symlinkSync(new URL("node_modules", root), join(folder, "node_modules"));
    const src = pathToFileURL(join(folder, "src/"));
    const before = await buildWebFiles(src);
    expect([...(await buildWebFiles(src)).assets.keys()]).toEqual([...before.assets.keys()]);
    const style = join(folder, "src/web/style.css");
    writeFileSync(style, `${readFileSync(style, "utf8")}\nbody { margin: 1px; }\n`);
    const after = await buildWebFiles(src);
    expect([...after.assets.keys()].filter((path) => before.assets.has(path))).toEqual([]);
    expect(after.page.etag).not.toBe(before.page.etag);
  });
});

describe("a service behind a proxy that serves it below a path", () => {
  it("gives the page and its assets there, as all addresses are relative", async () => {
    const port = await listenApp(app);
    const base = await startSubPath(port, "/some/path/");
    const page = await (await fetch(base)).text();
    const paths = [...page.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, path = ""]) => path);
    expect(paths).toContain("manifest.webmanifest");
    for (const path of paths) {
      const response = await fetch(new URL(path, base));
      expect([path, response.status]).toEqual([path, 200]);
    }
  });
});

describe("a service without a web UI", () => {
  it("is what buildApp makes unless it is told otherwise", async () => {
    const plain = await buildApp();
    onTestFinished(() => plain.close());
    for (const url of ["/", "/manifest.webmanifest", ...(await assets())]) {
      expect([url, (await plain.inject(url)).statusCode]).toEqual([url, 404]);
    }
  });

  it("is a process that only runs tasks", async () => {
    const worker = await buildWorkerApp({
      store: createMemoryStore({ events: createTaskEvents() }),
    });
    onTestFinished(() => worker.close());
    expect((await worker.inject("/")).statusCode).toBe(404);
  });
});
