import { hash } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readMediaFixtures } from "../media/media-fixtures.ts";
import { pageAbout, pageStyles } from "../media/pages.ts";
import type { Site } from "../media/site.ts";
import { startTestSite } from "../media/test-site.ts";
import { SharedService } from "./shared-service.ts";

const fixtures = readMediaFixtures();
const film = fixtures.get("an MP4 with its index in front")!;
const stream = fixtures.get("HLS in fMP4 with sound of two languages apart")!;
const filmBytes = film.resources.get(film.entry)!.body;

const shared = new SharedService({ MIN_FREE_BYTES: "0" });

/** Starts a download of the film that takes a minute; resolves once the first bytes are stored. */
async function startSlowDownload(): Promise<{ site: Site; id: string }> {
  const site = await startTestSite(new Map(film.resources), { bytesPerSecond: filmBytes.length / 60 });
  const { id } = await shared.client.post(site.url(film.entry));
  await shared.client.until(id, ({ progress }) => (progress?.downloaded_bytes ?? 0) > 0);
  return { site, id };
}

describe("a task", () => {
  it.each(pageStyles)("downloads the film of a page that names it by %s", async (style) => {
    const site = await startTestSite(new Map(film.resources));
    site.resources.set("watch", pageAbout(film, site.url(film.entry), style));
    const { id } = await shared.client.post(site.url("watch"));
    const task = await shared.client.ended(id);
    expect(task).toMatchObject({ state: "succeeded", attempts: 1, error: null });
    const response = await shared.client.file(id);
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
    expect(readdirSync(join(shared.dataDir, "files"))).toEqual([id]);
  });

  it("takes the requested quality and the audio that belongs to it", async () => {
    const site = await startTestSite(new Map(stream.resources));
    const { id } = await shared.client.post(site.url(stream.entry), { max_height: 60 });
    const task = await shared.client.ended(id);
    expect(task.file).toMatchObject({ width: 96, height: 54, mime_type: "video/mp4" });
    expect(site.asked.some(({ path }) => path.startsWith("en/"))).toBe(true);
  });

  it("fails at once, without a retry, if the page has no media", async () => {
    const site = await startTestSite(new Map());
    site.answer("watch", (response) =>
      response.writeHead(200, { "content-type": "text/html" }).end("<title>Nothing</title>"),
    );
    const { id } = await shared.client.post(site.url("watch"));
    expect(await shared.client.ended(id)).toMatchObject({
      state: "failed",
      attempts: 1,
      error: { code: "no_media", retryable: false },
    });
  });

  it("ends when it is canceled and leaves no parts", async () => {
    const { id } = await startSlowDownload();
    const parts = join(shared.dataDir, "parts", id);
    expect(existsSync(parts)).toBe(true);
    expect(await shared.client.request("POST", id, "/cancel")).toBe(200);
    await expect.poll(() => existsSync(parts)).toBe(false);
    expect(await shared.client.ended(id)).toMatchObject({ state: "canceled", file: null });
  });

  it("resumes after a restart in the same attempt, and fetches nothing twice", async () => {
    const { site, id } = await startSlowDownload();
    expect(await shared.end("SIGTERM")).toEqual({ code: 0, signal: null });
    site.bytesPerSecond = Infinity;
    await shared.restart();
    expect(await shared.client.ended(id)).toMatchObject({ state: "succeeded", attempts: 1 });
    expect(filmBytes.equals(await (await shared.client.file(id)).bytes())).toBe(true);
    expect(site.asked.at(-1)?.range).toMatch(/^bytes=[1-9]\d*-$/);
  });

  it("has no file any more once it is deleted", async () => {
    const site = await startTestSite(new Map(film.resources));
    const { id } = await shared.client.post(site.url(film.entry));
    await shared.client.ended(id);
    expect(await shared.client.request("DELETE", id)).toBe(204);
    expect((await shared.client.file(id)).status).toBe(404);
    expect(readdirSync(join(shared.dataDir, "files"))).toEqual([]);
  });
});
