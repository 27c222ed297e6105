import { hash } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { makeSharedFolder } from "../folder.ts";
import { readMediaFixtures } from "../media/media-fixtures.ts";
import { pageAbout, pageStyles } from "../media/pages.ts";
import type { Resources } from "../media/resources.ts";
import { type Site, startSite } from "../media/site.ts";
import { openTaskClient, type TaskClient } from "./download-client.ts";
import { type ServiceProcess, startService } from "./service.ts";

const fixtures = readMediaFixtures();
const film = fixtures.get("an MP4 with its index in front")!;
const stream = fixtures.get("HLS in fMP4 with sound of two languages apart")!;
const filmBytes = film.resources.get(film.entry)!.body;

const dataDir = makeSharedFolder();
let service: ServiceProcess;
let client: TaskClient;
let site: Site;

beforeAll(async () => {
  await start();
});
afterEach(async () => {
  await client.deleteAll();
  await site.close();
});
afterAll(async () => {
  client.close();
  await service.end("SIGKILL");
});

async function start(): Promise<void> {
  service = await startService({
    DATA_DIR: dataDir,
    ALLOW_NETWORKS: "127.0.0.1/32",
    MIN_FREE_BYTES: "0",
  });
  client = await openTaskClient(service.url);
}

async function openSite(resources: Resources, bytesPerSecond = Infinity): Promise<Site> {
  site = await startSite(new Map(resources), { bytesPerSecond });
  return site;
}

/** Starts a download of the film that takes a minute; resolves with its id once the first bytes are stored. */
async function startSlowDownload(): Promise<string> {
  await openSite(film.resources, filmBytes.length / 60);
  const { id } = await client.post(site.url(film.entry));
  await client.until(id, ({ progress }) => (progress?.downloaded_bytes ?? 0) > 0);
  return id;
}

describe("a task", () => {
  it.each(pageStyles)("downloads the film of a page that names it by %s", async (style) => {
    await openSite(film.resources);
    site.resources.set("watch", pageAbout(film, site.url(film.entry), style));
    const { id } = await client.post(site.url("watch"));
    const task = await client.ended(id);
    expect(task).toMatchObject({ state: "succeeded", attempts: 1, error: null });
    const response = await client.file(id);
    const bytes = await response.bytes();
    expect(filmBytes.equals(bytes)).toBe(true);
    expect(task.file).toMatchObject({
      name: "an MP4 with its index in front.mp4",
      mime_type: "video/mp4",
      size: bytes.length,
      sha256: hash("sha256", bytes),
      width: 160,
      height: 90,
      url: `/tasks/${id}/file`,
    });
    expect(response.headers.get("content-type")).toBe("video/mp4");
    expect(readdirSync(join(dataDir, "files"))).toEqual([id]);
  });

  it("takes the requested quality and the audio that belongs to it", async () => {
    await openSite(stream.resources);
    const { id } = await client.post(site.url(stream.entry), { max_height: 60 });
    const task = await client.ended(id);
    expect(task.file).toMatchObject({ width: 96, height: 54, mime_type: "video/mp4" });
    expect(site.asked.some(({ path }) => path.startsWith("en/"))).toBe(true);
  });

  it("fails at once, without a retry, if the page has no media", async () => {
    await openSite(new Map());
    site.answer("watch", (response) =>
      response.writeHead(200, { "content-type": "text/html" }).end("<title>Nothing</title>"),
    );
    const { id } = await client.post(site.url("watch"));
    expect(await client.ended(id)).toMatchObject({
      state: "failed",
      attempts: 1,
      error: { code: "no_media", retryable: false },
    });
  });

  it("ends when it is canceled and leaves no parts", async () => {
    const id = await startSlowDownload();
    const parts = join(dataDir, "parts", id);
    expect(existsSync(parts)).toBe(true);
    expect(await client.request("POST", id, "/cancel")).toBe(200);
    await expect.poll(() => existsSync(parts)).toBe(false);
    expect(await client.ended(id)).toMatchObject({ state: "canceled", file: null });
  });

  it("resumes after a restart in the same attempt, and fetches nothing twice", async () => {
    const id = await startSlowDownload();
    client.close();
    expect(await service.end("SIGTERM")).toEqual({ code: 0, signal: null });
    site.bytesPerSecond = Infinity;
    await start();
    expect(await client.ended(id)).toMatchObject({ state: "succeeded", attempts: 1 });
    expect(filmBytes.equals(await (await client.file(id)).bytes())).toBe(true);
    expect(site.asked.at(-1)?.range).toMatch(/^bytes=[1-9]\d*-$/);
  });

  it("has no file any more once it is deleted", async () => {
    await openSite(film.resources);
    const { id } = await client.post(site.url(film.entry));
    await client.ended(id);
    expect(await client.request("DELETE", id)).toBe(204);
    expect((await client.file(id)).status).toBe(404);
    expect(readdirSync(join(dataDir, "files"))).toEqual([]);
  });
});
