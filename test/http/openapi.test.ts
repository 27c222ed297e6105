import { Ajv2020 } from "ajv/dist/2020.js";
import postman from "openapi-to-postmanv2";
import { describe, expect, it } from "vitest";
import { type ErrorCode, ServiceError } from "../../src/errors.ts";
import { type App, buildApp } from "../../src/http/app.ts";
import { PageInfo } from "../../src/page-info.ts";
import type { Resolver } from "../../src/resolvers/resolver.ts";
import { createMemoryStore } from "../../src/stores/memory.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import { getInfo, pageUrl, postTask } from "./requests.ts";

interface Document {
  openapi: string;
  paths: Record<string, Record<string, { responses: Record<string, DocumentedResponse> }>>;
}
interface DocumentedResponse {
  description: string;
  content?: Record<string, unknown>;
}
type Answer = Awaited<ReturnType<App["inject"]>>;

const page: PageInfo = {
  url: pageUrl,
  webpage_url: pageUrl,
  site_name: "Example",
  media_type: "video",
  title: "A film",
  description: null,
  language: "en",
  duration: 61.5,
  uploaded_at: "2026-01-31",
  uploader: null,
  uploader_url: null,
  thumbnails: [{ url: "https://example.com/a.jpg", width: 640, height: null }],
  embed: { url: "https://example.com/embed/42", width: null, height: null },
  view_count: 0,
  like_count: null,
  live_status: "not_live",
  age_limit: null,
  tags: ["one"],
  formats: [
    {
      format_id: "https-720p",
      url: "https://example.com/a.mp4",
      manifest_url: null,
      protocol: "https",
      ext: "mp4",
      mime_type: "video/mp4",
      width: 1280,
      height: 720,
      fps: null,
      vcodec: "avc1.64001f",
      acodec: "none",
      tbr: 1200.5,
      filesize: null,
      language: null,
      has_drm: false,
    },
  ],
  subtitles: { en: [{ url: "https://example.com/en.vtt", ext: "vtt", name: null }] },
  sources: { title: "og", duration: "json-ld" },
  resolver: "page",
  fetched_at: "2026-01-31T12:00:00.000Z",
};

function resolverOf(resolve: () => Promise<PageInfo>): Resolver<typeof PageInfo> {
  return { name: "page", output: PageInfo, resolve, close: async () => {} };
}

/** The answers to calls on an app whose store or page fails in the given way. */
async function withApp<T>(
  parts: { store?: TaskStore; page?: () => Promise<PageInfo>; infoConcurrency?: number },
  call: (app: App) => Promise<T>,
): Promise<T> {
  const { page: resolve = async () => page, ...options } = parts;
  await using app = await buildApp({ resolver: resolverOf(resolve), ...options });
  return await call(app);
}

function brokenStore(error: Error): TaskStore {
  const fail = () => Promise.reject(error);
  return { ...createMemoryStore(), create: fail, get: fail, list: fail, delete: fail, ping: fail };
}

const broken = { store: brokenStore(new TypeError("a defect")) };
const away = { store: brokenStore(new ServiceError("unavailable", "the store is away")) };
const failing = (code: ErrorCode) => ({ page: () => Promise.reject(new ServiceError(code, "x")) });
const accept = "text/html";

/** For each documented answer, a call that gets it. */
const calls: Record<string, () => Promise<Answer>> = {
  "get /tasks/ 200": () =>
    withApp({}, async (app) => {
      await postTask(app, { url: pageUrl });
      return app.inject("/tasks/");
    }),
  "get /tasks/ 400": () => withApp({}, (app) => app.inject("/tasks/?limit=0")),
  "get /tasks/ 406": () =>
    withApp({}, (app) => app.inject({ url: "/tasks/", headers: { accept } })),
  "get /tasks/ 500": () => withApp(broken, (app) => app.inject("/tasks/")),
  "get /tasks/ 503": () => withApp(away, (app) => app.inject("/tasks/")),
  "post /tasks/ 201": () =>
    withApp({}, (app) => postTask(app, { url: pageUrl, options: { max_height: 720 } })),
  "post /tasks/ 400": () => withApp({}, (app) => postTask(app, {})),
  "post /tasks/ 406": () => withApp({}, (app) => postTask(app, { url: pageUrl }, { accept })),
  "post /tasks/ 413": () => withApp({}, (app) => postTask(app, { x: "x".repeat(70_000) })),
  "post /tasks/ 415": () =>
    withApp({}, (app) => postTask(app, "x", { "content-type": "text/plain" })),
  "post /tasks/ 422": () =>
    withApp({}, async (app) => {
      await postTask(app, { url: pageUrl }, { "idempotency-key": "k" });
      return postTask(app, { url: `${pageUrl}3` }, { "idempotency-key": "k" });
    }),
  "post /tasks/ 500": () => withApp(broken, (app) => postTask(app, { url: pageUrl })),
  "post /tasks/ 503": () => withApp(away, (app) => postTask(app, { url: pageUrl })),
  "get /tasks/{id} 200": () =>
    withApp({}, async (app) =>
      app.inject(String((await postTask(app, { url: pageUrl })).headers.location)),
    ),
  "get /tasks/{id} 304": () =>
    withApp({}, async (app) => {
      const url = String((await postTask(app, { url: pageUrl })).headers.location);
      const { etag } = (await app.inject(url)).headers;
      return app.inject({ url, headers: { "if-none-match": String(etag) } });
    }),
  "get /tasks/{id} 400": () => withApp({}, (app) => app.inject("/tasks/%zz")),
  "get /tasks/{id} 404": () => withApp({}, (app) => app.inject("/tasks/x")),
  "get /tasks/{id} 406": () =>
    withApp({}, (app) => app.inject({ url: "/tasks/x", headers: { accept } })),
  "get /tasks/{id} 500": () => withApp(broken, (app) => app.inject("/tasks/x")),
  "get /tasks/{id} 503": () => withApp(away, (app) => app.inject("/tasks/x")),
  "delete /tasks/{id} 204": () =>
    withApp({}, async (app) => {
      const url = String((await postTask(app, { url: pageUrl })).headers.location);
      return app.inject({ method: "DELETE", url });
    }),
  "delete /tasks/{id} 400": () =>
    withApp({}, (app) => app.inject({ method: "DELETE", url: "/tasks/%zz" })),
  "delete /tasks/{id} 404": () =>
    withApp({}, (app) => app.inject({ method: "DELETE", url: "/tasks/x" })),
  "delete /tasks/{id} 406": () =>
    withApp({}, (app) => app.inject({ method: "DELETE", url: "/tasks/x", headers: { accept } })),
  "delete /tasks/{id} 500": () =>
    withApp(broken, (app) => app.inject({ method: "DELETE", url: "/tasks/x" })),
  "delete /tasks/{id} 503": () =>
    withApp(away, (app) => app.inject({ method: "DELETE", url: "/tasks/x" })),
  "get /info 200": () => withApp({}, (app) => getInfo(app, pageUrl)),
  "get /info 400": () => withApp({}, (app) => getInfo(app, "ftp://example.com/")),
  "get /info 406": () => withApp({}, (app) => getInfo(app, pageUrl, { accept })),
  "get /info 422": () => withApp(failing("address_blocked"), (app) => getInfo(app, pageUrl)),
  "get /info 429": () => withApp({ infoConcurrency: 0 }, (app) => getInfo(app, pageUrl)),
  "get /info 500": () =>
    withApp({ page: () => Promise.reject(new TypeError("x")) }, (app) => getInfo(app, pageUrl)),
  "get /info 502": () => withApp(failing("upstream_status"), (app) => getInfo(app, pageUrl)),
  "get /info 503": () => withApp(failing("unavailable"), (app) => getInfo(app, pageUrl)),
  "get /info 504": () => withApp(failing("upstream_timeout"), (app) => getInfo(app, pageUrl)),
  "get /health/live 200": () => withApp({}, (app) => app.inject("/health/live")),
  "get /health/live 406": () =>
    withApp({}, (app) => app.inject({ url: "/health/live", headers: { accept } })),
  "get /health/ready 200": () => withApp({}, (app) => app.inject("/health/ready")),
  "get /health/ready 406": () =>
    withApp({}, (app) => app.inject({ url: "/health/ready", headers: { accept } })),
  "get /health/ready 503": () => withApp(away, (app) => app.inject("/health/ready")),
};

const document: Document = await withApp({}, async (app) =>
  (await app.inject("/openapi.json")).json(),
);
const ajv = new Ajv2020({ strict: false });
ajv.addSchema(document, "document");

function documented(): [name: string, response: DocumentedResponse, pointer: string][] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { responses }]) =>
      Object.entries(responses).map(([status, response]): [string, DocumentedResponse, string] => [
        `${method} ${path} ${status}`,
        response,
        `/paths/${encodeURIComponent(path.replaceAll("/", "~1"))}/${method}/responses/${status}`,
      ]),
    ),
  );
}

describe("the OpenAPI document", () => {
  it("is 3.1 and documents the answers that are tested here, no more and no fewer", () => {
    expect(document.openapi).toBe("3.1.0");
    expect(
      documented()
        .map(([name]) => name)
        .toSorted(),
    ).toEqual(Object.keys(calls).toSorted());
  });

  it.each(documented())("describes the real answer: %s", async (name, response, pointer) => {
    const answer = await calls[name]!();
    expect(String(answer.statusCode)).toBe(name.split(" ").at(-1));
    const [type] = String(answer.headers["content-type"]).split(";");
    if (response.content === undefined) {
      expect(answer.body).toBe("");
      return;
    }
    expect(Object.keys(response.content)).toEqual([type]);
    const schema = `document#${pointer}/content/${encodeURIComponent(type!.replaceAll("/", "~1"))}/schema`;
    const valid = ajv.validate({ $ref: schema }, answer.json());
    expect(ajv.errors, JSON.stringify(answer.json())).toBeNull();
    expect(valid).toBe(true);
    if (type === "application/problem+json") {
      expect(response.description).toContain(`\`${answer.json().code}\``);
    }
  });

  it("is imported by Postman, every operation of it", async () => {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const input = { type: "json" as const, data: document as never };
    postman.convertV2(input, {}, (error, result) => resolve(error ?? result));
    const result = (await promise) as {
      result: boolean;
      reason?: string;
      output: { data: unknown }[];
    };
    expect(result).toMatchObject({ result: true });
    const collection = JSON.stringify(result.output[0]?.data);
    const operations = Object.values(document.paths).flatMap((methods) => Object.keys(methods));
    expect(collection.match(/"request":\{"name"/g)).toHaveLength(operations.length);
  });

  it("is shown on a page that loads nothing from elsewhere", async () => {
    await using app = await buildApp();
    const answer = await app.inject("/docs/");
    expect(answer.statusCode).toBe(200);
    expect(answer.headers["content-security-policy"]).toContain("default-src 'self'");
    expect(answer.headers["content-security-policy"]).not.toContain("upgrade-insecure-requests");
    const addresses = [...answer.body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, url]) => url);
    expect(addresses.length).toBeGreaterThan(3);
    expect(addresses.filter((url) => /^(https?:)?\/\//.test(url!))).toEqual([]);
    for (const url of addresses) {
      const asset = await app.inject(new URL(url!, "http://localhost/docs/").pathname);
      expect([url, asset.statusCode]).toEqual([url, 200]);
    }
  });
});
