import { pino } from "pino";
import { expect, it } from "vitest";
import { buildApp } from "./app.ts";

const id = "client-7_a.B";

it("takes a request's id from X-Request-Id, and states it in the response", async () => {
  await using app = await buildApp();
  const response = await app.inject({ url: "/tasks/", headers: { "x-request-id": id } });
  expect(response.headers["x-request-id"]).toBe(id);
});

it("gives each other request an id of its own", async () => {
  await using app = await buildApp();
  await using other = await buildApp();
  const apps = [app, app, other];
  const ids = await Promise.all(apps.map(async (each) => (await each.inject("/health/live")).headers["x-request-id"]));
  expect(new Set(ids).size).toBe(3);
  expect(ids).toEqual(apps.map(() => expect.stringMatching(/^[\w.-]{1,64}$/)));
});

it.each([
  ["an empty one", ""],
  ["one of 65 characters", "a".repeat(65)],
  ["one with a space", "a b"],
  ["one with a comma, as two headers have", "a, b"],
  ["one of other letters", "\u00E4"],
  ["one with a quote", '"a"'],
])("does not take %s", async (_what, given) => {
  await using app = await buildApp();
  const response = await app.inject({ url: "/tasks/", headers: { "x-request-id": given } });
  expect(response.headers["x-request-id"]).toMatch(/^[\w.-]{1,64}$/);
  expect(response.headers["x-request-id"]).not.toBe(given);
});

it.each([
  ["an unknown path", { url: "/nothing" }, 404],
  ["an invalid request", { url: "/tasks/?limit=0" }, 400],
  ["a path that cannot be decoded", { url: "/tasks/%zz" }, 400],
  ["a wrong method", { url: "/tasks/", method: "PUT" as const }, 405],
  ["an unknown host", { url: "/tasks/", headers: { host: "evil.example.com" } }, 421],
])("states it for %s too", async (_what, request, status) => {
  await using app = await buildApp();
  const headers = { ...("headers" in request && request.headers), "x-request-id": id };
  const response = await app.inject({ ...request, headers });
  expect([response.statusCode, response.headers["x-request-id"]]).toEqual([status, id]);
});

it("is in each line that the log has of the request", async () => {
  const lines: Record<string, unknown>[] = [];
  const logger = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const resolve = () => Promise.reject(new TypeError("x"));
  const resolver = { name: "broken", output: {} as never, resolve, close: async () => {} };
  await using app = await buildApp({ logger, resolver });
  await app.inject({ url: "/info?url=https://a.example/", headers: { "x-request-id": id } });
  expect(lines.map(({ reqId, msg, method, path }) => [reqId, msg, method, path])).toEqual([
    [id, "request failed", "GET", "/info"],
    [id, "request", "GET", "/info"],
  ]);
});

it("comes with the path in the only line about a probe, which has failed", async () => {
  const lines: Record<string, unknown>[] = [];
  const logger = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
  await using app = await buildApp({ logger, drainSignal: AbortSignal.abort() });
  await app.inject({ url: "/health/ready", headers: { "x-request-id": id } });
  expect(lines).toMatchObject([{ reqId: id, msg: "request failed", path: "/health/ready", code: "unavailable" }]);
});
