import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { App } from "../../src/http/app.ts";
import { buildApp } from "./app.ts";
import type { AddressInfo } from "node:net";
import type { Response } from "light-my-request";
import { pageUrl, postTask } from "./requests.ts";
import { startSubPath } from "./sub-path.ts";

let app: App;
beforeEach(async () => {
  app = await buildApp();
});
afterEach(() => app.close());

async function createTasks(count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let i = 0; i < count; i++) {
    ids.push((await postTask(app, { url: `${pageUrl}?n=${i}` })).json().id);
  }
  return ids;
}

describe("POST /tasks/", () => {
  it("responds with 201, the queued task and its location", async () => {
    const response = await postTask(app, { url: pageUrl });
    expect(response.statusCode).toBe(201);
    expect(response.headers["content-type"]).toBe("application/json; charset=utf-8");
    const task = response.json();
    expect(response.headers.location).toBe(`../tasks/${task.id}`);
    expect(task).toEqual({
      id: expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/),
      url: pageUrl,
      options: {},
      state: "queued",
      attempts: 0,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      updated_at: task.created_at,
      started_at: null,
      finished_at: null,
      progress: null,
      info: null,
      file: null,
      removed_at: null,
      error: null,
    });
  });

  it("keeps the trace context of the request, and ignores an invalid one", async () => {
    const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const create = async (value: string) =>
      (await postTask(app, { url: pageUrl }, { traceparent: value })).json().traceparent;
    expect(await create(traceparent)).toBe(traceparent);
    expect(await create(`cc${traceparent.slice(2)}-what-comes`)).toBe(traceparent);
    expect(await create(traceparent.replace(/01$/, "ff"))).toBe(traceparent.replace(/01$/, "03"));
    expect(await create(traceparent.replace(/01$/, "0G"))).toBeUndefined();
    expect(await create(traceparent.slice(0, -1))).toBeUndefined();
    expect(await create(`ff${traceparent.slice(2)}`)).toBeUndefined();
    expect(await create(`${traceparent}-what-comes`)).toBeUndefined();
    expect(await create(traceparent.replace(/4bf\w+/, "0".repeat(32)))).toBeUndefined();
    expect(await create(traceparent.replace(/00f0\w+/, "0".repeat(16)))).toBeUndefined();
  });

  const longMember = `long=${"x".repeat(130)}`;
  const shortMembers = Array.from({ length: 8 }, (_, n) => `k${n}=${"x".repeat(67)}`);
  it.each([
    ["one member", "vendor=a value", "vendor=a value"],
    ["several, with blanks and empty ones between them", "b@c=2 , ,\ta=1,", "b@c=2,a=1"],
    [
      "up to 512 characters, without long members and then without the last ones",
      [longMember, ...shortMembers].join(","),
      shortMembers.slice(0, 7).join(","),
    ],
    ["a long member, if all have not over 512 characters", longMember, longMember],
    ["keys that begin with a digit, as of level 2", "1a=2,3@4@5=6", "1a=2,3@4@5=6"],
    ["none of a list with a key in capitals", "a=1,B=2", undefined],
    ["none of a list with a value that has an equals sign", "a=1=2", undefined],
    ["none of over 32 members", Array.from({ length: 33 }, (_, n) => `k${n}=1`).join(","), undefined],
    ["none of an empty list", " ", undefined],
  ])("keeps of a trace state %s", async (_what, tracestate, kept) => {
    const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const created = await postTask(app, { url: pageUrl }, { traceparent, tracestate });
    expect([created.json().traceparent, created.json().tracestate]).toEqual([traceparent, kept]);
    const withoutParent = await postTask(app, { url: pageUrl }, { tracestate });
    expect(withoutParent.json()).not.toHaveProperty("tracestate");
  });

  it("stores ranges that are in order and apart, but for the rounding of sums", async () => {
    const ranges = [
      { start: 0, end: 1.5 },
      { start: 1.5, end: 2.4 + 0.2 + 1e-12 },
      { start: 2.6, end: 3 },
      { start: 80, end: null },
    ];
    const response = await postTask(app, { url: pageUrl, options: { ranges } });
    expect([response.statusCode, response.json().options]).toEqual([201, { ranges }]);
  });

  it.each([
    [[{ start: 2, end: 2 }], "/options/ranges/0/end", 'must be more than "start", 2, got 2'],
    [
      [
        { start: 5, end: 9 },
        { start: 8, end: null },
      ],
      "/options/ranges/1/start",
      "must not be before the end of the range before, 9, got 8",
    ],
    [
      [
        { start: 5, end: null },
        { start: 8, end: 9 },
      ],
      "/options/ranges/1/start",
      "must not be after a range without an end, got 8",
    ],
    [[{ start: -1, end: null }], "/options/ranges/0/start", expect.any(String)],
    [[{ start: 0 }], "/options/ranges/0/end", expect.any(String)],
    [[], "/options/ranges", expect.any(String)],
  ])("refuses ranges like %j", async (ranges, pointer, detail) => {
    const response = await postTask(app, { url: pageUrl, options: { ranges } });
    expect(response.statusCode).toBe(400);
    expect(response.json()).toMatchObject({ code: "invalid_request", errors: [{ pointer, detail }] });
  });

  it("refuses `all` in a list of languages of subtitles, but not instead of one", async () => {
    const post = (languages: unknown) => postTask(app, { url: pageUrl, options: { subtitles: { languages } } });
    const response = await post(["en", "All"]);
    expect(response.statusCode).toBe(400);
    const detail = 'must be "all" itself, or a list without it, got ["en","All"]';
    const errors = [{ pointer: "/options/subtitles/languages", detail }];
    expect(response.json()).toMatchObject({ code: "invalid_request", errors });
    for (const right of ["all", ["en", "alq"]]) expect((await post(right)).statusCode).toBe(201);
  });

  it("refuses `skip_mode` without `skip`", async () => {
    const response = await postTask(app, { url: pageUrl, options: { skip_mode: "cut" } });
    expect(response.statusCode).toBe(400);
    const errors = [{ pointer: "/options/skip_mode", detail: 'needs "skip", which says what is skipped' }];
    expect(response.json()).toMatchObject({ code: "invalid_request", errors });
  });

  it("stores the options and ignores other members of the body", async () => {
    const options = { format_id: "hls-1080", max_height: 720, audio_only: false };
    const response = await postTask(app, {
      url: pageUrl,
      options,
      priority: 3,
      colour: "green",
      state: "succeeded",
      id: "mine",
    });
    expect(response.statusCode).toBe(201);
    expect(response.json()).toMatchObject({ options, state: "queued" });
    expect(response.json().options).toEqual(options);
    expect(response.json().id).not.toBe("mine");
  });

  it("stores the URL in its normalised form", async () => {
    const response = await postTask(app, { url: "  https://Example.COM/a b  " });
    expect(response.json().url).toBe("https://example.com/a%20b");
  });

  it("creates a task for each request without an idempotency key", async () => {
    const [first, second] = await Promise.all([postTask(app, { url: pageUrl }), postTask(app, { url: pageUrl })]);
    expect(first.json().id).not.toBe(second.json().id);
  });

  it("sends the same response for the same idempotency key and body", async () => {
    const send = () => postTask(app, { url: pageUrl, options: { max_height: 720 } }, { "idempotency-key": "a" });
    const responses = await Promise.all(Array.from({ length: 20 }, send));
    expect(new Set(responses.map((response) => response.body)).size).toBe(1);
    expect(responses.every((response) => response.statusCode === 201)).toBe(true);
    expect((await app.inject("/tasks/")).json().tasks).toHaveLength(1);
  });

  it("treats bodies that differ only in ignored members as the same", async () => {
    const key = { "idempotency-key": "b" };
    const first = await postTask(app, { url: pageUrl, options: { max_height: 1, audio_only: true } }, key);
    const again = await postTask(app, { options: { audio_only: true, max_height: 1 }, url: pageUrl, x: 1 }, key);
    expect(again.body).toBe(first.body);
  });

  it("treats bodies that differ only in the order of members as the same", async () => {
    const key = { "idempotency-key": "d" };
    const options = { subtitles: { languages: ["en"], automatic: true }, ranges: [{ start: 1, end: 2 }] };
    const first = await postTask(app, { url: pageUrl, options }, key);
    const turned = { ranges: [{ end: 2, start: 1 }], subtitles: { automatic: true, languages: ["en"] } };
    const again = await postTask(app, { options: turned, url: pageUrl }, key);
    expect(again.body).toBe(first.body);
    const other = { ...options, ranges: [{ start: 1, end: 3 }] };
    expect((await postTask(app, { url: pageUrl, options: other }, key)).statusCode).toBe(422);
  });

  it("refuses an idempotency key with another body", async () => {
    await postTask(app, { url: pageUrl }, { "idempotency-key": "c" });
    const response = await postTask(app, { url: `${pageUrl}3` }, { "idempotency-key": "c" });
    expect(response.statusCode).toBe(422);
    expect(response.json()).toMatchObject({ code: "idempotency_mismatch", retryable: false });
  });
});

describe("GET /tasks/", () => {
  it("lists nothing at first", async () => {
    const response = await app.inject({ url: "/tasks/", headers: { accept: "application/json" } });
    expect(response.statusCode).toBe(200);
    expect(response.json()).toEqual({ tasks: [], next: null });
    expect(response.headers["link"]).toBeUndefined();
  });

  it("lists the newest first, fifty by default", async () => {
    const ids = (await createTasks(51)).toReversed();
    const { tasks, next } = (await app.inject("/tasks/")).json();
    expect(tasks.map((task: { id: string }) => task.id)).toEqual(ids.slice(0, 50));
    const last = await app.inject(next);
    expect(last.json().tasks.map((task: { id: string }) => task.id)).toEqual(ids.slice(50));
    expect(last.json().next).toBeNull();
  });

  it("keeps limit and state in next, which is also sent as Link", async () => {
    const ids = (await createTasks(5)).toReversed();
    const seen: string[] = [];
    let url: string | null = "/tasks/?limit=2&state=queued";
    while (url !== null) {
      const response: Response = await app.inject(url);
      const { tasks, next } = response.json<{ tasks: { id: string }[]; next: string | null }>();
      seen.push(...tasks.map((task) => task.id));
      if (next !== null) expect(response.headers["link"]).toBe(`<${next}>; rel="next"`);
      url = next;
    }
    expect(seen).toEqual(ids);
  });

  it("does not repeat or skip a task if others are created between two pages", async () => {
    const ids = (await createTasks(4)).toReversed();
    const { tasks, next } = (await app.inject("/tasks/?limit=2")).json();
    await createTasks(3);
    const rest = (await app.inject(next)).json().tasks;
    expect([...tasks, ...rest].map((task: { id: string }) => task.id)).toEqual(ids);
  });

  it("filters by state", async () => {
    await createTasks(2);
    expect((await app.inject("/tasks/?state=failed")).json().tasks).toEqual([]);
    expect((await app.inject("/tasks/?state=queued")).json().tasks).toHaveLength(2);
  });
});

describe("GET /tasks/{id}", () => {
  it("returns the task that POST created", async () => {
    const created = await postTask(app, { url: pageUrl });
    const response = await app.inject(String(created.headers.location));
    expect(response.statusCode).toBe(200);
    expect(response.json()).toEqual(created.json());
  });

  it("responds with 304 as long as nothing has changed", async () => {
    const location = String((await postTask(app, { url: pageUrl })).headers.location);
    const { etag } = (await app.inject(location)).headers;
    const again = await app.inject({ url: location, headers: { "if-none-match": String(etag) } });
    expect([again.statusCode, again.body]).toEqual([304, ""]);
  });

  it.each([
    ["*", 304],
    ['"other", W/TAG', 304],
    ['"other"', 200],
  ])("compares If-None-Match: %s as RFC 9110 defines", async (header, status) => {
    const location = String((await postTask(app, { url: pageUrl })).headers.location);
    const tag = String((await app.inject(location)).headers["etag"]);
    const headers = { "if-none-match": header.replace("TAG", tag) };
    expect((await app.inject({ url: location, headers })).statusCode).toBe(status);
  });

  it("sends no entity tag with an error, and matches none", async () => {
    const missing = { url: "/tasks/none", headers: { "if-none-match": "*" } };
    const response = await app.inject(missing);
    expect([response.statusCode, response.headers["etag"]]).toEqual([404, undefined]);
  });

  it("responds with 404 for an unknown id", async () => {
    const response = await app.inject("/tasks/0190b0a0-0000-7000-8000-000000000000");
    expect(response.statusCode).toBe(404);
    expect(response.json()).toMatchObject({
      code: "not_found",
      detail: "there is no task 0190b0a0-0000-7000-8000-000000000000",
    });
  });
});

describe("DELETE /tasks/{id}", () => {
  it("removes the task", async () => {
    const location = String((await postTask(app, { url: pageUrl })).headers.location);
    const response = await app.inject({ method: "DELETE", url: location });
    expect([response.statusCode, response.body]).toEqual([204, ""]);
    expect((await app.inject(location)).statusCode).toBe(404);
    expect((await app.inject("/tasks/")).json().tasks).toEqual([]);
  });

  it("ignores headers for other methods", async () => {
    const url = String((await postTask(app, { url: pageUrl })).headers.location);
    const headers = { "content-type": "application/json", "if-none-match": "*" };
    expect((await app.inject({ method: "DELETE", url, headers })).statusCode).toBe(204);
    expect((await app.inject({ method: "DELETE", url, headers })).statusCode).toBe(404);
  });

  it("responds with 404 the second time", async () => {
    const location = String((await postTask(app, { url: pageUrl })).headers.location);
    await app.inject({ method: "DELETE", url: location });
    expect((await app.inject({ method: "DELETE", url: location })).statusCode).toBe(404);
  });
});

describe("a service below a path of a proxy that says nothing of it", () => {
  it("gives URLs that lead back through the proxy", async () => {
    await app.listen({ host: "127.0.0.1", port: 0 });
    await createTasks(2);
    const base = await startSubPath((app.server.address() as AddressInfo).port, "/a/b/");
    const tasks = new URL("tasks/", base);
    const created = await fetch(tasks, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ url: pageUrl }),
    });
    const { id } = (await created.json()) as { id: string };
    expect(new URL(created.headers.get("location")!, created.url).href).toBe(new URL(id, tasks).href);
    const first = await fetch(new URL("?limit=2", tasks));
    const { next } = (await first.json()) as { next: string };
    const second = (await (await fetch(new URL(next, first.url))).json()) as { tasks: object[] };
    expect(second.tasks).toHaveLength(1);
    for (const path of ["tasks?limit=1", "info/?url=https%3A%2F%2Fa.test%2F", "docs"]) {
      const response = await fetch(new URL(path, base));
      expect([path, response.redirected, response.status]).toEqual([path, true, 200]);
    }
  });
});

describe("the paths", () => {
  it.each([
    ["GET", "/tasks?limit=3", "/tasks/?limit=3"],
    ["POST", "/tasks", "/tasks/"],
    ["GET", "/info/?url=a%20b?c=/", "/info?url=a%20b?c=/"],
    ["GET", "/tasks/0199d3f0-x/", "/tasks/0199d3f0-x"],
    ["DELETE", "/tasks/x/?library=true", "/tasks/x?library=true"],
    ["POST", "/tasks/x/retry/", "/tasks/x/retry"],
    ["POST", "/tasks/batch/", "/tasks/batch"],
    ["GET", "/tasks/x/files/a%2Fb/", "/tasks/x/files/a%2Fb"],
    ["GET", "/health/ready/", "/health/ready"],
    ["GET", "/%74asks", "/%74asks/"],
  ] as const)("%s %s redirects to %s, keeping method and body", async (method, url, location) => {
    const response = await app.inject({ method, url, ...(method === "POST" && { payload: {} }) });
    expect(response.statusCode).toBe(308);
    const asked = new URL(url, "http://localhost");
    expect(new URL(response.headers.location!, asked).href).toBe(new URL(location, asked).href);
    expect(response.body).toMatch(/^the path is \S+; follow the redirect, as curl -L does\n$/);
  });
});
