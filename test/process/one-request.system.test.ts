import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { makeSharedFolder } from "../folder.ts";
import { readMediaFixtures } from "../media/media-fixtures.ts";
import { hasFfmpeg } from "../media/probe.ts";
import { openTaskClient, type TaskClient } from "./download-client.ts";
import { type HeldSite, startHalfSite, startHeldSite } from "./held-site.ts";
import { type ServiceProcess, startService } from "./service.ts";
import { framesOf, openStreamReader, save } from "./stream-client.ts";

const fixtures = readMediaFixtures();
const dataDir = makeSharedFolder();
let service: ServiceProcess;
let client: TaskClient;
let held: HeldSite;

beforeAll(async () => {
  service = await startService({ DATA_DIR: dataDir, ALLOW_NETWORKS: "127.0.0.1/32", MAX_ATTEMPTS: "1" });
  client = await openTaskClient(service.url);
});
afterEach(async () => {
  await client.deleteAll();
  await held.site.close();
});
afterAll(async () => {
  client.close();
  await service.end("SIGKILL");
});

const downloadUrl = (entry: string) => `${service.url}/download?url=${encodeURIComponent(held.site.url(entry))}`;

/** A program that people download with, in a folder of its own. */
class Downloader {
  readonly folder = mkdtempSync(join(dataDir, "saved-"));
  readonly exitCode: Promise<number>;
  #output = "";
  readonly #started = Promise.withResolvers<void>();

  /** @param started What it writes once it has the header fields of the response. */
  constructor(program: string, args: readonly string[], started: RegExp) {
    const child = spawn(program, args, {
      cwd: this.folder,
      stdio: ["ignore", "ignore", "pipe"],
      env: { ...process.env, LC_ALL: "C" },
    });
    child.stderr.on("data", (text) => {
      this.#output += String(text);
      if (started.test(this.#output)) this.#started.resolve();
    });
    this.exitCode = once(child, "close").then(([code]) => code as number);
  }

  get started(): Promise<void> {
    return this.#started.promise;
  }

  /** The files that it has saved, by name. */
  get saved(): Record<string, Buffer> {
    return Object.fromEntries(readdirSync(this.folder).map((name) => [name, readFileSync(join(this.folder, name))]));
  }
}

const runCurl = (...args: string[]) => new Downloader("curl", ["-sSv", ...args], /^< HTTP\/1\.[01] /m);
const runWget = (url: string) =>
  new Downloader("wget", ["--content-disposition", "--waitretry=0", url], /awaiting response\.\.\. \d/);

describe("GET /download", () => {
  it.skipIf(!hasFfmpeg).each([
    ["HLS in MPEG-TS with B-frames", "index.mp4"],
    ["DASH with a SegmentTimeline", "main.mp4"],
  ])("sends the first segment of %s while the others are held back, then the whole", async (fixtureName, name) => {
    const { entry, ...fixture } = fixtures.get(fixtureName)!;
    held = await startHeldSite({ entry, ...fixture });
    const url = downloadUrl(entry);
    const head = await fetch(url, { method: "HEAD" });
    expect(await client.list()).toEqual([]);
    const reader = await openStreamReader(url);
    expect(reader.response.status).toBe(200);
    const said = ({ headers }: Response) => ["content-type", "content-disposition"].map((field) => headers.get(field));
    expect(said(reader.response)).toEqual(["video/mp4", expect.stringContaining(`filename="${name}"`)]);
    // Only the segments of a playlist without a master say what they have.
    expect(said(head)).toEqual(entry.endsWith(".m3u8") ? [null, "attachment"] : said(reader.response));
    await reader.untilMedia();
    const [task, ...others] = await client.list();
    expect([task!.state, others]).toEqual(["running", []]);
    expect(reader.response.headers.get("content-location")).toBe(`tasks/${task!.id}`);
    const [curl, wget] = [runCurl("-OJ", url), runWget(url)];
    await Promise.all([curl.started, wget.started]);
    held.release();
    const all = await reader.all();
    expect(await Promise.all([curl.exitCode, wget.exitCode])).toEqual([0, 0]);
    expect([curl.saved, wget.saved]).toEqual([{ [name]: all }, { [name]: all }]);
    const ended = await client.ended(task!.id);
    expect(ended.file).toMatchObject({ name });
    const file = save(join(dataDir, "file"), await (await client.file(task!.id)).bytes());
    expect(framesOf(save(join(dataDir, "streamed"), all))).toEqual(framesOf(file));
    expect(await client.list()).toHaveLength(1);
  });

  it("sends a progressive file as it comes", async () => {
    const fixture = fixtures.get("an MP4 with its index in front")!;
    const { body } = fixture.resources.get(fixture.entry)!;
    held = await startHalfSite(fixture, body.length >> 1);
    const reader = await openStreamReader(downloadUrl(fixture.entry));
    await reader.until(body.length >> 1);
    expect(reader.response.headers.get("content-length")).toBe(`${body.length}`);
    held.release();
    expect(body.equals(await reader.all())).toBe(true);
  });

  it("states no length of a progressive file whose server states none", async () => {
    const fixture = fixtures.get("an MP4 with its index in front")!;
    const { body, type } = fixture.resources.get(fixture.entry)!;
    held = await startHalfSite(fixture, body.length >> 1);
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    held.site.answer(fixture.entry, async (response) => {
      response.writeHead(200, { "content-type": type }).write(body.subarray(0, body.length >> 1));
      await released;
      response.end(body.subarray(body.length >> 1));
    });
    const reader = await openStreamReader(downloadUrl(fixture.entry));
    await reader.until(body.length >> 1);
    expect(reader.response.headers.get("content-length")).toBe(null);
    release();
    expect(body.equals(await reader.all())).toBe(true);
  });

  it("tells that it has half of a progressive file if the source dies", async () => {
    const fixture = fixtures.get("an MP4 with its index in front")!;
    const { body } = fixture.resources.get(fixture.entry)!;
    held = await startHalfSite(fixture, body.length >> 1);
    const reader = await openStreamReader(downloadUrl(fixture.entry));
    await reader.until(body.length >> 1);
    const curl = runCurl("-OJ", downloadUrl(fixture.entry));
    await curl.started;
    await held.site.close();
    await expect(reader.all()).rejects.toThrow("terminated");
    expect([18, 56]).toContain(await curl.exitCode);
    expect(await client.list()).toMatchObject([{ state: "failed" }]);
  });

  it("tells every client that it has half a film if the source dies", async () => {
    const fixture = fixtures.get("HLS in MPEG-TS with B-frames")!;
    held = await startHeldSite(fixture);
    held.site.answer("ts/4.ts", (response) => response.writeHead(404).end());
    const url = downloadUrl(fixture.entry);
    const reader = await openStreamReader(url);
    await reader.untilMedia();
    const [curl, wget] = [runCurl("-OJ", url), runWget(url)];
    // Without chunks, only a length tells half of it from the whole.
    const old = runCurl("-0", "--fail-with-body", "-o", "problem", url);
    await Promise.all([curl.started, wget.started]);
    held.release();
    await expect(reader.all()).rejects.toThrow("terminated");
    expect(await curl.exitCode).toBe(56);
    // It asks for the rest at once, and is refused: 8, a response of the server.
    expect(await wget.exitCode).toBe(8);
    expect(await old.exitCode).toBe(22);
    expect(JSON.parse(old.saved["problem"]!.toString())).toMatchObject({ code: "upstream_status", status: 502 });
    expect(await client.list()).toMatchObject([{ state: "failed" }]);
  });
});
