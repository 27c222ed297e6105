import { type ErrorCode, ServiceError } from "../../src/model/errors.ts";
import type { HttpClient } from "../../src/net/client.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { type AppResponse, broken, failing, unavailable, withApp } from "./failing-app.ts";
import { addIllustrated, illustrated, images } from "./images.ts";
import { pageUrl } from "./requests.ts";

/** For each documented response of the routes of thumbnails, a call that gets it. */
export const thumbnailCalls: Record<string, () => Promise<AppResponse>> = {
  "get /info/thumbnail 200": () => ofPage({ client: clientOf() }),
  "get /info/thumbnail 304": () => ofPage({ client: clientOf() }, { "if-none-match": "*" }),
  "get /info/thumbnail 400": () => withApp({}, (app) => app.inject("/info/thumbnail")),
  "get /info/thumbnail 404": () => ofPage({ client: clientOf(), page: async () => illustrated(pageUrl) }),
  "get /info/thumbnail 422": () => ofPage({ client: clientOf("address_blocked") }),
  "get /info/thumbnail 429": () => ofPage({ infoConcurrency: 0 }),
  "get /info/thumbnail 500": () => ofPage({ page: () => Promise.reject(new TypeError("x")) }),
  "get /info/thumbnail 502": () => ofPage({ client: clientOf("upstream_status") }),
  "get /info/thumbnail 503": () => ofPage(failing("unavailable")),
  "get /info/thumbnail 504": () => ofPage({ client: clientOf("upstream_timeout") }),
  "get /tasks/{id}/thumbnail 200": () => ofTask(clientOf()),
  "get /tasks/{id}/thumbnail 304": () => ofTask(clientOf(), { "if-none-match": "*" }),
  "get /tasks/{id}/thumbnail 400": () => withApp({}, (app) => app.inject("/tasks/%zz/thumbnail")),
  "get /tasks/{id}/thumbnail 404": () => withApp({}, (app) => app.inject("/tasks/x/thumbnail")),
  "get /tasks/{id}/thumbnail 422": () => ofTask(clientOf("address_blocked")),
  "get /tasks/{id}/thumbnail 500": () => withApp(broken, (app) => app.inject("/tasks/x/thumbnail")),
  "get /tasks/{id}/thumbnail 502": () => ofTask(clientOf("upstream_unreachable")),
  "get /tasks/{id}/thumbnail 503": () => withApp(unavailable, (app) => app.inject("/tasks/x/thumbnail")),
  "get /tasks/{id}/thumbnail 504": () => ofTask(clientOf("upstream_timeout")),
};

function ofPage(parts: Parameters<typeof withApp>[0], headers = {}): Promise<AppResponse> {
  return withApp(parts, (app) => app.inject({ url: "/info/thumbnail", query: { url: pageUrl }, headers }));
}

function ofTask(client: HttpClient, headers = {}): Promise<AppResponse> {
  const store = createMemoryStore();
  return withApp({ store, client }, async (app) => {
    const path = await addIllustrated(store, illustrated(pageUrl, `${pageUrl}.png`));
    return app.inject({ url: `${path}/thumbnail`, headers });
  });
}

/** Returns a client that gets an image, or fails. */
export function clientOf(code?: ErrorCode): HttpClient {
  return {
    async get(url) {
      if (code !== undefined) throw new ServiceError(code, "x");
      const body = (async function* () {
        yield images["image/png"];
      })();
      return { url, status: 200, headers: new Map(), body, release() {} };
    },
    close: async () => {},
  };
}
