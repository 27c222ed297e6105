import type { App } from "../../src/http/app.ts";

export const pageUrl = "https://example.com/watch/42";

export function postTask(app: App, body: unknown, headers: Record<string, string> = {}) {
  return postJson(app, "/tasks/", body, headers);
}

export function postBatch(app: App, body: unknown, headers: Record<string, string> = {}) {
  return postJson(app, "/tasks/batch", body, headers);
}

export async function postJson(app: App, url: string, body: unknown, headers: Record<string, string> = {}) {
  return app.inject({
    method: "POST",
    url,
    headers: { "content-type": "application/json", ...headers },
    payload: typeof body === "string" ? body : JSON.stringify(body),
  });
}

export async function getInfo(app: App, url: string, headers: Record<string, string> = {}) {
  return app.inject({ url: "/info", query: { url }, headers });
}
