import { newTask } from "../../src/feed/task-changes.ts";
import { type ErrorCode, errorCodes } from "../../src/model/errors.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import { type AppResponse, broken, unavailable, withApp } from "./failing-app.ts";
import { pageUrl, postTask } from "./requests.ts";
import { fileCalls, withFile } from "./task-calls.ts";

const name = "get /tasks/{id}/stream";

/** For each documented response of the routes that send media while they are downloaded, a call that gets it. */
export const streamCalls: Record<string, () => Promise<AppResponse>> = {
  ...fileCalls(name, "stream"),
  [`${name} 409`]: () =>
    withApp({}, async (app) => {
      const url = String((await postTask(app, { url: pageUrl })).headers.location);
      await app.inject({ method: "POST", url: `${url}/cancel` });
      return app.inject(`${url}/stream`);
    }),
  [`${name} 422`]: () => getFailed("no_media"),
  [`${name} 429`]: () => getFailed("quota_exceeded"),
  [`${name} 502`]: () => getFailed("upstream_status"),
  [`${name} 504`]: () => getFailed("upstream_timeout"),
  [`${name} 507`]: () => getFailed("disk_full"),
};

const download = `/download?url=${encodeURIComponent(pageUrl)}`;
const downloadName = "get /download";

/** For each documented response of `/download`, a call that gets it. */
export const downloadCalls: Record<string, () => Promise<AppResponse>> = {
  [`${downloadName} 200`]: () => getDownloaded(() => ({})),
  [`${downloadName} 206`]: () => getDownloaded((etag) => ({ range: "bytes=1-2", "if-range": etag })),
  [`${downloadName} 304`]: () => getDownloaded((etag) => ({ "if-none-match": etag })),
  [`${downloadName} 412`]: () => getDownloaded(() => ({ "if-match": '"other"' })),
  [`${downloadName} 416`]: () => getDownloaded((etag) => ({ range: "bytes=100-", "if-range": etag })),
  [`${downloadName} 400`]: () => withApp({}, (app) => app.inject("/download?url=nowhere")),
  [`${downloadName} 403`]: () =>
    withApp({}, (app) => app.inject({ url: download, headers: { "sec-fetch-site": "cross-site" } })),
  [`${downloadName} 404`]: () => endDownload((store, id) => store.delete(id)),
  [`${downloadName} 409`]: () => endDownload((store, id) => store.update(id, { state: "canceled" })),
  ...Object.fromEntries(
    (["no_media", "quota_exceeded", "upstream_status", "upstream_timeout", "disk_full", "file_removed"] as const).map(
      (code) => [`${downloadName} ${errorCodes[code].status}`, () => endDownload((store, id) => fail(store, id, code))],
    ),
  ),
  [`${downloadName} 500`]: () => withApp(broken, (app) => app.inject(download)),
  [`${downloadName} 503`]: () => withApp(unavailable, (app) => app.inject(download)),
};

/** Asks for the page of a task that has its file. */
function getDownloaded(headersFor: (etag: string) => Record<string, string>): Promise<AppResponse> {
  return withFile((app, _url, etag) => app.inject({ url: download, headers: headersFor(etag) }));
}

/** Asks for a page, and ends its task once it has been created. */
async function endDownload(end: (store: TaskStore, id: string) => Promise<unknown>): Promise<AppResponse> {
  const store = createMemoryStore();
  return withApp({ store }, async (app) => {
    const created = Promise.withResolvers<string>();
    store.events.subscribe(({ taskId }) => created.resolve(taskId));
    const [response] = await Promise.all([app.inject(download), created.promise.then((id) => end(store, id))]);
    return response;
  });
}

async function fail(store: TaskStore, id: string, code: ErrorCode): Promise<void> {
  await store.claim({ leaseMs: 60_000 });
  const error = { code, message: `failed with ${code}`, retryable: errorCodes[code].retryable };
  await store.update(id, { state: "failed", error });
}

/** Asks for the stream of a task that has failed in this way. */
async function getFailed(code: ErrorCode): Promise<AppResponse> {
  const store = createMemoryStore();
  const { id } = await store.create(newTask(pageUrl, {}, new Date()));
  await fail(store, id, code);
  return withApp({ store }, (app) => app.inject(`/tasks/${id}/stream`));
}
