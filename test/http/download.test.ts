import { type AddressInfo, connect } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { makeSharedFolder } from "../folder.ts";
import { openDiskFiles } from "../../src/files/disk.ts";
import type { App } from "../../src/http/app.ts";
import { type Task, TaskOptions } from "../../src/model/task.ts";
import { createMemoryStore } from "../../src/stores/sqlite/sqlite-store.ts";
import type { TaskStore } from "../../src/stores/store.ts";
import type { Format } from "../../src/model/page-info.ts";
import { formatOf } from "../formats.ts";
import { pageOf } from "../runner/resolver.ts";
import { buildApp } from "./app.ts";
import { withApp } from "./failing-app.ts";
import { addFinishedTask } from "./finished-task.ts";
import { addKey } from "./keys.ts";
import { pageUrl, postTask } from "./requests.ts";

const path = `/download?url=${encodeURIComponent(pageUrl)}`;
const folder = makeSharedFolder();
const files = openDiskFiles({ folder });
let store: TaskStore;
let app: App;
/** Called when a request has its task. */
let onMade = () => {};

beforeAll(async () => {
  const memory = createMemoryStore();
  store = {
    ...memory,
    async reuse(...wanted) {
      const made = await memory.reuse(...wanted);
      onMade();
      return made;
    },
  };
  app = await buildApp({ store, files });
});
afterEach(async () => {
  onMade = () => {};
  for (const { id } of await listed()) await store.delete(id);
});
afterAll(async () => {
  await app.close();
});

const listed = async () =>
  (await store.list({ limit: 10, state: undefined, owner: undefined, before: undefined })).tasks;

/** Asks, and cancels the task that is made: the response then says so. */
async function ask(url: string, headers: Record<string, string> = {}) {
  const unsubscribe = store.events.subscribe(({ taskId, state }) => {
    if (state === "queued") void store.update(taskId, { state: "canceled" });
  });
  const response = await app.inject({ url, headers });
  unsubscribe();
  return { response, tasks: await listed() };
}

/** The parameters of options, by the one rule. */
const parametersOf = (options: TaskOptions) =>
  new URLSearchParams(
    Object.entries(options).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]),
  ).toString();

describe("the options of GET /download", () => {
  const all: Required<Omit<TaskOptions, "entries">> = {
    format_id: "720",
    max_height: 720,
    preferred_codecs: ["h264", "vp9"],
    audio_only: true,
    audio_languages: ["original", "de"],
    subtitles: { languages: ["en", "pt-BR"], automatic: true },
    ranges: [
      { start: 80, end: 165.5 },
      { start: 600, end: null },
    ],
    skip: ["sponsor", "intro"],
    skip_mode: "chapters",
    if_exists: "new",
    embed: false,
  };

  it.each([
    ["all of them", all],
    ["a boolean for an object", { subtitles: true, if_exists: "reuse" } as const],
    ["none but the default", { if_exists: "reuse" } as const],
  ])("are parameters: text as it is, all else as in the body of POST: %s", async (_, options) => {
    const { response, tasks } = await ask(`${path}&${parametersOf(options)}`);
    expect(tasks).toMatchObject([{ url: pageUrl, options }]);
    expect(Object.keys(tasks[0]!.options)).toEqual(
      Object.keys(TaskOptions.properties).filter((name) => name in options),
    );
    expect(response.json()).toMatchObject({ code: "conflict" });
    expect(response.headers["content-location"]).toBe(`tasks/${tasks[0]!.id}`);
  });

  it("are those of POST /tasks/, without entries", () => {
    expect(Object.keys(all).toSorted()).toEqual(
      Object.keys(TaskOptions.properties)
        .filter((name) => name !== "entries")
        .toSorted(),
    );
  });

  it.each([
    ["max_height=tall", '/max_height in the query must be an integer from 1 to 65535, got "tall"'],
    ["max_height=0", "/max_height in the query must be an integer from 1 to 65535, got 0"],
    ["audio_only=yes", '/audio_only in the query must be a boolean: true or false, got "yes"'],
    ["format_id=", '/format_id in the query must be 1 to 255 characters long, got ""'],
    ["if_exists=maybe", '/if_exists in the query must be one of new, reuse, got "maybe"'],
    ["skip=sponsor", '/skip in the query must be an array in JSON, as in skip=["sponsor","selfpromo"], got "sponsor"'],
    ['skip=["everything"]', "/skip/0 in the query must be one of sponsor"],
    ["skip=[]", "/skip in the query must have 1 to 9 items"],
    ["skip=sponsor&skip=intro", '/skip in the query must be given once, got ["sponsor","intro"]'],
    ["subtitles=en", '/subtitles in the query must be a boolean or an object in JSON, as in subtitles={"languages":'],
    ['subtitles={"languages":"all","auto":true}', "/subtitles/auto in the query is unknown, must be one of languages"],
    ['ranges=[{"start":5,"end":1}]', '/ranges/0/end in the query must be more than "start", 5, got 1'],
    [
      'ranges=[{"start":"a","end":1}]',
      '/ranges/0/start in the query must be a number of seconds from 0 to 10000000, got "a"',
    ],
    ["skip_mode=chapters", '/skip_mode in the query needs "skip"'],
    ["max_heigth=720", "/max_heigth in the query is unknown; did you mean /max_height?"],
    ["entries=all", "/entries in the query is unknown, must be one of url, format_id"],
    ["quality=best", "/quality in the query is unknown; did you mean /max_height?"],
    ["colour=green", "/colour in the query is unknown, must be one of url, format_id"],
    ["__proto__=1", "/__proto__ in the query is unknown"],
  ])("are refused by name: %s", async (query, detail) => {
    const { response, tasks } = await ask(`${path}&${encodeURI(query)}`);
    expect([response.statusCode, response.json().code, tasks]).toEqual([400, "invalid_request", []]);
    expect(response.json().detail).toContain(detail);
  });

  it.each([
    ["/download", "/url in the query is required, got nothing"],
    ["/download?url=nowhere", "/url in the query: "],
    ["/download?url=https://a.example/?v=1&t=2", "percent-encoded"],
  ])("a URL is needed: %s", async (url, detail) => {
    const { response, tasks } = await ask(url);
    expect([response.statusCode, tasks]).toEqual([400, []]);
    expect(response.json().detail).toContain(detail);
  });
});

async function fail(id: string): Promise<void> {
  await store.claim({ leaseMs: 60_000 });
  const error = {
    code: "upstream_status",
    message: "GET failed with status 503",
    retryable: true,
    upstream_status: 503,
  };
  await store.update(id, { state: "failed", error });
}

describe("GET /download", () => {
  it.each([
    ["a page of another site", { "sec-fetch-site": "cross-site" }],
    ["an image in a page of another site", { "sec-fetch-site": "cross-site", "sec-fetch-dest": "image" }],
    ["a link in a page of the same site", { "sec-fetch-site": "same-site" }],
    ["a prefetch", { "sec-fetch-site": "same-origin", "sec-purpose": "prefetch" }],
    ["a prerender", { "sec-fetch-site": "none", "sec-purpose": "prefetch;prerender" }],
    ["a referring page of another site", { referer: "https://evil.example/" }],
  ])("refuses %s, and makes no task", async (_name, headers) => {
    for (const method of ["GET", "HEAD"] as const) {
      const response = await app.inject({ method, url: path, headers });
      expect([response.statusCode, await listed()]).toEqual([403, []]);
      if (method === "GET") expect(response.json().code).toBe("cross_site");
    }
  });

  it.each([{}, { "sec-fetch-site": "none" }, { "sec-fetch-site": "same-origin" }] as Record<string, string>[])(
    "takes %j, as a person or a program asks",
    async (headers) => expect((await ask(path, headers)).tasks).toHaveLength(1),
  );

  it.each([
    ["bytes=10-", 412],
    ["bytes=-10", 412],
    ["bytes=1-2", 412],
    ["bytes=0-", 409],
    ["lines=1-2", 409],
  ])("takes no Range: %s that does not say of what: half of a stream is not half of a file", async (range, status) => {
    const { response, tasks } = await ask(path, { range });
    expect([response.statusCode, tasks.length]).toEqual([status, status === 412 ? 0 : 1]);
  });

  it.each([
    ["of a browser", { "sec-fetch-dest": "video", "sec-fetch-site": "same-origin" }],
    ["built on ffmpeg or GStreamer", { "icy-metadata": "1" }],
    ["of a television set", { "transfermode.dlna.org": "Streaming" }],
  ])("lets a player %s seek in the file of a task that has it", async (_name, fields) => {
    await addFinishedTask({ store, files }, Buffer.from("content"));
    const headers = { range: "bytes=3-", ...fields };
    const part = await app.inject({ url: path, headers });
    expect([part.statusCode, part.body]).toEqual([206, "tent"]);
  });

  it("sends the file of the own equal task that has it, with ranges for its ETag", async () => {
    const task = await addFinishedTask({ store, files }, Buffer.from("content"));
    const whole = await app.inject(path);
    expect([whole.statusCode, whole.body]).toEqual([200, "content"]);
    expect(whole.headers).toMatchObject({
      "content-location": `tasks/${task.id}`,
      "content-disposition": expect.stringContaining('filename="A film.mp4"'),
    });
    const headers = { range: "bytes=3-", "if-range": String(whole.headers.etag) };
    const part = await app.inject({ url: path, headers });
    expect([part.statusCode, part.body]).toEqual([206, "tent"]);
    expect(await listed()).toHaveLength(1);
    const other = await ask(`${path}&max_height=720`);
    expect([other.response.statusCode, other.tasks.length]).toEqual([409, 2]);
    const anew = await ask(`${path}&if_exists=new`);
    expect([anew.response.statusCode, anew.tasks.length]).toEqual([409, 3]);
  });

  it("joins the equal task that waits, and makes another one once that has failed", async () => {
    const posted = (await postTask(app, { url: pageUrl, options: { max_height: 720 } })).json();
    const { promise: isJoined, resolve } = Promise.withResolvers<void>();
    onMade = resolve;
    const [failed] = await Promise.all([app.inject(`${path}&max_height=720`), isJoined.then(() => fail(posted.id))]);
    expect(failed.headers["content-location"]).toBe(`tasks/${posted.id}`);
    expect(failed.json()).toMatchObject({
      code: "upstream_status",
      status: 502,
      upstream_status: 503,
      detail: "GET failed with status 503",
    });
    expect((await ask(`${path}&max_height=720`)).tasks).toHaveLength(2);
  });

  it("tells why a run failed that is tried again later, and when; waits for what is tried again soon", async () => {
    const lastly = () => store.list({ limit: 1, state: undefined, owner: undefined, before: undefined });
    onMade = () => void failFor(60_000);
    async function failFor(waitMs: number): Promise<void> {
      onMade = () => {};
      const claim = await store.claim({ leaseMs: 60_000 });
      const error = { code: "upstream_unreachable" as const, message: "refused", retryable: true };
      const retry_at = new Date(Date.now() + waitMs).toISOString();
      await store.update(claim!.task.id, { state: "queued", error, retry_at }, { runAfter: new Date(retry_at) });
    }
    const later = await app.inject(path);
    const [task] = (await lastly()).tasks;
    expect(later.json()).toMatchObject({ status: 502, code: "upstream_unreachable", detail: "refused" });
    expect([59, 60]).toContain(Number(later.headers["retry-after"]));
    expect(later.headers["content-location"]).toBe(`tasks/${task!.id}`);
    expect(task!.state).toBe("queued");
    // Who asks again joins it, and learns the same at once.
    expect((await app.inject(path)).statusCode).toBe(502);
    expect((await lastly()).tasks).toHaveLength(1);
    vi.setSystemTime(Date.now() - 86_400_000);
    onTestFinished(() => void vi.useRealTimers());
    expect([59, 60]).toContain(Number((await app.inject(path)).headers["retry-after"]));
    vi.useRealTimers();
    await store.delete(task!.id);
    const canceled = async () => store.update((await lastly()).tasks[0]!.id, { state: "canceled" });
    onMade = () => void failFor(1_000).then(canceled);
    const soon = await app.inject(path);
    expect([soon.statusCode, soon.headers["retry-after"]]).toEqual([502, undefined]);
    expect((await lastly()).tasks).toMatchObject([{ state: "canceled" }]);
  });

  /** Requests the stream of a task that runs: "all", which is said to have so many bytes; the task has this state once that was read. */
  async function requestStream(
    bytes: number | null,
    ending: Partial<Task> & Pick<Task, "state">,
    beforeEnd = async () => {},
  ) {
    const claimed = Promise.withResolvers<string>();
    const reads = [
      async (into: Buffer) => into.write("all"),
      async () => {
        await beforeEnd();
        await store.update(await claimed.promise, ending);
        return "end" as const;
      },
    ];
    const stream = {
      mimeType: "video/mp4",
      ext: "mp4",
      bytes,
      aliveMs: performance.now(),
      read: async (into: Buffer) => (await reads.shift()?.(into)) ?? ("end" as const),
      close: async () => {},
    };
    await using streaming = await buildApp({ store, files: { ...files, openStream: async () => stream } });
    onMade = () => void store.claim({ leaseMs: 60_000 }).then((claim) => claimed.resolve(claim!.task.id));
    const response = await fetch(`${await streaming.listen({ port: 0 })}${path}`);
    const body = await response.text().catch((error: Error) => error.message);
    return [response.status, response.headers.get("content-length"), body];
  }

  it("ends a stream whose task succeeds while its end is being found", async () => {
    expect(await requestStream(null, { state: "succeeded" })).toEqual([200, null, "all"]);
  });

  it("does not end a stream when another task ends", async () => {
    async function endAnother(): Promise<void> {
      const { id } = (await postTask(app, { url: pageUrl })).json();
      await store.update(id, { state: "canceled" });
    }
    expect(await requestStream(null, { state: "succeeded" }, endAnother)).toEqual([200, null, "all"]);
  });

  it("states the length of a stream if it is known, and ends it only if the task succeeds and the stream is so long", async () => {
    expect(await requestStream(3, { state: "succeeded" })).toEqual([200, "3", "all"]);
    const error = { code: "disk_full", message: "full", retryable: true } as const;
    expect(await requestStream(3, { state: "failed", error })).toEqual([200, "3", "terminated"]);
    expect(await requestStream(4, { state: "succeeded" })).toEqual([200, "4", "terminated"]);
    // That is known before the header fields are sent.
    expect((await requestStream(2, { state: "succeeded" }))[0]).toBe(503);
  });

  it("keeps the trace of the request with the task", async () => {
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const trace = { traceparent, tracestate: "vendor=1" };
    expect((await ask(path, trace)).tasks).toMatchObject([trace]);
  });
});

describe("GET /download of a service with keys", () => {
  let own: TaskStore;
  let keyed: App;
  let anna: { secret: string; headers: { authorization: string } };
  beforeAll(async () => {
    own = createMemoryStore();
    anna = await addKey(own, "anna", { limits: { max_queued: 1 } });
    await addKey(own, "ben");
    keyed = await buildApp({ store: own });
  });
  afterAll(() => keyed.close());

  it("needs a key, and makes the task of its owner within the limits of that", async () => {
    expect((await keyed.inject(path)).statusCode).toBe(401);
    const created = Promise.withResolvers<string>();
    own.events.subscribe(({ taskId }) => created.resolve(taskId));
    const get = (query: string) =>
      keyed.inject({ url: `${path}${query}`, headers: { ...anna.headers, "sec-fetch-site": "cross-site" } });
    const [first, second] = await Promise.all([
      get(""),
      created.promise.then(async (id) => {
        expect(await own.get(id)).toMatchObject({ owner: "anna" });
        const refused = await get("&max_height=720");
        await own.update(id, { state: "canceled" });
        return refused;
      }),
    ]);
    expect([second.statusCode, second.json().code]).toEqual([429, "quota_exceeded"]);
    expect(second.headers["retry-after"]).toBeDefined();
    expect(first.statusCode).toBe(409);
  });

  it.each([undefined, "same-site", "cross-site"])(
    "refuses a session unless the browser says that it is the person or the own page: Sec-Fetch-Site %s",
    async (site) => {
      const session = await keyed.inject({ method: "POST", url: "/session", payload: { key: anna.secret } });
      const cookie = session.cookies.map(({ name, value }) => `${name}=${value}`).join("; ");
      const origin = "http://localhost:80";
      const headers = { cookie, ...(site !== undefined && { "sec-fetch-site": site, origin }) };
      const before = await own.count();
      const response = await keyed.inject({ url: path, headers });
      expect([response.statusCode, response.json().code]).toEqual([403, "cross_site"]);
      expect(await own.count()).toEqual(before);
    },
  );

  it.each(["same-origin", "none"])("takes a session with Sec-Fetch-Site %s", async (site) => {
    const session = await keyed.inject({ method: "POST", url: "/session", payload: { key: anna.secret } });
    const cookie = session.cookies.map(({ name, value }) => `${name}=${value}`).join("; ");
    const unsubscribe = own.events.subscribe(({ taskId, state }) => {
      if (state === "queued") void own.update(taskId, { state: "canceled" });
    });
    const response = await keyed.inject({ url: path, headers: { cookie, "sec-fetch-site": site } });
    unsubscribe();
    expect(response.statusCode).toBe(409);
  });
});

it("waits for nothing if its client has left while its task was made", async () => {
  const memory = createMemoryStore();
  const listeners = new Set<unknown>();
  const subscribe: TaskStore["events"]["subscribe"] = (listener) => {
    const unsubscribe = memory.events.subscribe(listener);
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
      unsubscribe();
    };
  };
  const [left, read] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const own = await buildApp({
    files,
    store: {
      ...memory,
      events: Object.assign(Object.create(memory.events) as TaskStore["events"], { subscribe }),
      async reuse(...wanted) {
        const made = await memory.reuse(...wanted);
        client.destroy();
        await left.promise;
        return made;
      },
      async get(id) {
        read.resolve();
        return memory.get(id);
      },
    },
  });
  onTestFinished(() => own.close());
  own.server.on("connection", (socket) => socket.on("close", () => left.resolve()));
  await own.listen({ port: 0, host: "127.0.0.1" });
  const before = listeners.size;
  const client = connect((own.server.address() as AddressInfo).port, "127.0.0.1");
  client.write(`GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`);
  await read.promise;
  await expect.poll(() => listeners.size).toBe(before);
});

describe("HEAD /download", () => {
  it("says the type and the name that the page makes likely, and makes no task", async () => {
    const parts = { store: createMemoryStore() };
    await withApp(parts, async (read) => {
      const response = await read.inject({ method: "HEAD", url: path });
      expect([response.statusCode, response.body]).toEqual([200, ""]);
      expect(response.headers).toMatchObject({
        "content-type": "video/mp4",
        "content-disposition": expect.stringContaining('filename="A film.mp4"'),
      });
      const wrong = await read.inject({ method: "HEAD", url: `${path}&format_id=other` });
      expect([wrong.statusCode, wrong.body]).toEqual([422, ""]);
      expect((await read.inject({ method: "HEAD", url: `${path}&max_height=x` })).statusCode).toBe(400);
      expect((await parts.store.count()).byState.queued).toBe(0);
    });
  });

  it.each([
    ["opus", "audio/ogg", "A film.opus"],
    ["vorbis", "audio/ogg", "A film.ogg"],
    ["mp4a.40.2", "audio/mp4", "A film.m4a"],
    ["mp4a.6b", "audio/mpeg", "A film.mp3"],
    ["mp3", "audio/mpeg", "A film.mp3"],
    ["flac", "audio/flac", "A film.flac"],
    ["ec-3", "audio/mp4", "A film.m4a"],
    ["pcm", undefined, undefined],
    [null, undefined, undefined],
  ])("says what audio alone becomes: of %s %s", async (acodec, type, name) => {
    const formats = [formatOf("a", { ext: "webm", vcodec: "vp9", acodec })];
    await withApp({ page: async () => pageOf(new URL(pageUrl), { formats }) }, async (read) => {
      for (const options of ["audio_only=true", "audio_only=true&ranges=[{%22start%22:1,%22end%22:2}]"]) {
        const { headers } = await read.inject({ method: "HEAD", url: `${path}&${options}` });
        expect(headers["content-type"]).toBe(type);
        expect(saidNameOf(headers)).toBe(name);
      }
    });
  });

  it.each([
    ["", { vcodec: null, height: null }, undefined],
    ["&ranges=[{%22start%22:1,%22end%22:2}]", { vcodec: null, height: null }, undefined],
    ["", { vcodec: null, height: 720 }, "video/mp4"],
    ["", { vcodec: "avc1.64001f", height: null }, "video/mp4"],
  ])("says only what is known of a playlist: with the options %j of %j", async (options, fields, type) => {
    const formats = [formatOf("a", { protocol: "m3u8", acodec: null, ext: "mp4", ...fields })];
    await withApp({ page: async () => pageOf(new URL(pageUrl), { formats }) }, async (read) => {
      const { headers } = await read.inject({ method: "HEAD", url: `${path}${options}` });
      expect(headers["content-type"]).toBe(type);
    });
  });

  it.each([
    ["mp4", {}, "video/mp4", "A film.mp4"],
    ["m4v", {}, "video/mp4", "A film.mp4"],
    ["mp4", { vcodec: "none" }, "audio/mp4", "A film.m4a"],
    ["mov", {}, "video/quicktime", "A film.mov"],
    ["mkv", {}, "video/x-matroska", "A film.mkv"],
    ["webm", { vcodec: "none" }, "audio/webm", "A film.webm"],
    ["mp3", { vcodec: "none" }, "audio/mpeg", "A film.mp3"],
    ["opus", { vcodec: "none" }, "audio/ogg", "A film.opus"],
    // The content of these decides.
    ["ogg", { vcodec: "none", mime_type: "audio/ogg" }, undefined, undefined],
    ["xyz", { mime_type: "video/x-xyz" }, undefined, undefined],
    [null, { mime_type: "video/mp4" }, undefined, undefined],
  ] as [string | null, Partial<Format>, string | undefined, string | undefined][])(
    "says what a file as published is: of .%s %j",
    async (ext, fields, type, name) => {
      const formats = [formatOf("a", { protocol: "https", acodec: null, vcodec: null, ext, ...fields })];
      await withApp({ page: async () => pageOf(new URL(pageUrl), { formats }) }, async (read) => {
        const { headers } = await read.inject({ method: "HEAD", url: path });
        expect([headers["content-type"], saidNameOf(headers)]).toEqual([type, name]);
        expect(headers["content-disposition"]).toMatch(/^attachment/);
      });
    },
  );
});

const saidNameOf = (headers: Record<string, unknown>) =>
  /filename="(.*?)"/.exec(String(headers["content-disposition"]))?.[1];
