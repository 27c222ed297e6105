import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { makeSharedFolder } from "../folder.ts";
import { type MediaFixture, readMediaFixtures } from "../media/media-fixtures.ts";
import { hasFfmpeg } from "../media/probe.ts";
import { type Resource, resource } from "../media/resources.ts";
import { startTestSite } from "../media/test-site.ts";
import { audioInput, ffmpeg, missing, videoInput } from "../remux/mp4-media.ts";
import { startHalfSite, startHeldSite } from "./held-site.ts";
import { SharedService } from "./shared-service.ts";
import { downloadsOf } from "./child-processes.ts";
import { framesOf, openStreamReader, packetsOf, runCurl, save } from "./stream-client.ts";

const fixtures = readMediaFixtures();
const shared = new SharedService({ RETRY_BACKOFF_MS: "1" });

function readAs(name: string, path: string): Resource {
  return resource(name.endsWith(".m3u8") ? "application/vnd.apple.mpegurl" : "video/mp4", readFileSync(path));
}

/** Returns the paths of the last segments of all tracks. */
function lastSegments({ resources }: MediaFixture): string[] {
  const segments = [...resources.keys()].filter((path) => /\d+\.\w+$/.test(path));
  return [...Map.groupBy(segments, (path) => path.replace(/\d+\.\w+$/, "")).values()].map((paths) => paths.at(-1)!);
}

describe("GET /tasks/{id}/stream", () => {
  it.skipIf(!hasFfmpeg).each([
    ["HLS in MPEG-TS with B-frames", "video/mp4"],
    ["HLS in fMP4 with both tracks in one", "video/mp4"],
    ["HLS in fMP4 with sound of two languages apart", "video/mp4"],
    ["HLS of packed AAC alone", "audio/mp4"],
    ["HLS in MPEG-TS without sound", "video/mp4"],
    ["DASH with a SegmentTimeline", "video/mp4"],
    ["DASH with $Number$ and no timeline", "video/mp4"],
    ["DASH of two Periods", "video/mp4"],
  ])("sends the first segment of %s while the others are held back", async (name, type) => {
    const fixture = fixtures.get(name)!;
    const { site, release } = await startHeldSite(fixture);
    const { id } = await shared.client.post(site.url(fixture.entry));
    const reader = await shared.readStream(id);
    expect(reader.response.status).toBe(200);
    expect(reader.response.headers.get("content-type")).toBe(type);
    await reader.untilMedia();
    expect(await shared.client.get(id)).toMatchObject({ state: "running" });
    release();
    const streamed = save(join(shared.dataDir, "streamed"), await reader.all());
    expect(await shared.client.ended(id)).toMatchObject({ state: "succeeded" });
    const file = await shared.saveFile(id);
    expect(framesOf(streamed)).toEqual(framesOf(file));
  });

  it.skipIf(missing("libx264"))(
    "sends the times of the file if pictures are presented before they are decoded",
    async () => {
      const folder = makeSharedFolder();
      const segments = "-f hls -hls_time 1 -hls_playlist_type vod -hls_segment_type fmp4";
      const early = "-hls_segment_options movflags=+negative_cts_offsets+frag_custom+dash+delay_moov";
      ffmpeg(
        `${videoInput(4)} ${audioInput(4)} -c:v libx264 -bf 2 -b_strategy 0 -g 25 -c:a aac ${segments} ${early} ${folder}/index.m3u8`,
      );
      const resources = new Map(readdirSync(folder).map((name) => [name, readAs(name, join(folder, name))]));
      const { site, release } = await startHeldSite({
        ...fixtures.get("HLS in fMP4 with both tracks in one")!,
        resources,
      });
      const { id } = await shared.client.post(site.url("index.m3u8"));
      const reader = await shared.readStream(id);
      await reader.untilMedia();
      release();
      const streamed = save(join(shared.dataDir, "streamed"), await reader.all());
      const file = await shared.saveFile(id);
      expect(framesOf(streamed)).toEqual(framesOf(file));
    },
  );

  it.each([
    ["an MP4 with its index in front", "video/mp4"],
    ["a WebM of VP9 and Opus", "video/webm"],
    ["a Matroska file", "video/x-matroska"],
    ["an MP3", "audio/mpeg"],
    ["an Ogg of Vorbis", "audio/ogg"],
  ])("sends %s as it comes", async (name, type) => {
    const fixture = fixtures.get(name)!;
    await expectSentAsItComes(fixture.entry, resource(type, fixture.resources.get(fixture.entry)!.body));
  });

  it.skipIf(missing("flv", "mpeg4", "mpeg2video", "wmv2", "libtheora", "flac")).each([
    ["film.flv", "-c:v flv", "video/x-flv"],
    ["film.avi", "-c:v mpeg4", "video/x-msvideo"],
    ["film.mpg", "-c:v mpeg2video", "video/mpeg"],
    ["film.wmv", "-c:v wmv2", "video/x-ms-wmv"],
    ["film.ogv", "-c:v libtheora", "video/ogg"],
    ["tone.flac", "-vn -c:a flac", "audio/flac"],
    ["tone.wav", "-vn", "audio/wav"],
    ["tone.aiff", "-vn", "audio/aiff"],
    ["tone.au", "-vn", "audio/basic"],
    ["tone.aac", "-vn -c:a aac", "audio/aac"],
  ])("sends %s as it comes", async (name, codecs, type) => {
    const path = join(shared.dataDir, name);
    ffmpeg(`${videoInput(4)} ${audioInput(4)} ${codecs} ${path}`);
    await expectSentAsItComes(name, resource(type, readFileSync(path)));
  });

  async function expectSentAsItComes(entry: string, medium: Resource): Promise<void> {
    const { body, type } = medium;
    const half = Math.floor(body.length / 2);
    const { site, release } = await startHalfSite({ entry, resources: new Map([[entry, medium]]) }, half);
    const { id } = await shared.client.post(site.url(entry));
    const reader = await shared.readStream(id);
    expect(reader.response.headers.get("content-type")).toBe(type);
    await reader.until(half);
    expect(await shared.client.get(id)).toMatchObject({ state: "running" });
    release();
    expect(body.equals(await reader.all())).toBe(true);
    expect(await shared.client.ended(id)).toMatchObject({ file: { name: entry, mime_type: type } });
  }

  it("sends an MP3 as it comes whose tags have a picture of more bytes than come first", async () => {
    const { entry, resources } = fixtures.get("an MP3")!;
    const tag = Buffer.alloc(10 + 6_000);
    // ID3v2.4 "Main Structure" §3.1: 7 bits of the size in each byte.
    tag.write("ID3\x04", "latin1");
    tag.writeUInt16BE(((6_000 >> 7) << 8) | (6_000 & 0x7f), 8);
    const body = Buffer.concat([tag, resources.get(entry)!.body]);
    const half = body.length >> 1;
    const site = await startTestSite(new Map([[entry, resource("audio/mpeg", body)]]));
    const [hasFirst, hasHalf] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    site.answer(entry, async (response, serve, { headers }) => {
      if (headers.range !== undefined) return serve();
      response.writeHead(200, { "content-type": "audio/mpeg", "content-length": body.length });
      response.write(body.subarray(0, 4_000));
      await hasFirst.promise;
      response.write(body.subarray(4_000, half));
      await hasHalf.promise;
      response.end(body.subarray(half));
    });
    const { id } = await shared.client.post(site.url(entry));
    await shared.client.until(id, ({ progress }) => (progress?.downloaded_bytes ?? 0) > 0);
    hasFirst.resolve();
    const reader = await shared.readStream(id);
    await reader.until(half);
    hasHalf.resolve();
    expect(body.equals(await reader.all())).toBe(true);
  });

  it.skipIf(!hasFfmpeg)(
    "sends the audio alone of a file that seems to be audio, but has video, if only audio is wanted",
    async () => {
      const { entry, resources } = fixtures.get("a WebM of VP9 and Opus")!;
      const { body } = resources.get(entry)!;
      const seeming = new Map([["film.weba", resource("audio/webm", body)]]);
      const { site, release } = await startHalfSite({ entry: "film.weba", resources: seeming }, body.length >> 1);
      const { id } = await shared.client.post(site.url("film.weba"), { audio_only: true });
      const reader = await shared.readStream(id);
      expect(reader.response.headers.get("content-type")).toBe("audio/webm");
      await reader.untilMedia();
      release();
      const streamed = save(join(shared.dataDir, "streamed"), await reader.all());
      const file = await shared.saveFile(id);
      expect(framesOf(streamed)["videoSamples"]).toEqual([]);
      expect(packetsOf(streamed)).toEqual(packetsOf(file));
    },
  );

  it("says the type of a stream, and sends the file of a task that has succeeded, with ranges", async () => {
    const fixture = fixtures.get("HLS in MPEG-TS with B-frames")!;
    const { site, release } = await startHeldSite(fixture);
    const { id } = await shared.client.post(site.url(fixture.entry));
    const url = `${shared.service.url}/tasks/${id}/stream`;
    const head = await fetch(url, { method: "HEAD" });
    expect([head.status, head.headers.get("content-type")]).toEqual([200, "video/mp4"]);
    expect(head.headers.get("content-disposition")).toContain('filename="index.mp4"');
    release();
    await shared.client.ended(id);
    const part = await fetch(url, { headers: { range: "bytes=0-9" } });
    expect([part.status, (await part.bytes()).length]).toEqual([206, 10]);
    // What has come of the stream is no part of the file.
    expect((await fetch(url, { headers: { range: "bytes=10-" } })).status).toBe(412);
  });

  it("breaks off if the source dies, whichever client reads, and tells those that come later why", async () => {
    const fixture = fixtures.get("HLS in MPEG-TS with B-frames")!;
    const { site, release } = await startHeldSite(fixture);
    site.answer("ts/4.ts", (response) => response.writeHead(404).end());
    const { id } = await shared.client.post(site.url(fixture.entry));
    const url = `${shared.service.url}/tasks/${id}/stream`;
    const reader = await openStreamReader(url);
    await reader.untilMedia();
    const curl = runCurl(url);
    await curl.started;
    release();
    await expect(reader.all()).rejects.toThrow("terminated");
    // Reset: that a connection merely ends between two fragments, ffmpeg takes for the end of the film.
    expect(await curl.exitCode).toBe(56);
    const task = await shared.client.ended(id);
    expect(task.state).toBe("failed");
    const later = await fetch(url);
    expect(later.status).toBe(502);
    expect(await later.json()).toMatchObject({ code: task.error!.code });
  });

  it.skipIf(!hasFfmpeg)("holds the connection of a reader over a retry, and goes on at the same sample", async () => {
    const fixture = fixtures.get("HLS in MPEG-TS with B-frames")!;
    const { site, release } = await startHeldSite(fixture);
    let asked = 0;
    // A run gives up at the fourth failure in a row.
    site.answer("ts/4.ts", (response, serve) => ((asked += 1) > 4 ? serve() : response.writeHead(503).end()));
    const { promise: isFollowed, resolve: endHold } = Promise.withResolvers<void>();
    site.answer("ts/5.ts", (_response, serve) => isFollowed.then(serve));
    const { id } = await shared.client.post(site.url(fixture.entry));
    const reader = await shared.readStream(id);
    await reader.untilMedia();
    release();
    // The first run has four fragments of each track, and what is in front of them.
    await reader.untilMedia(9);
    endHold();
    const streamed = save(join(shared.dataDir, "streamed"), await reader.all());
    expect(await shared.client.ended(id)).toMatchObject({ state: "succeeded", attempts: 2 });
    const file = await shared.saveFile(id);
    expect(framesOf(streamed)).toEqual(framesOf(file));
  });

  it.skipIf(!hasFfmpeg)(
    "breaks off if the task is deleted or its worker is killed; the next request gets what the task that is tried again makes",
    async () => {
      const fixture = fixtures.get("HLS in MPEG-TS with B-frames")!;
      const { site, release } = await startHeldSite(fixture);
      const deleted = await shared.client.post(site.url(fixture.entry));
      const reader = await shared.readStream(deleted.id);
      await reader.untilMedia();
      await shared.client.request("DELETE", deleted.id);
      await expect(reader.all()).rejects.toThrow("terminated");
      const killed = await shared.client.post(site.url(fixture.entry));
      const second = await shared.readStream(killed.id);
      await second.untilMedia();
      for (const pid of downloadsOf(shared.service.process.pid!)) process.kill(pid, "SIGKILL");
      await expect(second.all()).rejects.toThrow("terminated");
      release();
      const next = await shared.readStream(killed.id);
      const streamed = save(join(shared.dataDir, "streamed"), await next.all());
      const { state, attempts } = await shared.client.ended(killed.id);
      expect(state).toBe("succeeded");
      // A run may have got the idle process, which was killed, too.
      expect(attempts).toBeGreaterThan(1);
      expect(framesOf(streamed)).toEqual(framesOf(await shared.saveFile(killed.id)));
    },
  );

  it("serves 50 readers, a slow one and a late one the same bytes, and lets the download end before the slow one", async () => {
    const fixture = fixtures.get("HLS in fMP4 with sound of two languages apart")!;
    const { site, release } = await startHeldSite(fixture);
    const { promise: isFollowed, resolve: endHold } = Promise.withResolvers<void>();
    for (const path of lastSegments(fixture)) site.answer(path, (_response, serve) => isFollowed.then(serve));
    const { id } = await shared.client.post(site.url(fixture.entry));
    const url = `${shared.service.url}/tasks/${id}/stream`;
    const slow = await openStreamReader(url);
    await slow.untilMedia();
    const others = await Promise.all(Array.from({ length: 50 }, () => openStreamReader(url)));
    release();
    await others[0]!.untilMedia(4);
    const late = await openStreamReader(url);
    endHold();
    const all = await Promise.all([late, ...others].map((reader) => reader.all()));
    expect(await shared.client.ended(id)).toMatchObject({ state: "succeeded" });
    const whole = await slow.all();
    expect(all.every((bytes) => bytes.equals(whole))).toBe(true);
  });

  it("breaks off if the service is killed, and goes on with the task at the next request after its restart", async () => {
    const fixture = fixtures.get("HLS in MPEG-TS with B-frames")!;
    const { site, release } = await startHeldSite(fixture);
    const request = () => `${shared.service.url}/download?url=${encodeURIComponent(site.url(fixture.entry))}`;
    const reader = await openStreamReader(request());
    await reader.untilMedia();
    const [task] = await shared.client.list();
    await shared.end("SIGKILL");
    await expect(reader.all()).rejects.toThrow("terminated");
    await shared.restart();
    const next = await openStreamReader(request());
    release();
    const streamed = await next.all();
    expect(next.response.headers.get("content-location")).toBe(`tasks/${task!.id}`);
    expect(streamed.subarray(0, reader.bytes.length).equals(reader.bytes)).toBe(true);
    expect(await shared.client.ended(task!.id)).toMatchObject({ state: "succeeded" });
  });
});
