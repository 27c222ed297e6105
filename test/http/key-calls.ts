import type { App } from "../../src/http/app.ts";
import { newTask } from "../../src/feed/task-changes.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { fileOf } from "../contracts/task-store/files.ts";
import { buildApp } from "./app.ts";
import { accept, type AppResponse, withApp } from "./failing-app.ts";
import { addKey } from "./keys.ts";

type Call = () => Promise<AppResponse>;

interface Operation {
  security: readonly object[];
}

/** For each operation that needs a key, calls that get the responses of that check; and those of sessions. */
export function keyCalls(paths: Record<string, Record<string, Operation>>): Record<string, Call> {
  const calls = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations)
      .filter(([, { security }]) => security.length > 0)
      .flatMap(([method]): [string, Call][] => {
        const url = path.replace("{id}", "x");
        const send = (app: App, headers = {}) => app.inject({ method: method as "GET", url, headers });
        return [
          [`${method} ${path} 401`, async () => send(await (keyed ??= openWithKey()))],
          [
            `${method} ${path} 429`,
            async () => {
              const app = await (guessed ??= openWithKey());
              return guess(() => send(app, wrong));
            },
          ],
        ];
      }),
  );
  return { ...Object.fromEntries(calls), ...otherCalls };
}

/** Never closed, as all that calls share. The first is sent no key, the second wrong ones. */
let keyed: Promise<App> | undefined;
let guessed: Promise<App> | undefined;

async function openWithKey(): Promise<App> {
  const store = createMemoryStore();
  await addKey(store, "anna");
  return buildApp({ store });
}

const wrong = { authorization: "Bearer wrong" };

const otherCalls: Record<string, Call> = {
  "get /tasks/ 403": () => withKeys((app, headers) => app.inject({ url: "/tasks/?owner=bert", headers })),
  "get /tasks/events 403": () => withKeys((app, headers) => app.inject({ url: "/tasks/events?owner=bert", headers })),
  "post /tasks/ 507": () => withFullQuota((app, headers) => post(app, headers)),
  "post /tasks/{id}/retry 507": () =>
    withFullQuota((app, headers, id) => app.inject({ method: "POST", url: `/tasks/${id}/retry`, headers })),
  "get /metrics 200": () => withKeys((app, headers) => app.inject({ url: "/metrics", headers }), { admin: true }),
  "get /metrics 403": () => withKeys((app, headers) => app.inject({ url: "/metrics", headers })),
  "get /session 200": () => withKeys((app, headers) => app.inject({ url: "/session", headers })),
  "get /session 404": () => withApp({}, (app) => app.inject("/session")),
  "get /session 406": () => withApp({}, (app) => app.inject({ url: "/session", headers: { accept } })),
  "post /session 200": () => withKeys((app, { authorization }) => startSession(app, { key: authorization.slice(7) })),
  "post /session 400": () => withKeys((app) => startSession(app, {})),
  "post /session 401": () => withKeys((app) => startSession(app, { key: "wrong" })),
  "post /session 406": () => withKeys((app) => startSession(app, {}, { accept })),
  "post /session 413": () => withKeys((app) => startSession(app, { key: "x".repeat(70_000) })),
  "post /session 415": () => withKeys((app) => startSession(app, {}, { "content-type": "text/plain" })),
  "post /session 429": () => withKeys((app) => guess(() => startSession(app, { key: "wrong" }))),
  "delete /session 204": () => withKeys((app) => app.inject({ method: "DELETE", url: "/session" })),
  "delete /session 406": () =>
    withKeys((app) => app.inject({ method: "DELETE", url: "/session", headers: { accept } })),
};

function startSession(app: App, body: object, headers: Record<string, string> = {}) {
  return app.inject({
    method: "POST",
    url: "/session",
    headers: { "content-type": "application/json", ...headers },
    payload: JSON.stringify(body),
  });
}

/** Calls the app of a service that has one key, anna's, with the header for it. */
async function withKeys(
  call: (app: App, headers: { authorization: string }) => Promise<AppResponse>,
  given: { admin?: boolean } = {},
): Promise<AppResponse> {
  const store = createMemoryStore();
  const { headers } = await addKey(store, "anna", given);
  return withApp({ store }, (app) => call(app, headers));
}

function post(app: App, headers: Record<string, string>) {
  const payload = JSON.stringify({ url: "https://video.example.com/" });
  const all = { "content-type": "application/json", ...headers };
  return app.inject({ method: "POST", url: "/tasks/", headers: all, payload });
}

/** Calls the app with a key whose files take what it may store, and the id of its canceled task. */
async function withFullQuota(
  call: (app: App, headers: Record<string, string>, id: string) => Promise<AppResponse>,
): Promise<AppResponse> {
  const store = createMemoryStore();
  const file = fileOf(5);
  const { headers } = await addKey(store, "anna", { limits: { max_bytes: file.size } });
  const create = () => store.create(newTask("https://a.test/", {}, new Date(), "anna"));
  const [canceled, finished] = [await create(), await create()];
  await store.update(canceled.id, { state: "canceled" });
  await store.update(finished.id, { state: "running" });
  await store.update(finished.id, { state: "succeeded", file });
  return withApp({ store }, (app) => call(app, headers, canceled.id));
}

/** Sends wrong keys until they are too many, of which others may have been sent before. */
async function guess(send: Call): Promise<AppResponse> {
  for (let sent = 0; sent < 20; sent += 1) {
    const response = await send();
    if (response.statusCode === 429) return response;
  }
  return send();
}
