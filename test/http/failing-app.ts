import { type ErrorCode, ServiceError } from "../../src/model/errors.ts";
import type { App } from "../../src/http/app.ts";
import { type AppOptions, buildApp } from "./app.ts";
import type { MetricsSource } from "../../src/http/routes/metrics.ts";
import { PageInfo } from "../../src/model/page-info.ts";
import type { Resolver } from "../../src/resolvers/resolver.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import { pageUrl } from "./requests.ts";

export type AppResponse = Awaited<ReturnType<App["inject"]>>;

function resolverOf(resolve: () => Promise<PageInfo>): Resolver<typeof PageInfo> {
  return { name: "page", output: PageInfo, resolve, close: async () => {} };
}

type Parts = Omit<AppOptions, "resolver"> & { page?: () => Promise<PageInfo> };

/**
 * Returns the result of a call to an app whose store or page fails in the given way; calls without parts, and those with
 * `broken` or `unavailable`, share an app, for building one takes longer than most calls.
 */
export async function withApp<T>(parts: Parts, call: (app: App) => Promise<T>): Promise<T> {
  const common = Object.keys(parts).length === 0 ? whole : parts;
  if (common === whole || common === broken || common === unavailable) {
    return call(await apps.getOrInsertComputed(common, build));
  }
  await using app = await build(parts);
  return await call(app);
}

const whole: Parts = {};
/** Never closed: they listen to nothing and keep no process alive. */
const apps = new Map<Parts, Promise<App>>();

function build({ page: resolve = async () => page, ...options }: Parts): Promise<App> {
  return buildApp({ resolver: resolverOf(resolve), metrics: noMetrics, ...options });
}

/** Metrics without any series. */
export const noMetrics: MetricsSource = {
  contentType: "text/plain; version=0.0.4; charset=utf-8",
  read: async () => "",
};

function brokenStore(error: Error): TaskStore {
  const fail = () => Promise.reject(error);
  const broken = { create: fail, get: fail, list: fail, update: fail, delete: fail, ping: fail };
  return { ...createMemoryStore(), ...broken };
}

/** Parts of an app that fail: by a defect, an unavailable store, a page that cannot be read. */
export const broken = { store: brokenStore(new TypeError("a defect")) };
export const unavailable = {
  store: brokenStore(new ServiceError("unavailable", "the store is unavailable")),
};
export const failing = (code: ErrorCode) => ({
  page: () => Promise.reject(new ServiceError(code, "x")),
});
/** A media type that no JSON route responds with. */
export const accept = "text/html";

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
