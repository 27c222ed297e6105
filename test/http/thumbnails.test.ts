import { type IncomingHttpHeaders, request, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { App } from "../../src/http/app.ts";
import { type AppOptions } from "./app.ts";
import { PageInfo } from "../../src/model/page-info.ts";
import type { ResolveContext } from "../../src/resolvers/resolver.ts";
import { Thumbnails } from "../../src/resolvers/thumbnails.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import { openDiskFiles } from "../../src/files/disk.ts";
import { makeFolder } from "../folder.ts";
import { localClient } from "../net/client.ts";
import { startUpstream, type Upstream } from "../net/upstream.ts";
import { addIllustrated, illustrated, images } from "./images.ts";
import { addFinishedTask } from "./finished-task.ts";
import { listenApp, openApp } from "./open-app.ts";

interface Site extends Upstream {
  /** Paths of the requests, in order. */
  asked: string[];
}

async function startSite(listener: RequestListener): Promise<Site> {
  const asked: string[] = [];
  const upstream = await startUpstream((incoming, response) => {
    asked.push(incoming.url ?? "");
    listener(incoming, response);
  });
  return { ...upstream, asked };
}

/** Serves an image of each type under its name, as `application/octet-stream`. */
function startImageSite(): Promise<Site> {
  return startSite(({ url }, response) => {
    const found = Object.entries(images).find(([type]) => `/${type.split("/")[1]}` === url);
    response.statusCode = found === undefined ? 404 : 200;
    response.end(found?.[1]);
  });
}

interface Service {
  app: App;
  store: TaskStore;
  /** Gets the thumbnail of a task whose page lists these. */
  ofTask: (...thumbnails: Parameters<typeof illustrated>[1][]) => ReturnType<typeof get>;
}

async function build(options: AppOptions = {}): Promise<Service> {
  const store = createMemoryStore();
  const app = await openApp({ store, client: localClient(), ...options });
  return {
    app,
    store,
    async ofTask(...thumbnails) {
      const path = await addIllustrated(store, illustrated(pageUrl, ...thumbnails));
      return get(app, `${path}/thumbnail`);
    },
  };
}

const pageUrl = "http://video.example.com/watch/42?a=b";

function get(app: App, url: string, headers: Record<string, string> = {}) {
  return app.inject({ url, headers });
}

/** A resolver that counts its reads. */
function createResolver(info: PageInfo) {
  const read = vi.fn<() => Promise<PageInfo>>(async () => info);
  return { read, name: "page", output: PageInfo, resolve: read, close: async () => {} };
}

describe("GET /tasks/{id}/thumbnail", () => {
  it.each(Object.entries(images))("tells %s by the bytes", async (type, bytes) => {
    const site = await startImageSite();
    const { ofTask } = await build();
    const response = await ofTask(site.url(`/${type.split("/")[1]}`).href);
    expect(response.statusCode).toBe(200);
    expect(response.headers).toMatchObject({
      "content-type": type,
      "content-length": `${bytes.length}`,
      "x-content-type-options": "nosniff",
      "content-security-policy": "default-src 'none'",
      "cross-origin-resource-policy": "same-origin",
      "cache-control": "private, max-age=3600",
    });
    expect(response.rawPayload).toEqual(bytes);
  });

  it.each([
    ["SVG that claims to be a PNG", '<svg xmlns="http://www.w3.org/2000/svg"/>'],
    ["SVG after white space", '\n <?xml version="1.0"?><svg/>'],
    ["a page", "<!doctype html><script>alert(1)</script>".padEnd(500)],
    ["nothing", ""],
    ["half a signature", "\x89PNG"],
    ["a film", "\0\0\0\x18ftypisom\0\0\0\0isommp42"],
    ["a Windows icon", "\0\0\x01\0\x01\0"],
    ["other RIFF", "RIFF\xD0\0\0\0WAVEfmt "],
  ])("refuses %s, whatever its Content-Type", async (_, text) => {
    const site = await startSite((_incoming, response) => {
      response.setHeader("content-type", "image/png").end(Buffer.from(text, "latin1"));
    });
    const { ofTask } = await build();
    const response = await ofTask(site.url("/").href);
    expect(response.json()).toMatchObject({ status: 502, code: "upstream_invalid" });
    expect(response.json().detail).toContain("image/jpeg");
    expect(response.body).not.toContain("svg");
  });

  it("refuses over 2 MiB, stated or not", async () => {
    const size = 3 * 1024 * 1024;
    const site = await startSite(({ url }, response) => {
      if (url === "/stated") response.setHeader("content-length", size);
      response.end(Buffer.concat([images["image/png"], Buffer.alloc(size)]).subarray(0, size));
    });
    for (const path of ["/stated", "/not-stated"]) {
      const { ofTask } = await build();
      const response = await ofTask(site.url(path).href);
      expect(response.json()).toMatchObject({ code: "upstream_invalid" });
      expect(response.json().detail).toContain("2097152");
    }
  });

  it("is the task's cover if the site no longer sends its picture, until the files are removed", async () => {
    const site = await startImageSite();
    const files = openDiskFiles({ folder: makeFolder() });
    const { app, store } = await build({ files });
    const cover = { kind: "cover", name: "A film.png", mime_type: "image/png", content: images["image/png"] } as const;
    const { id } = await addFinishedTask({ store, files }, Buffer.from("film"), {}, undefined, [cover]);
    const thumbnailWith = async (listed: string) => {
      await store.update(id, { info: illustrated(pageUrl, site.url(listed).href) });
      return get(app, `/tasks/${id}/thumbnail`);
    };
    expect((await thumbnailWith("/jpeg")).rawPayload).toEqual(images["image/jpeg"]);
    const response = await thumbnailWith("/expired");
    expect(response.statusCode).toBe(200);
    expect(response.rawPayload).toEqual(images["image/png"]);
    expect(response.headers).toMatchObject({
      "content-type": "image/png",
      "cache-control": "private, max-age=3600",
      "cross-origin-resource-policy": "same-origin",
    });
    expect(site.asked).toContain("/expired");
    await app.inject({ method: "DELETE", url: `/tasks/${id}/file` });
    expect((await thumbnailWith("/expired")).json()).toMatchObject({ status: 502, upstream_status: 404 });
  });

  it("tries at most three: the smallest that is wide enough, then the others in their order", async () => {
    const site = await startSite((_incoming, response) => response.writeHead(404).end());
    const listed = [
      { url: site.url("/unknown").href },
      { url: site.url("/large").href, width: 1280 },
      { url: site.url("/right").href, width: 320 },
      { url: site.url("/small").href, width: 120 },
    ];
    const { ofTask } = await build();
    const response = await ofTask(...listed);
    expect(response.json()).toMatchObject({ status: 502, code: "upstream_status" });
    expect(site.asked).toEqual(["/right", "/unknown", "/large"]);
  });

  it("takes the next one if one fails", async () => {
    const site = await startImageSite();
    const { ofTask } = await build();
    const response = await ofTask("data:image/png,x", site.url("/gone").href, site.url("/gif").href);
    expect(response.headers["content-type"]).toBe("image/gif");
  });

  it("follows no redirect to a network that is not public", async () => {
    const site = await startSite((_incoming, response) => {
      response.writeHead(302, { location: "http://10.0.0.1/secret.png" }).end();
    });
    const { ofTask } = await build();
    const response = await ofTask(site.url("/").href);
    expect(response.json()).toMatchObject({ status: 422, code: "address_blocked" });
  });

  it("fails with not_found without a task, page information or thumbnail", async () => {
    const { app, store, ofTask } = await build();
    const path = await addIllustrated(store, null);
    for (const response of [
      await get(app, "/tasks/x/thumbnail"),
      await get(app, `${path}/thumbnail`),
      await ofTask(),
      await ofTask("no URL"),
    ]) {
      expect(response.json()).toMatchObject({ status: 404, code: "not_found" });
    }
  });

  it("is gone with its task, although it is cached", async () => {
    const site = await startImageSite();
    const { app, store } = await build();
    const path = await addIllustrated(store, illustrated(pageUrl, site.url("/png").href));
    expect((await get(app, `${path}/thumbnail`)).statusCode).toBe(200);
    await app.inject({ method: "DELETE", url: path });
    expect((await get(app, `${path}/thumbnail`)).statusCode).toBe(404);
  });

  it("fetches an image once for 50 requests at once, and for those after", async () => {
    const held = Promise.withResolvers<void>();
    const site = await startSite((_incoming, response) => {
      void held.promise.then(() => response.end(images["image/png"]));
    });
    const { app, store } = await build();
    const path = await addIllustrated(store, illustrated(pageUrl, site.url("/a").href));
    const all = Array.from({ length: 50 }, () => get(app, `${path}/thumbnail`));
    await vi.waitUntil(() => site.asked.length > 0, 60_000);
    held.resolve();
    const statuses = (await Promise.all(all)).map(({ statusCode }) => statusCode);
    expect(statuses).toEqual(Array(50).fill(200));
    expect((await get(app, `${path}/thumbnail`)).statusCode).toBe(200);
    expect(site.asked).toEqual(["/a"]);
  });

  it("fetches the images of at most eight pages at a time; the others wait", async () => {
    const held = Promise.withResolvers<void>();
    const site = await startSite((_incoming, response) => {
      void held.promise.then(() => response.end(images["image/png"]));
    });
    const { ofTask } = await build({ client: localClient({ perHost: 100 }) });
    const all = Array.from({ length: 20 }, (_, n) => ofTask(site.url(`/${n}`).href));
    await vi.waitUntil(() => site.asked.length >= 8, 60_000);
    expect(site.asked).toHaveLength(8);
    held.resolve();
    for (const response of await Promise.all(all)) expect(response.statusCode).toBe(200);
  });

  it("gives up on one that drips, in time", async () => {
    const site = await startSite((_incoming, response) => {
      response.write(images["image/png"]);
      const timer = setInterval(() => response.write("\0"), 20);
      response.on("close", () => clearInterval(timer));
    });
    const { ofTask } = await build({ infoTimeoutMs: 300 });
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const responding = ofTask(site.url("/a").href, site.url("/b").href);
    await expect.poll(() => site.asked.length).toBe(1);
    vi.advanceTimersByTime(300);
    const response = await responding;
    expect(response.json()).toMatchObject({ status: 504, code: "upstream_timeout" });
    expect(site.asked).toEqual(["/a"]);
  });

  it("gives the page and its images one time together", async () => {
    const site = await startSite(() => {});
    const thumbnails = new Thumbnails({ client: localClient(), timeoutMs: 100 });
    let reading: AbortSignal | undefined;
    const read = async (signal: AbortSignal) => {
      reading = signal;
      return { page: new URL(pageUrl), listed: illustrated(pageUrl, site.url("/a").href).thumbnails };
    };
    const page = { key: pageUrl, host: "video.example.com" };
    const response = thumbnails.read(page, read, { owner: "", signal: AbortSignal.any([]) });
    await expect(response).rejects.toMatchObject({ code: "upstream_timeout" });
    expect(reading?.aborted).toBe(true);
  });

  it("ends the request when the only client disconnects", async () => {
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    const site = await startSite((incoming) => void incoming.socket.on("close", resolve));
    const { app, store } = await build();
    const path = await addIllustrated(store, illustrated(pageUrl, site.url("/a").href));
    const port = await listenApp(app);
    const call = request({ host: "127.0.0.1", port, path: `${path}/thumbnail` }).end();
    call.on("error", () => {});
    await vi.waitUntil(() => site.asked.length > 0, 60_000);
    call.destroy();
    await closed;
  });

  it("sends none if the client has disconnected before", async () => {
    const site = await startImageSite();
    const memory = createMemoryStore();
    const { promise: disconnected, resolve } = Promise.withResolvers<void>();
    const read: TaskStore["get"] = async (id) => {
      call.destroy();
      await disconnected;
      return memory.get(id);
    };
    const { app } = await build({ store: { ...memory, get: read } });
    const paths: string[] = [];
    for (const name of ["png", "jpeg"])
      paths.push(await addIllustrated(memory, illustrated(pageUrl, site.url(`/${name}`).href)));
    await app.listen({ host: "127.0.0.1", port: 0 });
    app.server.on("connection", (socket) => socket.on("close", resolve));
    const { port } = app.server.address() as AddressInfo;
    const call = request({ host: "127.0.0.1", port, path: `${paths[0]}/thumbnail` }).end();
    call.on("error", () => {});
    await disconnected;
    expect((await app.inject(`${paths[1]}/thumbnail`)).statusCode).toBe(200);
    expect(site.asked).toEqual(["/jpeg"]);
  });

  it("ends the request when the service stops", async () => {
    const site = await startSite(() => {});
    const { app, store } = await build({ finishMs: 20 });
    const path = await addIllustrated(store, illustrated(pageUrl, site.url("/a").href));
    const url = await app.listen({ host: "127.0.0.1", port: 0 });
    const asked = fetch(`${url}${path}/thumbnail`);
    await vi.waitUntil(() => site.asked.length > 0, 60_000);
    await app.close();
    expect((await asked).status).toBe(503);
  });

  it("sends the page as Referer, as a browser does, and nothing of the client", async () => {
    const { promise: sent, resolve } = Promise.withResolvers<IncomingHttpHeaders>();
    const site = await startSite(({ headers }, response) => {
      resolve(headers);
      response.end(images["image/png"]);
    });
    const { app, store } = await build();
    const path = await addIllustrated(store, illustrated(pageUrl, site.url("/a").href));
    await get(app, `${path}/thumbnail`, { cookie: "a=b", authorization: "secret" });
    const headers = await sent;
    expect(headers).toMatchObject({ referer: "http://video.example.com/" });
    expect(headers).not.toHaveProperty("cookie");
    expect(headers).not.toHaveProperty("authorization");
  });

  it("responds with 304 to If-None-Match, and to HEAD without a body", async () => {
    const site = await startImageSite();
    const { app, store } = await build();
    const path = await addIllustrated(store, illustrated(pageUrl, site.url("/png").href));
    const url = `${path}/thumbnail`;
    const { etag } = (await get(app, url)).headers;
    const unchanged = await get(app, url, { "if-none-match": String(etag) });
    expect([unchanged.statusCode, unchanged.body]).toEqual([304, ""]);
    expect(unchanged.headers).toMatchObject({ etag, "cache-control": "private, max-age=3600" });
    expect((await get(app, url, { "if-none-match": '"x"' })).statusCode).toBe(200);
    const head = await app.inject({ method: "HEAD", url });
    expect([head.statusCode, head.headers["content-type"]]).toEqual([200, "image/png"]);
    expect(head.rawPayload.length).toBe(0);
  });
});

describe("GET /info/thumbnail", () => {
  const path = `/info/thumbnail?url=${encodeURIComponent(pageUrl)}`;

  it("gets the image of a page that /info has read, without reading the page again", async () => {
    const site = await startImageSite();
    const resolver = createResolver(illustrated(pageUrl, site.url("/webp").href));
    const { app } = await build({ resolver });
    await get(app, `/info?url=${encodeURIComponent(pageUrl)}`);
    const response = await get(app, path);
    expect([response.statusCode, response.headers["content-type"]]).toEqual([200, "image/webp"]);
    expect(resolver.read).toHaveBeenCalledTimes(1);
    expect(site.asked).toEqual(["/webp"]);
  });

  it("reads the page and its image once for 50 requests at once", async () => {
    const site = await startImageSite();
    const resolver = createResolver(illustrated(pageUrl, site.url("/webp").href));
    const { app } = await build({ resolver });
    const all = await Promise.all(Array.from({ length: 50 }, () => get(app, path)));
    expect(all.map(({ statusCode }) => statusCode)).toEqual(Array(50).fill(200));
    expect(resolver.read).toHaveBeenCalledTimes(1);
    expect(site.asked).toEqual(["/webp"]);
  });

  it("gets the image of an entry, of the slice that the cursor names, and not_found for one without", async () => {
    const site = await startImageSite();
    const entry = (thumbnail: string | null) => ({ url: pageUrl, title: null, duration: null, thumbnail });
    const page = illustrated(pageUrl);
    const resolver = {
      ...createResolver(page),
      resolve: async (_url: URL, { entriesCursor }: ResolveContext) => ({
        ...page,
        entries: [entry(site.url(entriesCursor === "a" ? "/gif" : "/png").href), entry(null)],
      }),
    };
    const { app } = await build({ resolver });
    const of = (query: string) => get(app, `/info/thumbnail?url=${encodeURIComponent(pageUrl)}&${query}`);
    expect((await of("entry=1")).headers["content-type"]).toBe("image/png");
    expect((await of("entry=1&entries_cursor=a")).headers["content-type"]).toBe("image/gif");
    for (const entryNumber of [2, 3]) {
      const detail: unknown = expect.stringMatching(
        new RegExp(`^entry ${entryNumber} of the page .+ has no thumbnail$`),
      );
      expect((await of(`entry=${entryNumber}`)).json()).toMatchObject({ status: 404, detail });
    }
    for (const wrong of ["0", "201", "x"]) expect((await of(`entry=${wrong}`)).statusCode).toBe(400);
  });

  it("fails with not_found for a resolver that knows no thumbnails", async () => {
    const { app } = await build();
    expect((await get(app, path)).json()).toMatchObject({ status: 404, code: "not_found" });
  });

  it("takes the address of a page, and of nothing else", async () => {
    const { app } = await build();
    expect((await get(app, "/info/thumbnail")).statusCode).toBe(400);
    const response = await get(app, "/info/thumbnail?url=file%3A%2F%2F%2Fetc%2Fpasswd");
    expect(response.json()).toMatchObject({ status: 400, code: "invalid_url" });
  });
});
