import { tmpdir } from "node:os";
import { join } from "node:path";
import { mkdtemp, rm } from "node:fs/promises";
import { openDiskFiles } from "../../src/files/disk.ts";
import type { App } from "../../src/http/app.ts";
import { createLinkTokens } from "../../src/http/links/link-tokens.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { type AppResponse, accept, unavailable, broken, withApp } from "./failing-app.ts";
import { buildApp } from "./app.ts";
import { addFinishedTask } from "./finished-task.ts";
import { recording } from "./recording.ts";
import { pageUrl, postJson, postTask } from "./requests.ts";

const linkSecret = Buffer.alloc(32, 1);

/** For each documented response of a single task's further routes, a call that gets it. */
export const taskCalls: Record<string, () => Promise<AppResponse>> = {
  ...actionCalls("cancel"),
  ...actionCalls("finish"),
  ...actionCalls("retry"),
  "post /tasks/{id}/cancel 200": () => withApp({}, async (app) => post(app, `${await addTask(app)}/cancel`)),
  "post /tasks/{id}/cancel 409": () =>
    withApp({}, async (app) => {
      const url = await addTask(app);
      await post(app, `${url}/cancel`);
      return post(app, `${url}/cancel`);
    }),
  "post /tasks/{id}/finish 200": () => {
    const store = createMemoryStore();
    return withApp({ store }, async (app) => {
      const url = await addTask(app);
      const claim = await store.claim({ leaseMs: 60_000 });
      await store.update(claim!.task.id, { progress: recording });
      return post(app, `${url}/finish`);
    });
  },
  "post /tasks/{id}/finish 409": () => withApp({}, async (app) => post(app, `${await addTask(app)}/finish`)),
  "post /tasks/{id}/retry 200": () =>
    withApp({}, async (app) => {
      const url = await addTask(app);
      await post(app, `${url}/cancel`);
      return post(app, `${url}/retry`);
    }),
  "post /tasks/{id}/retry 409": () => withApp({}, async (app) => post(app, `${await addTask(app)}/retry`)),
  ...fileCalls("get /tasks/{id}/file", "file"),
  ...fileCalls("get /tasks/{id}/files/{name}", "files/A%20film.mp4"),
  ...fileCalls("get /tasks/{id}/files.zip", "files.zip"),
  ...linkCalls(),
  "delete /tasks/{id} 409": () => {
    const store = createMemoryStore();
    return withApp({ store }, async (app) => {
      const url = await addTask(app);
      const library = [{ path: "A film.mp4", size: 7, modified_at: "2026-01-02T03:04:05.000Z" }];
      await store.update(url.split("/").at(-1)!, { library });
      return remove(app, `${url}?library=true`);
    });
  },
  "delete /tasks/{id}/file 200": () => withOwnFile((app, url) => remove(app, `${url}/file`)),
  "delete /tasks/{id}/file 400": () => withApp({}, (app) => remove(app, "/tasks/%zz/file")),
  "delete /tasks/{id}/file 404": () => withApp({}, (app) => remove(app, "/tasks/x/file")),
  "delete /tasks/{id}/file 406": () => withApp({}, (app) => remove(app, "/tasks/x/file", { accept })),
  "delete /tasks/{id}/file 409": () => withApp({}, async (app) => remove(app, `${await addTask(app)}/file`)),
  "delete /tasks/{id}/file 412": () => withFile((app, url) => remove(app, `${url}/file`, { "if-match": '"other"' })),
  "delete /tasks/{id}/file 500": () => withApp(broken, (app) => remove(app, "/tasks/x/file")),
  "delete /tasks/{id}/file 503": () => withApp(unavailable, (app) => remove(app, "/tasks/x/file")),
  "get /tasks/events 200": () =>
    withApp({}, async (app) => {
      const response = await app.inject({ url: "/tasks/events", payloadAsStream: true });
      response.stream().destroy();
      return response;
    }),
  "get /tasks/events 400": () => withApp({}, (app) => app.inject("/tasks/events?task=1&task=2")),
  "get /tasks/events 404": () => withApp({}, (app) => app.inject("/tasks/events?task=x")),
  "get /tasks/events 500": () => withApp(broken, (app) => app.inject("/tasks/events?task=x")),
  "get /tasks/events 503": () => withApp(unavailable, (app) => app.inject("/tasks/events?task=x")),
  "get /tasks/events 406": () => withApp({}, (app) => app.inject({ url: "/tasks/events", headers: { accept } })),
  "get /tasks/events 429": () => withApp({ maxEventStreams: 0 }, (app) => app.inject("/tasks/events")),
};

function actionCalls(what: string): Record<string, () => Promise<AppResponse>> {
  const name = `post /tasks/{id}/${what}`;
  const url = `/tasks/x/${what}`;
  const method = "POST";
  return {
    [`${name} 400`]: () => withApp({}, (app) => post(app, `/tasks/%zz/${what}`)),
    [`${name} 404`]: () => withApp({}, (app) => post(app, url)),
    [`${name} 406`]: () => withApp({}, (app) => app.inject({ method, url, headers: { accept } })),
    [`${name} 500`]: () => withApp(broken, (app) => post(app, url)),
    [`${name} 503`]: () => withApp(unavailable, (app) => post(app, url)),
  };
}

/** For each documented response of a route that sends the file of a task, a call that gets it. */
export function fileCalls(name: string, path: string): Record<string, () => Promise<AppResponse>> {
  const getFile = (headersFor: (etag: string) => Record<string, string>) =>
    withFile(async (app, url) => {
      const { headers } = await app.inject({ method: "HEAD", url: `${url}/${path}` });
      return app.inject({ url: `${url}/${path}`, headers: headersFor(String(headers.etag)) });
    });
  return {
    [`${name} 200`]: () => getFile(() => ({})),
    [`${name} 206`]: () => getFile((etag) => ({ range: "bytes=1-2", "if-range": etag })),
    [`${name} 304`]: () => getFile((etag) => ({ "if-none-match": etag })),
    [`${name} 412`]: () => getFile(() => ({ "if-match": '"other"' })),
    [`${name} 416`]: () => getFile((etag) => ({ range: "bytes=1000-", "if-range": etag })),
    [`${name} 410`]: () =>
      withOwnFile(async (app, url) => {
        await remove(app, `${url}/file`);
        return app.inject(`${url}/${path}`);
      }),
    [`${name} 400`]: () => withApp({}, (app) => app.inject(`/tasks/%zz/${path}`)),
    [`${name} 404`]: () => withApp({}, (app) => app.inject(`/tasks/x/${path}`)),
    [`${name} 500`]: () => withApp(broken, (app) => app.inject(`/tasks/x/${path}`)),
    [`${name} 503`]: () => withApp(unavailable, (app) => app.inject(`/tasks/x/${path}`)),
  };
}

function linkCalls(): Record<string, () => Promise<AppResponse>> {
  const create = (app: App, body: unknown = { file: "A film.mp4", expires_in: 60 }, url = "/tasks/x") =>
    postJson(app, `${url}/links`, body);
  const get = (headersFor: (etag: string) => Record<string, string>) =>
    withFile(async (app, task, etag) => {
      const { url } = (await create(app, undefined, task)).json();
      return app.inject({ url, headers: headersFor(etag) });
    });
  const { seal } = createLinkTokens(linkSecret);
  const url = `/links/${seal({ taskId: "x", name: "a", endsMs: Date.now() + 86_400_000, keyHash: null })}`;
  const name = "post /tasks/{id}/links";
  return {
    [`${name} 201`]: () => withFile((app, task) => create(app, undefined, task)),
    [`${name} 400`]: () => withApp({}, (app) => create(app, { file: "a", expires_in: 59 })),
    [`${name} 404`]: () => withApp({}, (app) => create(app)),
    [`${name} 406`]: () => withApp({}, (app) => postJson(app, "/tasks/x/links", {}, { accept })),
    [`${name} 413`]: () => withApp({}, (app) => create(app, { x: "x".repeat(70_000) })),
    [`${name} 415`]: () => withApp({}, (app) => postJson(app, "/tasks/x/links", "x", { "content-type": "text/plain" })),
    [`${name} 500`]: () => withApp(broken, (app) => create(app)),
    [`${name} 503`]: () => withApp(unavailable, (app) => create(app)),
    "get /links/{token} 200": () => get(() => ({})),
    "get /links/{token} 206": () => get(() => ({ range: "bytes=1-2" })),
    "get /links/{token} 304": () => get((etag) => ({ "if-none-match": etag })),
    "get /links/{token} 412": () => get(() => ({ "if-match": '"other"' })),
    "get /links/{token} 416": () => get(() => ({ range: "bytes=100-" })),
    "get /links/{token} 404": () => withApp({}, (app) => app.inject("/links/x")),
    "get /links/{token} 429": () => withApp({ maxConnections: 0, linkSecret }, (app) => app.inject(url)),
    "get /links/{token} 500": () => withApp({ ...broken, linkSecret }, (app) => app.inject(url)),
    "get /links/{token} 503": () => withApp({ ...unavailable, linkSecret }, (app) => app.inject(url)),
  };
}

async function addTask(app: App): Promise<string> {
  return String((await postTask(app, { url: pageUrl })).headers.location);
}

function post(app: App, url: string): Promise<AppResponse> {
  return app.inject({ method: "POST", url });
}

function remove(app: App, url: string, headers = {}): Promise<AppResponse> {
  return app.inject({ method: "DELETE", url, headers });
}

type FileCall = (app: App, url: string, etag: string) => Promise<AppResponse>;

/** Returns the result of a call to an app with a task that has its file, which the call may remove. */
async function withOwnFile(call: FileCall): Promise<AppResponse> {
  await using opened = await openFile();
  return await opened.call(call);
}

/** Returns the result of a call that changes nothing to an app with a task that has its file: all these share one. */
export async function withFile(call: FileCall): Promise<AppResponse> {
  return (await (shared ??= openFile())).call(call);
}

let shared: ReturnType<typeof openFile> | undefined;

/** To be called after the last call of `withFile`. */
export async function removeFile(): Promise<void> {
  await (await shared)?.[Symbol.asyncDispose]();
  shared = undefined;
}

async function openFile() {
  const folder = await mkdtemp(join(tmpdir(), "unreel-file-"));
  const parts = { store: createMemoryStore(), files: openDiskFiles({ folder }) };
  const { id, file } = await addFinishedTask(parts, Buffer.from("content"));
  const app = await buildApp(parts);
  return {
    call: (call: FileCall) => call(app, `/tasks/${id}`, `"${file?.sha256}"`),
    async [Symbol.asyncDispose]() {
      await app.close();
      await rm(folder, { recursive: true });
    },
  };
}
