import { METHODS } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ErrorCode, errorCodes } from "../../src/model/errors.ts";
import type { App } from "../../src/http/app.ts";
import { buildApp } from "./app.ts";
import { getInfo, pageUrl, postTask } from "./requests.ts";

let app: App;
beforeAll(async () => {
  app = await buildApp();
});
afterAll(() => app.close());

type AppResponse = Awaited<ReturnType<typeof postTask>>;

function problemOf(response: AppResponse) {
  expect(response.headers["content-type"]).toMatch(/^application\/problem\+json/);
  const problem = response.json();
  expect(problem.status).toBe(response.statusCode);
  expect(problem.type).toBe(`urn:problem-type:unreel:${problem.code}`);
  expect(problem.title).toBe(errorCodes[problem.code as ErrorCode].title);
  return problem;
}

const otherMethods = METHODS.filter((method) => method !== "CONNECT") as ("GET" | "HEAD")[];

const longUrl = `https://example.com/${"a".repeat(8200)}`;

describe("an invalid page URL", () => {
  it.each([
    ["is not a URL", "http://", "http://"],
    ["is relative", "/watch/42", "/watch/42"],
    ["is relative to a scheme", "//example.com/x", "//example.com/x"],
    ["has another scheme", "ftp://example.com/a.mp4", "ftp"],
    ["is a local file", "file:///etc/passwd", "file"],
    ["is a script", "javascript:alert(1)", "javascript"],
    ["is over 8 KiB", longUrl, "8192"],
    ["has credentials in it", "https://user:secret@example.com/", "example.com"],
    ["is empty", "", "empty"],
    ["has a line break in it", "https://exa\nmple.com/", "control"],
  ])("%s: the response is invalid_url and says so", async (_, url, named) => {
    for (const response of [await postTask(app, { url }), await getInfo(app, url)]) {
      const problem = problemOf(response);
      expect(problem).toMatchObject({ status: 400, code: "invalid_url", retryable: false });
      expect(problem.detail).toContain(named);
      expect(problem.detail).not.toContain("secret");
      expect(problem.detail.length).toBeLessThan(500);
      expect(problem.errors).toMatchObject([{ pointer: "/url" }]);
    }
  });
});

describe("the URL of a page with a query of its own", () => {
  it.each(["/info", "/info/thumbnail"])("must be percent-encoded in the query of %s", async (path) => {
    const cut = await app.inject(`${path}?url=https://example.com/watch?v=1&list=2`);
    expect(problemOf(cut)).toMatchObject({
      status: 400,
      code: "invalid_url",
      detail: expect.stringContaining('"list=2" is another parameter'),
      errors: [{ pointer: "/url" }],
    });
  });

  it.each([
    `url=${encodeURIComponent("https://example.com/watch?v=1&list=2")}&x=1`,
    "url=https://example.com/watch?v=1",
    "url=https://example.com/watch&x=1",
    "x=1&url=https://example.com/watch?v=1",
  ])("is read as it is in ?%s", async (query) => {
    expect((await app.inject(`/info?${query}`)).statusCode).toBe(200);
  });
});

describe("the URL of a page that is blocked as it stands", () => {
  it.each([
    ["http://169.254.169.254/latest/meta-data", "169.254.169.254 (link-local"],
    ["http://127.0.0.1:8080/", "127.0.0.1 (loopback"],
    ["http://2130706433/", "127.0.0.1 (loopback"],
    ["http://[::1]/", "::1 (loopback"],
    ["http://[::ffff:10.0.0.1]/", "::ffff:a00:1"],
    ["http://localhost/", "localhost, a name of local networks"],
    ["http://metadata.google.internal./", "metadata.google.internal."],
  ])("%s: no task is created", async (url, named) => {
    const problem = problemOf(await postTask(app, { url }));
    expect(problem).toMatchObject({ status: 422, code: "address_blocked", retryable: false });
    expect(problem.detail).toContain(named);
    expect((await app.inject("/tasks/")).json().tasks).toEqual([]);
  });

  it("gets a task if its network is allowed, or a lookup decides", async () => {
    await using open = await buildApp({ allowNetworks: ["127.0.0.0/8", "::1/128"] });
    for (const url of ["http://127.0.0.1:8080/", "http://[::1]/", "http://localhost/", pageUrl]) {
      expect((await postTask(open, { url })).statusCode).toBe(201);
    }
    const elsewhere = problemOf(await postTask(open, { url: "http://10.0.0.1/" }));
    expect(elsewhere).toMatchObject({ code: "address_blocked" });
  });
});

describe("an invalid body", () => {
  it.each([
    ["not JSON", "{url", 400, "invalid_request", "JSON"],
    ["a JSON array", "[]", 400, "invalid_request", "the body must be an object, got []"],
    ["a JSON string", '"https://example.com/"', 400, "invalid_request", "object"],
    ["null", "null", 400, "invalid_request", "must be an object, got null or no body"],
    ["without a url", "{}", 400, "invalid_request", "/url in the body is required, got nothing"],
    ["a url that is a number", '{"url":42}', 400, "invalid_request", "must be a string, got 42"],
    ["a url that is null", '{"url":null}', 400, "invalid_request", "must be a string, got null"],
    ["options of the wrong type", `{"url":"${pageUrl}","options":[]}`, 400, "invalid_request", "/options"],
    [
      "a height of the wrong type",
      `{"url":"${pageUrl}","options":{"max_height":"720"}}`,
      400,
      "invalid_request",
      '"720"',
    ],
    [
      "a height out of range",
      `{"url":"${pageUrl}","options":{"max_height":0}}`,
      400,
      "invalid_request",
      "from 1 to 65535, got 0",
    ],
    [
      "a height that is too large for a number",
      `{"url":"${pageUrl}","options":{"max_height":1e999}}`,
      400,
      "invalid_request",
      "from 1 to 65535, got Infinity",
    ],
    [
      "a negative start of a range",
      `{"url":"${pageUrl}","options":{"ranges":[{"start":-1,"end":2}]}}`,
      400,
      "invalid_request",
      "/options/ranges/0/start in the body must be a number of seconds from 0 to 10000000, got -1",
    ],
    [
      "a range that ends at its start",
      `{"url":"${pageUrl}","options":{"ranges":[{"start":0,"end":0}]}}`,
      400,
      "invalid_request",
      "/options/ranges/0/end in the body must be a number of seconds over 0, up to 10000000, got 0",
    ],
    [
      "entries in a form that is not known",
      `{"url":"${pageUrl}","options":{"entries":"0-2"}}`,
      400,
      "invalid_request",
      '/options/entries in the body must be written as in "all" or "1-20,25,40-", got "0-2"',
    ],
    [
      "a number of entries",
      `{"url":"${pageUrl}","options":{"entries":5}}`,
      400,
      "invalid_request",
      '/options/entries in the body must be a string or an array, as in "all" or "1-20,25", got 5',
    ],
    [
      "entries that end before they begin",
      `{"url":"${pageUrl}","options":{"entries":"1-2,5-4"}}`,
      400,
      "invalid_request",
      "/options/entries in the body must have no range that ends before it begins, got 5-4",
    ],
    [
      "a language that is no tag",
      `{"url":"${pageUrl}","options":{"subtitles":{"languages":["en_US"]}}}`,
      400,
      "invalid_request",
      '/options/subtitles/languages/0 in the body must be written as in "en" or "pt-BR", got "en_US"',
    ],
    [
      "an audio language that is no tag",
      `{"url":"${pageUrl}","options":{"audio_languages":["en_US"]}}`,
      400,
      "invalid_request",
      '/options/audio_languages/0 in the body must be written as in "en" or "pt-BR", got "en_US"',
    ],
    ["__proto__", '{"__proto__":{"url":"x"}}', 400, "invalid_request", "__proto__"],
    ["empty", "", 400, "invalid_request", "empty"],
    ["over 64 KiB", JSON.stringify({ url: pageUrl, x: "x".repeat(70_000) }), 413, "payload_too_large", "64 KiB"],
  ] as const)("%s gets a problem that says what is wrong", async (_, body, status, code, named) => {
    const problem = problemOf(await postTask(app, body));
    expect(problem).toMatchObject({ status, code, retryable: false });
    expect(problem.detail).toContain(named);
  });

  it("of many URLs may have 1 MiB", async () => {
    const payload = { urls: [pageUrl], x: "x".repeat(1 << 20) };
    const problem = problemOf(await app.inject({ method: "POST", url: "/tasks/batch", payload }));
    expect(problem).toMatchObject({ status: 413, detail: "the body is over 1024 KiB" });
  });

  it("gets a problem with a pointer to every fault", async () => {
    const body = { url: 1, options: { max_height: -1, audio_only: "yes" } };
    const { errors } = problemOf(await postTask(app, body));
    expect(errors.map((fault: { pointer: string }) => fault.pointer)).toEqual([
      "/url",
      "/options/max_height",
      "/options/audio_only",
    ]);
  });

  it.each(["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])(
    "of type %s is refused with the type that is needed",
    async (type) => {
      const problem = problemOf(await postTask(app, "url=x", { "content-type": type }));
      expect(problem).toMatchObject({ status: 415, code: "unsupported_media_type" });
      expect(problem.detail).toContain("application/json");
    },
  );

  it.each(["", "json", "application/json, text/plain"])(
    "is refused with the value of a Content-Type that is no media type: %j",
    async (type) => {
      for (const url of ["/tasks/", "/tasks/none/cancel"]) {
        const headers = { "content-type": type };
        const problem = problemOf(await app.inject({ method: "POST", url, headers, payload: "{}" }));
        expect(problem).toMatchObject({ status: 415, code: "unsupported_media_type" });
        expect(problem.detail).toMatch(/application\/json, got /);
        expect(problem.detail).toContain(JSON.stringify(type));
      }
    },
  );

  it("without a Content-Type is refused", async () => {
    const problem = problemOf(await app.inject({ method: "POST", url: "/tasks/", payload: "{}" }));
    expect(problem.detail).toMatch(/application\/json .*; got no Content-Type$/);
  });

  it("that is missing gets a problem that says what is required", async () => {
    const problem = problemOf(await app.inject({ method: "POST", url: "/tasks/" }));
    expect(problem).toMatchObject({ status: 400, code: "invalid_request" });
    expect(problem.detail).toBe("the body must be an object, got null or no body");
  });

  it.each([
    [{ "content-type": "application/json; charset=iso-8859-1" }, "charset=iso-8859-1"],
    [{ "content-encoding": "gzip" }, "Content-Encoding: gzip"],
  ])("with an unsupported charset or coding is refused: %o", async (headers, named) => {
    const problem = problemOf(await postTask(app, { url: pageUrl }, headers));
    expect(problem).toMatchObject({ status: 415, code: "unsupported_media_type" });
    expect(problem.detail).toContain(named);
  });

  it("that is not UTF-8 is refused", async () => {
    const payload = Buffer.from(JSON.stringify({ url: `${pageUrl}/\u00e9` }), "latin1");
    const headers = { "content-type": "application/json" };
    const response = await app.inject({ method: "POST", url: "/tasks/", headers, payload });
    expect(problemOf(response).detail).toContain("not UTF-8");
  });

  it.each(["", "k".repeat(256)])("with an idempotency key out of bounds is refused", async (key) => {
    const problem = problemOf(await postTask(app, { url: pageUrl }, { "idempotency-key": key }));
    expect(problem).toMatchObject({ status: 400, code: "invalid_request" });
    expect(problem.errors[0].pointer).toBe("/idempotency-key");
  });
});

describe("a mistaken name in a body", () => {
  it.each([
    [{ options: { max_heigth: 720 } }, "/options/max_heigth in the body is unknown; did you mean /options/max_height?"],
    [{ options: { maxHeight: 720 } }, "did you mean /options/max_height?"],
    [{ options: { format: "hls-1" } }, "did you mean /options/format_id?"],
    [{ options: { quality: "720p" } }, "/options/quality in the body is unknown; did you mean /options/max_height?"],
    [{ options: { videoQuality: "720" } }, "did you mean /options/max_height?"],
    [{ options: { youtubeVideoCodec: "h264" } }, "did you mean /options/preferred_codecs?"],
    [{ options: { preferred_codecs: "h264" } }, 'must be an array, as in ["h264"], got "h264"'],
    [{ options: { preferred_codecs: ["avc1"] } }, "/options/preferred_codecs/0 in the body must be one of"],
    [{ options: { "extract-audio": true } }, "did you mean /options/audio_only?"],
    [{ options: { subtitleslangs: ["en"] } }, "did you mean /options/subtitles?"],
    [{ options: { download_sections: "*1:20-2:45" } }, "did you mean /options/ranges?"],
    [{ options: { sponsorblock_remove: "sponsor" } }, "did you mean /options/skip?"],
    [{ options: { embed_metadata: true } }, "did you mean /options/embed?"],
    [{ options: { playlist_items: "1-20" } }, "did you mean /options/entries?"],
    [{ options: { overwrites: true } }, "did you mean /options/if_exists?"],
    [
      { options: { subtitles: null } },
      '/options/subtitles in the body must be a boolean or an object, as in {"languages":["en","pt-BR"]}, got null',
    ],
    [
      { options: { subtitles: "en" } },
      '/options/subtitles in the body must be a boolean or an object, as in {"languages":["en","pt-BR"]}, got "en"',
    ],
    [
      { options: { subtitles: { languages: "en" } } },
      '/options/subtitles/languages in the body must be an array or "all"',
    ],
    [{ options: { audio_languages: "de" } }, 'must be an array, as in ["original","de"], got "de"'],
    [
      { options: { ranges: [{ start: 80, end: "2:00" }] } },
      '/options/ranges/0/end in the body must be a number of seconds or null, as in 165.5 or null, got "2:00"',
    ],
    [{ options: { ranges: [{ start: 80 }] } }, "/options/ranges/0/end in the body is required, as in 165.5 or null"],
    [{ options: { playlist_item_limit: 5 } }, "did you mean /options/entries?"],
    [{ options: { subtitles: { languages: [] } } }, "/options/subtitles/languages in the body must have 1 to 60 items"],
    [
      { options: { subtitles: { languages: ["e n"] } } },
      '/options/subtitles/languages/0 in the body must be written as in "en" or "pt-BR", got "e n"',
    ],
    [{ options: { subtitles: { languages: ["e".repeat(36)] } } }, "must be 1 to 35 characters long"],
    [{ options: { colour: "green" } }, "/options/colour in the body is unknown, must be one of format_id, max_height"],
    [{ options: { ["x".repeat(5_000)]: 1 } }, "must be one of format_id, max_height, preferred_codecs"],
    [{ max_height: 720 }, "/max_height in the body has no meaning; did you mean /options/max_height?"],
    [{ "max-hight": 720 }, "did you mean /options/max_height?"],
    [{ height: 720 }, "did you mean /options/max_height?"],
    [{ onlyAudio: true }, "did you mean /options/audio_only?"],
    [{ MAX_HEIGHT: 720 }, "did you mean /options/max_height?"],
    [{ formatId: "hls-1" }, "did you mean /options/format_id?"],
    [{ audio: true }, "did you mean /options/audio_only?"],
    [{ "audio/only": true }, "/audio~1only in the body has no meaning; did you mean /options/audio_only?"],
    [{ option: { max_height: 720 } }, "did you mean /options?"],
  ])("is refused, and what is likely meant is named: %j", async (members, named) => {
    const problem = problemOf(await postTask(app, { url: pageUrl, ...members }));
    expect(problem).toMatchObject({ status: 400, code: "invalid_request", retryable: false });
    expect(problem.detail).toContain(named);
    expect(problem.detail.length).toBeLessThan(500);
    expect(problem.errors).toHaveLength(1);
  });

  it.each([
    [
      { subtitles: { language: ["en"] } },
      '/options/subtitles/languages in the body is required; did you misspell it as "language"?',
    ],
    [
      {
        ranges: [
          { start: 0, end: 1 },
          { strat: 1, end: 2 },
        ],
      },
      '/options/ranges/1/start in the body is required; did you misspell it as "strat"?',
    ],
  ])("is named first if it is the reason why another one is missing: %j", async (options, detail) => {
    expect(problemOf(await postTask(app, { url: pageUrl, options })).detail).toBe(detail);
  });

  it("is looked for among the first 100 members, as comparing thousands takes long", async () => {
    const many = Object.fromEntries(Array.from({ length: 3_000 }, (_, n) => [`max_h${n}`, 1]));
    expect((await postTask(app, { url: pageUrl, ...many, max_height: 720 })).statusCode).toBe(201);
  });

  it.each([{ quality: "720" }, { playlist: true }, { note: "x", page: 2 }])(
    "is none outside of options if no option is written nearly so: %j",
    async (members) => {
      expect((await postTask(app, { url: pageUrl, ...members })).statusCode).toBe(201);
    },
  );

  it("is named with all others", async () => {
    const problem = problemOf(await postTask(app, { url: pageUrl, max_height: 720, audioOnly: true, note: "x" }));
    expect(problem.errors.map(({ pointer }: { pointer: string }) => pointer)).toEqual(["/max_height", "/audioOnly"]);
  });
});

describe("an invalid query", () => {
  it.each([
    ["/info", "/url in the query is required, got nothing"],
    ["/info?ulr=https://example.com/", 'query is required; did you misspell it as "ulr"?'],
    ["/info?x=1&uri=https://example.com/", 'did you misspell it as "uri"?'],
    ["/info?URL=https://example.com/", 'did you misspell it as "URL"?'],
    ["/info?page=https://example.com/", "/url in the query is required, got nothing"],
    ["/info?url=https://a.test/&url=https://b.test/", 'given once, got ["https://a.test/","https://b.test/"]'],
    ["/tasks/?limit=0", "from 1 to 200, got 0"],
    ["/tasks/?limit=201", "from 1 to 200, got 201"],
    ["/tasks/?limit=ten", 'from 1 to 200, got "ten"'],
    ["/tasks/?limit=1.5", 'from 1 to 200, got "1.5"'],
    ["/tasks/?limit=", 'from 1 to 200, got ""'],
    ["/tasks/?limit=1&limit=2", 'given once, got ["1","2"]'],
    ["/tasks/?state=done", 'one of queued, running, succeeded, failed, canceled, got "done"'],
    ["/tasks/?cursor=nonsense", '"nonsense"'],
    ["/tasks/?cursor=", '""'],
    ["/tasks/?cursor=LTE", '"LTE"'],
    ["/tasks/events?task=", 'must be 1 to 64 characters long, got ""'],
    [`/info?url=${pageUrl}&entries_cursor=`, 'must be 1 to 100 characters long, got ""'],
  ])("%s gets a problem with the rule and the value", async (url, named) => {
    const problem = problemOf(await app.inject(url));
    expect(problem).toMatchObject({ status: 400, code: "invalid_request", retryable: false });
    expect(problem.detail).toContain(named);
    expect(problem.errors).toHaveLength(1);
  });

  it("may have parameters that nobody knows", async () => {
    expect((await app.inject("/tasks/?colour=green&quality=2&start=5&stamp=1&_=17&id=x&__proto__=1")).statusCode).toBe(
      200,
    );
  });

  it.each([
    ["GET", "/tasks/?limt=10", "/limt in the query has no meaning; did you mean /limit?"],
    ["GET", "/tasks/?State=failed", "did you mean /state?"],
    ["GET", "/tasks/?status=failed", "did you mean /state?"],
    ["GET", "/tasks/?page=2", "/page in the query has no meaning; did you mean /cursor?"],
    ["GET", "/tasks/?offset=50", "did you mean /cursor?"],
    ["GET", "/tasks/?per_page=10", "did you mean /limit?"],
    ["GET", "/tasks/events?owners=anna", "did you mean /owner?"],
    ["POST", "/tasks/?max_height=720", "did you mean /options/max_height in the body of POST /tasks/?"],
    ["POST", "/tasks/x/retry?format_id=1", "did you mean /options/format_id in the body of POST /tasks/?"],
    ["GET", `/info?url=${pageUrl}&maxHeight=720`, "/maxHeight in the query has no meaning; did you mean /options"],
    ["GET", `/info/thumbnail?url=${pageUrl}&audio_olny`, "did you mean /options/audio_only"],
    ["DELETE", "/tasks/x?format-id=1", "did you mean /options/format_id"],
  ] as const)("%s %s is refused: the name is nearly one that has a meaning", async (method, url, named) => {
    const body = { "content-type": "application/json" };
    const response = await app.inject({ method, url, headers: body, payload: { url: pageUrl } });
    const problem = problemOf(response);
    expect(problem).toMatchObject({ status: 400, code: "invalid_request", retryable: false });
    expect(problem.detail).toContain(named);
    expect(problem.errors).toHaveLength(1);
  });

  it("is named in a body that lacks what is required, among the first 100 members", async () => {
    const detail = async (payload: object) => problemOf(await postTask(app, payload)).detail;
    expect(await detail({ uri: pageUrl })).toContain('did you misspell it as "uri"?');
    const many = Object.fromEntries(Array.from({ length: 3_000 }, (_, n) => [`m${n}`, 1]));
    expect(await detail({ ...many, uri: pageUrl })).toContain("/url in the body is required, got nothing");
  });

  it("is told of the route that takes several URLs if it has these", async () => {
    const problem = problemOf(await postTask(app, { urls: [pageUrl] }));
    expect(problem.detail).toBe('/url in the body is required; for several URLs, POST /tasks/batch takes "urls"');
  });

  it("is told how several URLs are written", async () => {
    const payload = { urls: pageUrl };
    const problem = problemOf(await app.inject({ method: "POST", url: "/tasks/batch", payload }));
    expect(problem.detail).toContain('/urls in the body must be an array, as in ["https://example.com/watch/42"], got');
  });

  it("is said to cut a URL short rather than to have a mistaken name", async () => {
    const problem = problemOf(await app.inject(`/info?url=${pageUrl}?v=1&max_height=2`));
    expect(problem).toMatchObject({ status: 400, code: "invalid_url" });
  });
});

describe("a request without a route", () => {
  it.each([
    ["/", 404],
    ["/nothing", 404],
    ["/tasks/x/y", 404],
    ["/info/x", 404],
    [`/tasks/${"x".repeat(5000)}`, 404],
    ["/%", 400],
    ["/tasks/%zz", 400],
  ])("%s gets a problem", async (url, status) => {
    const response = await app.inject(url);
    expect(response.statusCode).toBe(status);
    expect(problemOf(response).detail.length).toBeLessThan(500);
  });

  it.each([
    ["GET", ""],
    ["DELETE", ""],
    ["POST", "/cancel"],
    ["POST", "/retry"],
    ["GET", "/file"],
  ] as const)("%s of a very long task id%s gets a short problem", async (method, path) => {
    const id = "x".repeat(5_000);
    const problem = problemOf(await app.inject({ method, url: `/tasks/${id}${path}` }));
    const detail = `there is no task ${id.slice(0, 100)}`;
    expect(problem).toMatchObject({ status: 404, code: "not_found", detail });
  });

  it.each([
    ["PUT", "/tasks/", "GET, HEAD, OPTIONS, POST"],
    ["DELETE", "/tasks/", "GET, HEAD, OPTIONS, POST"],
    ["POST", "/tasks/abc", "DELETE, GET, HEAD, OPTIONS"],
    ["GET", "/tasks/abc/cancel", "OPTIONS, POST"],
    ["PUT", "/tasks/abc/retry", "OPTIONS, POST"],
    ["PUT", "/tasks/abc/file", "DELETE, GET, HEAD, OPTIONS"],
    ["DELETE", "/tasks/events", "GET, HEAD, OPTIONS"],
    ["POST", "/info", "GET, HEAD, OPTIONS"],
    ["PATCH", "/health/live", "GET, HEAD, OPTIONS"],
    ["POST", "/openapi.json", "GET, HEAD, OPTIONS"],
    ["POST", "/docs", "GET, HEAD, OPTIONS"],
    ["PROPFIND", "/tasks/", "GET, HEAD, OPTIONS, POST"],
    ["PUT", "/tasks?state=queued", "GET, HEAD, OPTIONS, POST"],
    ["GET", "/tasks/batch", "OPTIONS, POST"],
    ["LINK", "/tasks/batch", "OPTIONS, POST"],
    ["TRACE", "/tasks/abc/cancel/", "OPTIONS, POST"],
    ["PATCH", `/tasks/${"x".repeat(5_000)}`, "DELETE, GET, HEAD, OPTIONS"],
  ] as const)("%s %s is not allowed, and Allow lists what is", async (method, url, allow) => {
    const response = await app.inject({ method: method as "PUT", url });
    expect(problemOf(response)).toMatchObject({ status: 405, code: "method_not_allowed" });
    expect(response.headers["allow"]).toBe(allow);
  });

  it.each(otherMethods)("%s of an unknown path is 404, whatever the body", async (method) => {
    for (const headers of [{}, { "content-type": "nonsense" }, { "content-type": "text/plain" }]) {
      const payload = method === "GET" || method === "HEAD" ? {} : { payload: "{" };
      const response = await app.inject({ method, url: "/nothing", headers, ...payload });
      expect(response.statusCode).toBe(404);
      if (method !== "HEAD") expect(problemOf(response).code).toBe("not_found");
    }
  });

  it("OPTIONS lists the allowed methods", async () => {
    const response = await app.inject({ method: "OPTIONS", url: "/tasks/" });
    expect([response.statusCode, response.headers["allow"]]).toEqual([204, "GET, HEAD, OPTIONS, POST"]);
  });

  it("HEAD is GET without the body", async () => {
    const response = await app.inject({ method: "HEAD", url: "/tasks/" });
    expect([response.statusCode, response.body]).toEqual([200, ""]);
  });
});

it.each([
  "/tasks/",
  "/tasks",
  "/nothing",
  "/%",
  "/tasks/%zz",
  "/docs/",
  "/openapi.json",
  "/health/live",
  "/tasks/?limit=0",
])("the response of %s is not to be sniffed, nor to be kept by a proxy for others", async (url) => {
  expect((await app.inject(url)).headers).toMatchObject({
    "x-content-type-options": "nosniff",
    "cache-control": "private, no-cache",
  });
});

describe("an Accept header", () => {
  it.each(["text/html", "application/xml", "application/json;q=0", "image/*"])(
    "%s without JSON in it is refused",
    async (accept) => {
      const problem = problemOf(await app.inject({ url: "/tasks/", headers: { accept } }));
      expect(problem).toMatchObject({ status: 406, code: "not_acceptable" });
    },
  );

  it("is disregarded if it is over 2,000 characters long, as reading it may take quadratic time", async () => {
    const ofLength = (length: number) => ({ url: "/tasks/", headers: { accept: `text/html,"`.padEnd(length, ",") } });
    expect((await app.inject(ofLength(2_000))).statusCode).toBe(406);
    expect((await app.inject(ofLength(2_001))).statusCode).toBe(200);
    expect((await app.inject(ofLength(1_000_000))).statusCode).toBe(200);
  });

  it.each([
    "application/json",
    "*/*",
    "application/*",
    "text/html, */*;q=0.1",
    "APPLICATION/JSON",
    "application/json; charset=utf-8",
    'text/plain, application/json;charset="UTF-8"',
  ])("%s is accepted", async (accept) => {
    const response = await app.inject({ url: "/tasks/", headers: { accept } });
    expect(response.statusCode).toBe(200);
  });
});

describe("bytes that are not a request", () => {
  const newTask = JSON.stringify({ url: pageUrl });
  async function send(bytes: string): Promise<string> {
    const { port } = app.server.address() as { port: number };
    const socket = connect(port, "127.0.0.1");
    socket.end(bytes);
    return text(socket);
  }
  beforeAll(() => app.listen({ port: 0, host: "127.0.0.1" }));

  it.each<[name: string, bytes: string, status?: string, code?: string]>([
    ["nonsense", "\u0000\r\n\r\n"],
    ["an unknown method", "HELO / HTTP/1.1\r\n\r\n"],
    [
      "a header over 16 KiB",
      `GET / HTTP/1.1\r\nhost: a\r\nx: ${"x".repeat(17_000)}\r\n\r\n`,
      "431",
      "headers_too_large",
    ],
    ["two lengths", "POST /tasks/ HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n"],
    ["no Host", "GET /tasks/ HTTP/1.1\r\n\r\n"],
    ["an empty Host", "GET /tasks/ HTTP/1.1\r\nhost:\r\n\r\n"],
    ["two lines of Host", "GET /tasks/ HTTP/1.1\r\nhost: a\r\nHOST: a\r\n\r\n"],
    [
      "a target on another host",
      "GET http://attacker.net/tasks/ HTTP/1.1\r\nhost: a\r\n\r\n",
      "421",
      "misdirected_request",
    ],
    [
      "another expectation",
      "POST /tasks/ HTTP/1.1\r\nhost: a\r\nexpect: 200-ok\r\ncontent-length: 0\r\n\r\n",
      "417",
      "expectation_failed",
    ],
    ["a tunnel", "CONNECT a.test:80 HTTP/1.1\r\nhost: a.test:80\r\n\r\n"],
    ["another version", "GET /tasks/ HTTP/2.0\r\nhost: a\r\n\r\n"],
    [
      "another transfer coding",
      "POST /tasks/ HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    ],
    ["a transfer coding in HTTP/1.0", "POST /tasks/ HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"],
    ["a target that is no path", "GET * HTTP/1.1\r\nhost: a\r\n\r\n"],
    ["a target of another scheme", "GET ftp://a/tasks/ HTTP/1.1\r\nhost: a\r\n\r\n"],
    [
      "two idempotency keys",
      `POST /tasks/ HTTP/1.1\r\nhost: a\r\nidempotency-key: a\r\nIdempotency-Key: b\r\ncontent-type: application/json\r\ncontent-length: ${newTask.length}\r\n\r\n${newTask}`,
    ],
    ["a path that is no UTF-8", "GET /%ff HTTP/1.1\r\nhost: a\r\n\r\n"],
  ])(
    "%s get a problem document, and the connection is closed",
    async (_, bytes, status = "400 Bad Request", code = "invalid_request") => {
      const [head = "", body = ""] = (await send(bytes)).split("\r\n\r\n");
      expect(head).toContain(`HTTP/1.1 ${status}`);
      expect(head.toLowerCase()).toContain("x-content-type-options: nosniff");
      expect(head).toContain("application/problem+json");
      // RFC 9110 §6.6.1
      expect(Date.parse(/^date: (.*)$/im.exec(head)?.[1] ?? "")).toBeGreaterThan(0);
      expect(JSON.parse(body)).toMatchObject({ code });
    },
  );

  it("name the expectation that is not met", async () => {
    const problem = problemOf(await app.inject({ url: "/tasks/", headers: { expect: "200-ok" } }));
    expect(problem).toMatchObject({ status: 417, code: "expectation_failed" });
    expect(problem.detail).toBe('the header Expect must be 100-continue, got "200-ok"');
  });

  it.each([
    ["HTTP/1.0 without Host", "GET /tasks/ HTTP/1.0\r\n\r\n"],
    ["a target with its host", "GET http://127.0.0.1/tasks/ HTTP/1.1\r\nhost: a\r\n\r\n"],
    ["an expectation of 100-continue", "GET /tasks/ HTTP/1.1\r\nhost: a\r\nexpect: 100-Continue\r\n\r\n"],
  ])("unlike %s, which is served", async (_, bytes) => {
    const { port } = app.server.address() as { port: number };
    const socket = connect(port, "127.0.0.1");
    socket.write(bytes.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n"));
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 (100|200) [^]*"tasks":/);
  });

  it("unlike a path that leads out of a folder, which is forbidden", async () => {
    const { port } = app.server.address() as { port: number };
    const socket = connect(port, "127.0.0.1");
    socket.write("GET /docs/static/%2e%2e/package.json HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 403 [^]*"code":"forbidden"/);
  });

  it("after a request do not replace its response", async () => {
    const body = JSON.stringify({ url: pageUrl });
    const head = "POST /tasks/ HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n";
    const response = await send(`${head}content-length: ${body.length}\r\n\r\n${body}}}}\r\n\r\n`);
    expect(response).toMatch(/^HTTP\/1\.1 201 Created/);
    expect(response).not.toContain("problem+json");
  });
});
