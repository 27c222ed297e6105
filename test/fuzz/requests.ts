import assert from "node:assert/strict";
import type { LightMyRequestResponse } from "fastify";
import * as fc from "fast-check";
import type { App } from "../../src/http/app.ts";
import { buildApp } from "../http/app.ts";
import { urls, render, junk, inputPlans } from "./input-plan.ts";
import { defineTarget } from "./target.ts";

/** The memory store keeps all tasks, so the app is replaced after this many runs. */
const runsPerApp = 5_000;

function createApps() {
  let app: Promise<App> | undefined;
  let runs = 0;
  return {
    async use(): Promise<App> {
      runs += 1;
      if (runs % runsPerApp === 0) await this.close();
      app ??= buildApp();
      return app;
    },
    async close(): Promise<void> {
      const open = await app;
      app = undefined;
      await open?.close();
    },
  };
}

/** A response is valid JSON, never 500, and a problem document (RFC 9457) for an error. */
function checkResponse({ statusCode, headers, payload }: LightMyRequestResponse): void {
  const body: unknown = payload === "" ? null : JSON.parse(payload);
  assert.notEqual(statusCode, 500, payload);
  if (statusCode < 400) return;
  assert.match(String(headers["content-type"]), /^application\/problem\+json/);
  assert.ok(typeof body === "object" && body !== null && "code" in body && "status" in body);
  assert.equal(body.status, statusCode);
}

function check(outcome: { value: LightMyRequestResponse } | { error: unknown }): void {
  if ("error" in outcome) throw outcome.error;
  checkResponse(outcome.value);
}

const infoApps = createApps();
const query = fc.oneof(
  inputPlans(urls, junk).map((plan) => `url=${escapeAll(render(plan).slice(0, 30_000))}`),
  fc.tuple(urls, urls).map((list) => list.map((each) => `url=${escapeUrl(each)}`).join("&")),
  fc.string({ maxLength: 100 }).map(escapeUrl),
);

/** `GET /info` with any query. */
export const urlTarget = defineTarget({
  name: "url",
  input: query,
  prepare: async (text) => ({ app: await infoApps.use(), url: `/info?${text.slice(0, 100_000)}` }),
  run: async ({ app, url }) => app.inject({ method: "GET", url }),
  check,
  close: () => infoApps.close(),
});

const taskApps = createApps();
const contentType = fc.oneof(
  { weight: 6, arbitrary: fc.constant("application/json") },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      "application/json; charset=utf-8",
      "application/json; charset=utf-16",
      "APPLICATION/JSON",
      "text/plain",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
      "application/problem+json",
    ),
  },
  { weight: 1, arbitrary: fc.string({ unit: "grapheme-ascii", maxLength: 40 }) },
);
const member = fc.oneof(urls, fc.jsonValue());
const hostile = { ["__proto__"]: fc.jsonValue(), constructor: fc.jsonValue() };
const options = fc.record(
  {
    format_id: fc.oneof(fc.string(), fc.jsonValue()),
    max_height: fc.oneof(fc.integer(), fc.double(), fc.jsonValue()),
    audio_only: fc.oneof(fc.boolean(), fc.jsonValue()),
    ...hostile,
  },
  { requiredKeys: [] },
);
const object = fc
  .record({ url: member, options: fc.oneof(options, options, fc.jsonValue()), ...hostile }, { requiredKeys: [] })
  .map((value) => JSON.stringify(value));
const body = fc.oneof(
  { weight: 4, arbitrary: object },
  { weight: 1, arbitrary: fc.json() },
  { weight: 1, arbitrary: inputPlans(object, junk, fc.constantFrom("[", '{"url":', '{"a":', "1")).map(render) },
);
const idempotencyKey = fc.option(fc.string({ unit: "grapheme-ascii", minLength: 1, maxLength: 300 }));

/** `POST /tasks/` with any body. */
export const bodyTarget = defineTarget({
  name: "body",
  input: fc.tuple(body, contentType, idempotencyKey),
  prepare: async ([payload, type, key]) => {
    const headers = { "content-type": type, ...(key === null ? {} : { "idempotency-key": key }) };
    return { app: await taskApps.use(), request: { payload, headers } };
  },
  run: async ({ app, request }) => app.inject({ method: "POST", url: "/tasks/", ...request }),
  check,
  close: () => taskApps.close(),
});

function escapeAll(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}

/** Escapes as clients do: only characters that a URL cannot contain. */
function escapeUrl(text: string): string {
  return encodeURI(text.toWellFormed()).replaceAll("#", "%23");
}
