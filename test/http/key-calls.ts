import type { App } from "../../src/http/app.ts";
import { createMemoryStore } from "../../src/stores/memory.ts";
import { accept, type AppResponse, withApp } from "./failing-app.ts";
import { addKey } from "./keys.ts";

type Call = () => Promise<AppResponse>;

interface Operation {
  security?: readonly object[];
}

/** For each operation that needs a key, calls that get the responses of that check; and those of sessions. */
export function keyCalls(paths: Record<string, Record<string, Operation>>): Record<string, Call> {
  const calls = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations)
      .filter(([, { security }]) => security !== undefined)
      .flatMap(([method]): [string, Call][] => {
        const url = path.replace("{id}", "x");
        const send = (app: App, headers = {}) =>
          app.inject({ method: method as "GET", url, headers });
        return [
          [`${method} ${path} 401`, () => withKeys((app) => send(app))],
          [`${method} ${path} 429`, () => withKeys((app) => guess(() => send(app, wrong)))],
        ];
      }),
  );
  return { ...Object.fromEntries(calls), ...otherCalls };
}

const wrong = { authorization: "Bearer wrong" };

const otherCalls: Record<string, Call> = {
  "get /tasks/ 403": () =>
    withKeys((app, headers) => app.inject({ url: "/tasks/?owner=bert", headers })),
  "get /tasks/events 403": () =>
    withKeys((app, headers) => app.inject({ url: "/tasks/events?owner=bert", headers })),
  "post /session 200": () =>
    withKeys((app, { authorization }) => startSession(app, { key: authorization.slice(7) })),
  "post /session 400": () => withKeys((app) => startSession(app, {})),
  "post /session 401": () => withKeys((app) => startSession(app, { key: "wrong" })),
  "post /session 406": () => withKeys((app) => startSession(app, {}, { accept })),
  "post /session 413": () => withKeys((app) => startSession(app, { key: "x".repeat(70_000) })),
  "post /session 415": () =>
    withKeys((app) => startSession(app, {}, { "content-type": "text/plain" })),
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
): Promise<AppResponse> {
  const store = createMemoryStore();
  const { headers } = await addKey(store, "anna");
  return withApp({ store }, (app) => call(app, headers));
}

/** Sends wrong keys until they are too many. */
async function guess(send: Call): Promise<AppResponse> {
  for (let sent = 0; sent < 20; sent += 1) await send();
  return send();
}
