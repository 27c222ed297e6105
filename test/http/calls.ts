import { type AppResponse, accept, unavailable, broken, failing, withApp } from "./failing-app.ts";
import { getInfo, pageUrl, postBatch, postTask } from "./requests.ts";

/** For each documented response of these routes, a call that gets it. */
export const calls: Record<string, () => Promise<AppResponse>> = {
  "get /tasks/ 200": () =>
    withApp({}, async (app) => {
      await postTask(app, { url: pageUrl });
      return app.inject("/tasks/");
    }),
  "get /tasks/ 400": () => withApp({}, (app) => app.inject("/tasks/?limit=0")),
  "get /tasks/ 406": () => withApp({}, (app) => app.inject({ url: "/tasks/", headers: { accept } })),
  "get /tasks/ 500": () => withApp(broken, (app) => app.inject("/tasks/")),
  "get /tasks/ 503": () => withApp(unavailable, (app) => app.inject("/tasks/")),
  "post /tasks/ 200": () =>
    withApp({}, async (app) => {
      await postTask(app, { url: pageUrl });
      return postTask(app, { url: pageUrl, options: { if_exists: "reuse" } });
    }),
  "get /tasks/ 404": () => withApp({}, (app) => app.inject("/tasks/?parent=x")),
  "post /tasks/ 201": () => withApp({}, (app) => postTask(app, { url: pageUrl, options: { max_height: 720 } })),
  "post /tasks/ 400": () => withApp({}, (app) => postTask(app, {})),
  "post /tasks/ 406": () => withApp({}, (app) => postTask(app, { url: pageUrl }, { accept })),
  "post /tasks/ 413": () => withApp({}, (app) => postTask(app, { x: "x".repeat(70_000) })),
  "post /tasks/ 415": () => withApp({}, (app) => postTask(app, "x", { "content-type": "text/plain" })),
  "post /tasks/ 422": () =>
    withApp({}, async (app) => {
      await postTask(app, { url: pageUrl }, { "idempotency-key": "k" });
      return postTask(app, { url: `${pageUrl}3` }, { "idempotency-key": "k" });
    }),
  "post /tasks/batch 200": () => withApp({}, (app) => postBatch(app, { urls: [pageUrl, "nowhere"] })),
  "post /tasks/batch 400": () => withApp({}, (app) => postBatch(app, { urls: [] })),
  "post /tasks/batch 406": () => withApp({}, (app) => postBatch(app, { urls: [pageUrl] }, { accept })),
  "post /tasks/batch 413": () => withApp({}, (app) => postBatch(app, { x: "x".repeat(1 << 20) })),
  "post /tasks/batch 415": () => withApp({}, (app) => postBatch(app, "x", { "content-type": "text/plain" })),
  "post /tasks/batch 422": () =>
    withApp({}, async (app) => {
      const headers = { "idempotency-key": "one" };
      await postBatch(app, { urls: [pageUrl] }, headers);
      return postBatch(app, { urls: [`${pageUrl}?other`] }, headers);
    }),
  "post /tasks/batch 500": () => withApp(broken, (app) => postBatch(app, { urls: [pageUrl] })),
  "post /tasks/batch 503": () => withApp(unavailable, (app) => postBatch(app, { urls: [pageUrl] })),
  "post /tasks/ 500": () => withApp(broken, (app) => postTask(app, { url: pageUrl })),
  "post /tasks/ 503": () => withApp(unavailable, (app) => postTask(app, { url: pageUrl })),
  "get /tasks/{id} 200": () =>
    withApp({}, async (app) => app.inject(String((await postTask(app, { url: pageUrl })).headers.location))),
  "get /tasks/{id} 304": () =>
    withApp({}, async (app) => {
      const url = String((await postTask(app, { url: pageUrl })).headers.location);
      const { etag } = (await app.inject(url)).headers;
      return app.inject({ url, headers: { "if-none-match": String(etag) } });
    }),
  "get /tasks/{id} 400": () => withApp({}, (app) => app.inject("/tasks/%zz")),
  "get /tasks/{id} 404": () => withApp({}, (app) => app.inject("/tasks/x")),
  "get /tasks/{id} 406": () => withApp({}, (app) => app.inject({ url: "/tasks/x", headers: { accept } })),
  "get /tasks/{id} 412": () =>
    withApp({}, async (app) => {
      const url = String((await postTask(app, { url: pageUrl })).headers.location);
      return app.inject({ url, headers: { "if-match": '"other"' } });
    }),
  "get /tasks/{id} 500": () => withApp(broken, (app) => app.inject("/tasks/x")),
  "get /tasks/{id} 503": () => withApp(unavailable, (app) => app.inject("/tasks/x")),
  "delete /tasks/{id} 204": () =>
    withApp({}, async (app) => {
      const url = String((await postTask(app, { url: pageUrl })).headers.location);
      return app.inject({ method: "DELETE", url });
    }),
  "delete /tasks/{id} 400": () => withApp({}, (app) => app.inject({ method: "DELETE", url: "/tasks/%zz" })),
  "delete /tasks/{id} 404": () => withApp({}, (app) => app.inject({ method: "DELETE", url: "/tasks/x" })),
  "delete /tasks/{id} 406": () =>
    withApp({}, (app) => app.inject({ method: "DELETE", url: "/tasks/x", headers: { accept } })),
  "delete /tasks/{id} 412": () =>
    withApp({}, async (app) => {
      const url = String((await postTask(app, { url: pageUrl })).headers.location);
      return app.inject({ method: "DELETE", url, headers: { "if-match": '"other"' } });
    }),
  "delete /tasks/{id} 500": () => withApp(broken, (app) => app.inject({ method: "DELETE", url: "/tasks/x" })),
  "delete /tasks/{id} 503": () => withApp(unavailable, (app) => app.inject({ method: "DELETE", url: "/tasks/x" })),
  "get /info 200": () => withApp({}, (app) => getInfo(app, pageUrl)),
  "get /info 400": () => withApp({}, (app) => getInfo(app, "ftp://example.com/")),
  "get /info 406": () => withApp({}, (app) => getInfo(app, pageUrl, { accept })),
  "get /info 422": () => withApp(failing("address_blocked"), (app) => getInfo(app, pageUrl)),
  "get /info 429": () => withApp({ infoConcurrency: 0 }, (app) => getInfo(app, pageUrl)),
  "get /info 500": () => withApp({ page: () => Promise.reject(new TypeError("x")) }, (app) => getInfo(app, pageUrl)),
  "get /info 502": () => withApp(failing("upstream_status"), (app) => getInfo(app, pageUrl)),
  "get /info 503": () => withApp(failing("unavailable"), (app) => getInfo(app, pageUrl)),
  "get /info 504": () => withApp(failing("upstream_timeout"), (app) => getInfo(app, pageUrl)),
  "get /health/live 200": () => withApp({}, (app) => app.inject("/health/live")),
  "get /health/live 406": () => withApp({}, (app) => app.inject({ url: "/health/live", headers: { accept } })),
  "get /health/ready 200": () => withApp({}, (app) => app.inject("/health/ready")),
  "get /health/ready 406": () => withApp({}, (app) => app.inject({ url: "/health/ready", headers: { accept } })),
  "get /health/ready 503": () => withApp(unavailable, (app) => app.inject("/health/ready")),
};
