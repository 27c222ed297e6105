import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readExhibits } from "../media/media-fixtures.ts";
import { pageAbout, pageStyles } from "../media/pages.ts";
import { merge, type Resources } from "../media/resources.ts";
import { type Site, startSite } from "../media/site.ts";
import { openTaskClient, type TaskClient } from "./download-client.ts";
import { type ServiceProcess, startService } from "./service.ts";

const exhibits = readExhibits();
const film = exhibits.get("an MP4 with its index in front")!;
const stream = exhibits.get("HLS in fMP4 with sound of two languages apart")!;

let dataDir: string;
let service: ServiceProcess | undefined;
let site: Site | undefined;
let client: TaskClient | undefined;
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "unreel-download-"));
});
afterEach(async () => {
  client?.close();
  await service?.end("SIGKILL");
  await site?.close();
  rmSync(dataDir, { recursive: true });
});

async function open(resources: Resources, bytesPerSecond = Infinity) {
  site = await startSite(resources, { bytesPerSecond });
  return { site, client: await start() };
}

async function start(): Promise<TaskClient> {
  client?.close();
  service = await startService({
    DATA_DIR: dataDir,
    ALLOW_NETWORKS: "127.0.0.1/32",
    MIN_FREE_BYTES: "0",
    LOG_LEVEL: "info",
  });
  client = await openTaskClient(service.url);
  return client;
}

/** The medium about whose half is there. */
const slowly = film.resources.get(film.entry)!.body.length / 2;

describe("a task", () => {
  it.each(pageStyles)("leads from a page (%s) to the file of its medium", async (style) => {
    const opened = await open(new Map(film.resources));
    const page = pageAbout(film, opened.site.url(film.entry), style);
    opened.site.resources.set("watch", page);
    const { id } = await opened.client.post(opened.site.url("watch"));
    const task = await opened.client.ended(id);
    expect(task).toMatchObject({ state: "succeeded", attempts: 1, error: null });
    const answer = await opened.client.file(id);
    const bytes = Buffer.from(await answer.arrayBuffer());
    expect(bytes.equals(film.resources.get(film.entry)!.body)).toBe(true);
    expect(task.file).toMatchObject({
      name: "an MP4 with its index in front.mp4",
      mime_type: "video/mp4",
      size: bytes.length,
      sha256: createHash("sha256").update(bytes).digest("hex"),
      width: 160,
      height: 90,
      url: `/tasks/${id}/file`,
    });
    expect(answer.headers.get("content-type")).toBe("video/mp4");
    expect(readdirSync(join(dataDir, "files"))).toEqual([id]);
  });

  it("takes the quality that is asked for, and the sound that belongs to it", async () => {
    const opened = await open(stream.resources);
    const { id } = await opened.client.post(opened.site.url(stream.entry), { max_height: 60 });
    const task = await opened.client.ended(id);
    expect(task.file).toMatchObject({ width: 96, height: 54, mime_type: "video/mp4" });
    expect(opened.site.asked.some(({ path }) => path.startsWith("en/"))).toBe(true);
  });

  it("fails for good at once where the page has no medium", async () => {
    const opened = await open(new Map());
    opened.site.answer("watch", (response) =>
      response.writeHead(200, { "content-type": "text/html" }).end("<title>Nothing</title>"),
    );
    const { id } = await opened.client.post(opened.site.url("watch"));
    expect(await opened.client.ended(id)).toMatchObject({
      state: "failed",
      attempts: 1,
      error: { code: "no_media", retryable: false },
    });
  });

  it("is canceled within a second of the order, with its parts gone", async () => {
    const opened = await open(merge(film.resources), slowly);
    const { id } = await opened.client.post(opened.site.url(film.entry));
    await opened.client.until(id, ({ progress }) => (progress?.downloaded_bytes ?? 0) > 0);
    const parts = join(dataDir, "parts", id);
    expect(existsSync(parts)).toBe(true);
    expect(await opened.client.order("POST", id, "/cancel")).toBe(200);
    await expect.poll(() => existsSync(parts), { timeout: 1_000, interval: 20 }).toBe(false);
    expect(await opened.client.ended(id)).toMatchObject({ state: "canceled", file: null });
  });

  it("goes on after a restart without a new attempt, and fetches nothing twice", async () => {
    const opened = await open(merge(film.resources), slowly);
    const { id } = await opened.client.post(opened.site.url(film.entry));
    await opened.client.until(id, ({ progress }) => (progress?.downloaded_bytes ?? 0) > 0);
    expect(await service!.end("SIGTERM")).toEqual({ code: 0, signal: null });
    const again = await start();
    const task = await again.ended(id);
    expect(task).toMatchObject({ state: "succeeded", attempts: 1 });
    const bytes = Buffer.from(await (await again.file(id)).arrayBuffer());
    expect(bytes.equals(film.resources.get(film.entry)!.body)).toBe(true);
    expect(opened.site.asked.at(-1)?.range).toMatch(/^bytes=[1-9]\d*-$/);
  });

  it("is gone with its file once it is deleted", async () => {
    const opened = await open(film.resources);
    const { id } = await opened.client.post(opened.site.url(film.entry));
    await opened.client.ended(id);
    expect(await opened.client.order("DELETE", id)).toBe(204);
    expect((await opened.client.file(id)).status).toBe(404);
    expect(readdirSync(join(dataDir, "files"))).toEqual([]);
  });
});
