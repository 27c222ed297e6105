import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { pino } from "pino";
import { makeSharedFolder } from "../folder.ts";
import { readConfig } from "../../src/config/config.ts";
import { openServices } from "../../src/services.ts";
import { text } from "node:stream/consumers";
import { commandWith, type ServiceProcess, spawnService, startRefused, startService } from "./service.ts";
import { listen } from "../net/listen.ts";

let dataDir: string;
let service: ServiceProcess | undefined;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "unreel-"));
});
afterEach(async () => {
  await service?.end("SIGKILL");
  service = undefined;
  rmSync(dataDir, { recursive: true });
});

async function start(env: Record<string, string> = {}): Promise<string> {
  service = await startService({ DATA_DIR: dataDir, CONCURRENCY: "0", ...env });
  return service.url;
}

async function post(url: string, page: string, headers = {}) {
  return fetch(`${url}/tasks/`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ url: page }),
  });
}

/** Starts a site with one page; the test sends the response. */
async function startSite() {
  const requested = Promise.withResolvers<ServerResponse>();
  const server = createServer((_request, response) => requested.resolve(response));
  const port = await listen(server);
  return { url: `http://127.0.0.1:${port}/watch`, response: requested.promise, server };
}

/** Starts a service with its own folder, and asks it for the information of a page, which it has requested then. */
async function startReading() {
  const folder = mkdtempSync(join(tmpdir(), "unreel-"));
  const env = { DATA_DIR: folder, CONCURRENCY: "0", ALLOW_NETWORKS: "127.0.0.0/8" };
  const own = await startService({ ...env, INFO_TIMEOUT_MS: "240000" });
  const site = await startSite();
  const info = fetch(`${own.url}/info?url=${encodeURIComponent(site.url)}`);
  return {
    service: own,
    info,
    page: await site.response,
    async [Symbol.asyncDispose]() {
      site.server.closeAllConnections();
      site.server.close();
      await own.end("SIGKILL");
      rmSync(folder, { recursive: true });
    },
  };
}

async function readLatePage(): Promise<unknown> {
  await using reading = await startReading();
  const { page, info } = reading;
  // Longer than a client waits by default.
  setTimeout(() => page.writeHead(200, html).end(film), 12_000);
  return (await info).json();
}

async function stopWhileReading() {
  await using reading = await startReading();
  const ended = reading.service.end("SIGTERM");
  const { status } = await reading.info;
  return { status, ended: await ended };
}

const html = { "content-type": "text/html" };
const film = `<title>A film</title><meta property="og:title" content="The film">`;

// What takes seconds without work begins before the other tests.
let lateInfo: ReturnType<typeof readLatePage>;
let slowStop: ReturnType<typeof stopWhileReading>;
/** A service with the settings that it has by default, and its folder. */
let plain: ServiceProcess;
const plainDir = makeSharedFolder();
beforeAll(async () => {
  [lateInfo, slowStop] = [readLatePage(), stopWhileReading()];
  for (const each of [lateInfo, slowStop]) each.catch(() => {});
  plain = await startService({ DATA_DIR: plainDir, CONCURRENCY: "0" });
});
afterAll(() => plain.end("SIGKILL"));

describe("the program", () => {
  it("tells what is on a page, keeps tasks and lists them", async () => {
    const url = await start({ ALLOW_NETWORKS: "127.0.0.0/8" });
    const site = await startSite();
    const info = fetch(`${url}/info?url=${encodeURIComponent(site.url)}`);
    (await site.response).writeHead(200, html).end(film);
    expect(await (await info).json()).toMatchObject({
      url: site.url,
      title: "The film",
      sources: { title: "og" },
      resolver: "page",
    });
    site.server.close();
    const created = await post(url, site.url);
    expect(created.status).toBe(201);
    const list = await (await fetch(`${url}/tasks/`)).json();
    expect(list).toEqual({ tasks: [await created.json()], next: null });
  });

  it("has a web UI, unless WEB=off", async () => {
    expect((await fetch(plain.url)).status).toBe(200);
    expect((await fetch(await start({ WEB: "off" }))).status).toBe(404);
  });

  it("does not fetch from a private network unless ALLOW_NETWORKS has it", async () => {
    const site = await startSite();
    const info = await fetch(`${plain.url}/info?url=${encodeURIComponent(site.url)}`);
    expect(info.status).toBe(422);
    const problem = (await info.json()) as { code: string; detail: string };
    expect(problem.code).toBe("address_blocked");
    expect(problem.detail).toMatch(/127\.0\.0\.1.*loopback.*ALLOW_NETWORKS/);
    site.server.close();
  });

  it("keeps every acknowledged task and its idempotency key after SIGKILL", async () => {
    const first = await start();
    const created = await (await post(first, "https://example.com/1", { "idempotency-key": "a" })).text();
    await service?.end("SIGKILL");
    const second = await start();
    expect(await (await fetch(`${second}/tasks/`)).json()).toEqual({
      tasks: [JSON.parse(created)],
      next: null,
    });
    const again = await post(second, "https://example.com/1", { "idempotency-key": "a" });
    expect(await again.text()).toBe(created);
  });

  it("finishes a request in flight on SIGTERM, accepts no new one, and exits with 0", async () => {
    const url = await start({ ALLOW_NETWORKS: "127.0.0.0/8" });
    const site = await startSite();
    const info = fetch(`${url}/info?url=${encodeURIComponent(site.url)}`);
    const page = await site.response;
    const stopping = once(service!.process.stdout!, "data");
    const ended = service!.end("SIGTERM");
    await stopping;
    await expect
      .poll(() =>
        fetch(url).then(
          () => "served",
          () => "refused",
        ),
      )
      .toBe("refused");
    page.writeHead(200, html).end(film);
    expect(await (await info).json()).toMatchObject({ title: "The film" });
    expect(await ended).toEqual({ code: 0, signal: null });
    site.server.close();
  });

  it("is stopped by a SIGTERM to `npm start` as well", async () => {
    service = await startService({ DATA_DIR: dataDir, CONCURRENCY: "0" }, ["npm", "start"]);
    const { url } = service;
    expect((await fetch(`${url}/health/live`)).status).toBe(200);
    expect(await service.end("SIGTERM")).toEqual({ code: 0, signal: null });
    await expect(fetch(`${url}/health/live`)).rejects.toThrow("fetch failed");
  });

  it("takes a signal that comes twice at once, as Ctrl-C does through npm, for one", async () => {
    await using reading = await startReading();
    // Of two of one kind the system may keep only one.
    reading.service.process.kill("SIGINT");
    const ended = reading.service.end("SIGTERM");
    reading.page.writeHead(200, html).end(film);
    expect(await (await reading.info).json()).toMatchObject({ title: "The film" });
    expect(await ended).toMatchObject({ signal: null });
  });

  it("waits as long as INFO_TIMEOUT_MS says for a page that responds late", async () => {
    expect(await lateInfo).toMatchObject({ title: "The film" });
  });

  it("exits with 0 after SIGTERM although a page never responds", async () => {
    const { status, ended } = await slowStop;
    expect(status).toBe(503);
    expect(ended).toEqual({ code: 0, signal: null });
  });
});

describe("a start that cannot succeed", () => {
  it.each([
    [{ PORT: "http" }, 'unreel: PORT must be an integer from 0 to 65535, got "http"\n'],
    [
      { RESOLVER: "yt-dlp", YTDLP: "", PATH: "/nowhere" },
      'unreel: RESOLVER must be auto or page if yt-dlp is neither on PATH nor named by YTDLP, got "yt-dlp"\n',
    ],
    [{ HOST: "nosuchhost.invalid" }, /^unreel: cannot listen on HOST and PORT[^\n]*nosuchhost\.invalid\n$/],
    [{ DATA_DIR: "/dev/null/data" }, /^unreel: DATA_DIR must be a folder[^\n]*, got \/dev\/null\/data: E[^\n]*\n$/],
  ])("%o: one line that names the setting, the rule and the value; exit 1", async (env, line) => {
    const { code, stderr } = await startRefused({ DATA_DIR: dataDir, ...env });
    expect(code).toBe(1);
    expect(stderr).toMatch(line);
  });

  it("with an old Node: one line that names both", async () => {
    const preload = "data:text/javascript,Object.defineProperty(process, 'version', { value: 'v20.20.2' })";
    const child = spawnService({ DATA_DIR: dataDir }, commandWith("--import", preload));
    const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, "exit")]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^unreel: Node 26 or newer is needed, and this is v20\.20\.2: [^\n]*\n$/);
  });

  const folderRule = "DATA_DIR must be a folder in which files can be created";
  it.each([
    [{ RESOLVER: "magic" }, /^RESOLVER must be one of auto, page, stub, yt-dlp, got "magic"$/],
    [{ YTDLP_COOKIES: "/" }, /^YTDLP_COOKIES must be a file that can be read, got "\/"$/],
    [{ YTDLP: "/nowhere/yt-dlp" }, /^YTDLP [^\n]*"\/nowhere\/yt-dlp"$/],
    [{ STORE_URL: "mysql://x" }, /^STORE_URL [^\n]*memory:, sqlite:[^\n]*mysql[^\n]*$/],
    [{ STORE_URL: "sqlite://db.test/x.db" }, /^STORE_URL must have a path after sqlite:, not a host$/],
    [{ STORE_URL: "memory:x" }, /^STORE_URL must end after memory:, nothing is kept$/],
    [{ ALLOW_NETWORKS: "10.0.0.0/99" }, /^ALLOW_NETWORKS [^\n]*10\.0\.0\.0\/99[^\n]*$/],
    ...["/proc/x", "/proc/x/y", "/dev/null/x"].flatMap((DATA_DIR) =>
      ["sqlite:", "memory:"].map(
        (STORE_URL) => [{ DATA_DIR, STORE_URL }, new RegExp(`^${folderRule}, got ${DATA_DIR}: E[^\\n]*$`)] as const,
      ),
    ),
    [{ STORE_URL: "sqlite:/proc/x/tasks.db" }, /^cannot open the task store \/proc\/x[^\n]*ENOENT[^\n]*$/],
    [{ ROLE: "api" }, /^ROLE must be all unless STORE_URL begins with postgres:, got "api"$/],
    [
      { ROLE: "worker", STORE_URL: "memory:" },
      /^ROLE must be all unless STORE_URL begins with postgres:, got "worker"$/,
    ],
    [{ LIBRARY_DIR: "/none" }, /^LIBRARY_DIR must be a folder that exists, got \/none: ENOENT[^\n]*$/],
    [{ LIBRARY_DIR: "/tmp", LIBRARY_TEMPLATE: "{titel}" }, /^LIBRARY_TEMPLATE must have no fields but title[^\n]*$/],
    [{ LIBRARY_MODE: "rw" }, /^LIBRARY_MODE must be[^\n]*$/],
  ] as const)("%o: one line that names the setting, the rule and the value", async (env, message) => {
    const open = async () => {
      await using opened = new AsyncDisposableStack();
      const settings = readConfig({ DATA_DIR: dataDir, YTDLP: "off", ...env });
      await openServices(settings, pino({ level: "silent" }), new AbortController().signal, opened);
    };
    await expect(open()).rejects.toThrow(message);
  });

  it("on a port in use: one line and exit 1", async () => {
    const { port } = new URL(plain.url);
    const { code, stderr } = await startRefused({ STORE_URL: "memory:", PORT: port });
    expect(code).toBe(1);
    expect(stderr).toMatch(
      new RegExp(`^unreel: cannot listen on HOST and PORT[^\\n]*127\\.0\\.0\\.1:${port}[^\\n]*\\n$`),
    );
  });

  it("on a store that another process has open: one line that names the file, exit 1", async () => {
    const { code, stderr } = await startRefused({ DATA_DIR: plainDir });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^unreel: [^\n]*tasks\.db[^\n]*\n$/);
  });
});
