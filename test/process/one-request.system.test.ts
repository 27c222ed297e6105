import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readMediaFixtures } from "../media/media-fixtures.ts";
import { hasFfmpeg } from "../media/probe.ts";
import type { Site } from "../media/site.ts";
import { startHalfSite, startHeldSite } from "./held-site.ts";
import { SharedService } from "./shared-service.ts";
import { framesOf, openStreamReader, save } from "./stream-client.ts";

const fixtures = readMediaFixtures();
const shared = new SharedService({ MAX_ATTEMPTS: "1" });

const downloadUrl = (site: Site, entry: string) =>
  `${shared.service.url}/download?url=${encodeURIComponent(site.url(entry))}`;

/** A program that people download with, in a folder of its own. */
class Downloader {
  readonly folder = mkdtempSync(join(shared.dataDir, "saved-"));
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
    const { entry, resources } = fixtures.get(fixtureName)!;
    const { site, release } = await startHeldSite({ resources });
    const url = downloadUrl(site, entry);
    const head = await fetch(url, { method: "HEAD" });
    expect(await shared.client.list()).toEqual([]);
    const reader = await openStreamReader(url);
    expect(reader.response.status).toBe(200);
    const said = ({ headers }: Response) => ["content-type", "content-disposition"].map((field) => headers.get(field));
    expect(said(reader.response)).toEqual(["video/mp4", expect.stringContaining(`filename="${name}"`)]);
    // Only the segments of a playlist without a master say what they have.
    expect(said(head)).toEqual(entry.endsWith(".m3u8") ? [null, "attachment"] : said(reader.response));
    await reader.untilMedia();
    const [task, ...others] = await shared.client.list();
    expect([task!.state, others]).toEqual(["running", []]);
    expect(reader.response.headers.get("content-location")).toBe(`tasks/${task!.id}`);
    const [curl, wget] = [runCurl("-OJ", url), runWget(url)];
    await Promise.all([curl.started, wget.started]);
    release();
    const all = await reader.all();
    expect(await Promise.all([curl.exitCode, wget.exitCode])).toEqual([0, 0]);
    expect([curl.saved, wget.saved]).toEqual([{ [name]: all }, { [name]: all }]);
    const ended = await shared.client.ended(task!.id);
    expect(ended.file).toMatchObject({ name });
    const file = await shared.saveFile(task!.id);
    expect(framesOf(save(join(shared.dataDir, "streamed"), all))).toEqual(framesOf(file));
    expect(await shared.client.list()).toHaveLength(1);
  });

  it("sends a progressive file as it comes", async () => {
    const fixture = fixtures.get("an MP4 with its index in front")!;
    const { body } = fixture.resources.get(fixture.entry)!;
    const { site, release } = await startHalfSite(fixture, body.length >> 1);
    const reader = await openStreamReader(downloadUrl(site, fixture.entry));
    await reader.until(body.length >> 1);
    expect(reader.response.headers.get("content-length")).toBe(`${body.length}`);
    release();
    expect(body.equals(await reader.all())).toBe(true);
  });

  it("states no length of a progressive file whose server states none", async () => {
    const fixture = fixtures.get("an MP4 with its index in front")!;
    const { body, type } = fixture.resources.get(fixture.entry)!;
    const { site } = await startHalfSite(fixture, body.length >> 1);
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    site.answer(fixture.entry, async (response) => {
      response.writeHead(200, { "content-type": type }).write(body.subarray(0, body.length >> 1));
      await released;
      response.end(body.subarray(body.length >> 1));
    });
    const reader = await openStreamReader(downloadUrl(site, fixture.entry));
    await reader.until(body.length >> 1);
    expect(reader.response.headers.get("content-length")).toBe(null);
    release();
    expect(body.equals(await reader.all())).toBe(true);
  });

  it("tells that it has half of a progressive file if the source dies", async () => {
    const fixture = fixtures.get("an MP4 with its index in front")!;
    const { body } = fixture.resources.get(fixture.entry)!;
    const { site } = await startHalfSite(fixture, body.length >> 1);
    const reader = await openStreamReader(downloadUrl(site, fixture.entry));
    await reader.until(body.length >> 1);
    const curl = runCurl("-OJ", downloadUrl(site, fixture.entry));
    await curl.started;
    await site.close();
    await expect(reader.all()).rejects.toThrow("terminated");
    expect([18, 56]).toContain(await curl.exitCode);
    expect(await shared.client.list()).toMatchObject([{ state: "failed" }]);
  });

  it("tells every client that it has half a film if the source dies", async () => {
    const fixture = fixtures.get("HLS in MPEG-TS with B-frames")!;
    const { site, release } = await startHeldSite(fixture);
    site.answer("ts/4.ts", (response) => response.writeHead(404).end());
    const url = downloadUrl(site, fixture.entry);
    const reader = await openStreamReader(url);
    await reader.untilMedia();
    const [curl, wget] = [runCurl("-OJ", url), runWget(url)];
    // Without chunks, only a length tells half of it from the whole.
    const old = runCurl("-0", "--fail-with-body", "-o", "problem", url);
    await Promise.all([curl.started, wget.started]);
    release();
    await expect(reader.all()).rejects.toThrow("terminated");
    expect(await curl.exitCode).toBe(56);
    // It asks for the rest at once, and is refused: 8, a response of the server.
    expect(await wget.exitCode).toBe(8);
    expect(await old.exitCode).toBe(22);
    expect(JSON.parse(old.saved["problem"]!.toString())).toMatchObject({ code: "upstream_status", status: 502 });
    expect(await shared.client.list()).toMatchObject([{ state: "failed" }]);
  });
});
