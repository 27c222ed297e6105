import { readFileSync } from "node:fs";
import type { IncomingHttpHeaders } from "node:http";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { layWebm, mpd } from "../media/dash.ts";
import { type Resource, resource } from "../media/resources.ts";
import type { Site } from "../media/site.ts";
import { startTestSite } from "../media/test-site.ts";
import { audioInput, ffmpeg, missing, videoInput } from "../remux/mp4-media.ts";
import { startHalvesSite, startHeldSite } from "./held-site.ts";
import { SharedService } from "./shared-service.ts";
import { framesOf, packetsOf, save, type StreamReader } from "./stream-client.ts";

const front = "-movflags +faststart";
const fragmented = "-movflags +frag_keyframe+empty_moov+default_base_moof";
const video = "-c:v libx264 -g 25 -preset ultrafast";
const shared = new SharedService({ RETRY_BACKOFF_MS: "1" });

function makeFile(name: string, options: string, type = "video/mp4"): Resource {
  const path = join(shared.dataDir, name);
  ffmpeg(`${options.trim()} ${path}`);
  return resource(type, readFileSync(path));
}

const film = (name: string, flags: string): Resource =>
  makeFile(name, `${videoInput(8)} ${audioInput(8)} ${video} -c:a aac -b:a 96k ${flags}`);

const inOneFile = (kind: string, ext = "mp4") => `<BaseURL>${kind}.${ext}</BaseURL><SegmentBase/>`;

/** Returns the MPD of video and audio that are addressed so. */
function presentationOf(ext: "mp4" | "webm", codecs: readonly string[], addressing: readonly string[]): Resource {
  const sets = ["video", "audio"].map((kind, i) => {
    return { id: kind, mimeType: `${kind}/${ext}`, codecs: codecs[i]!, addressing: addressing[i]! };
  });
  return resource("application/dash+xml", Buffer.from(mpd([sets], 8)));
}

/** A presentation of one file of each kind, or of video that is listed otherwise. */
function presentation(listedVideo = inOneFile("video")): Map<string, Resource> {
  return new Map([
    ["film.mpd", presentationOf("mp4", ["avc1.42c01e", "mp4a.40.2"], [listedVideo, inOneFile("audio")])],
    ["video.mp4", makeFile("video.mp4", `${videoInput(8)} ${video} ${fragmented}`)],
    ["audio.mp4", makeFile("audio.mp4", `${audioInput(8)} -c:a aac ${front}`)],
  ]);
}

/** A presentation of segments of video, one a second, and one file of audio. */
function inSegments(): Map<string, Resource> {
  const urls = Array.from({ length: 8 }, (_, at) => `<SegmentURL media="${at}.m4s"/>`).join("");
  const all = presentation(`<SegmentList duration="1"><Initialization sourceURL="init.mp4"/>${urls}</SegmentList>`);
  const { body } = all.get("video.mp4")!;
  const starts = [...body.toString("latin1").matchAll(/moof/g)].map(({ index }) => index - 4);
  const piece = (from: number, to?: number) => resource("video/mp4", body.subarray(from, to));
  for (const [at, from] of starts.entries()) all.set(`${at}.m4s`, piece(from, starts[at + 1]));
  return all.set("init.mp4", piece(0, starts[0]));
}

const halvesOf = (resources: Map<string, Resource>) =>
  new Map(
    [...resources].filter(([path]) => /\.(?:mp4|webm)$/.test(path)).map(([path, { body }]) => [path, body.length >> 1]),
  );

/** Expects that media of the task come while half of the files is held back, and that all that comes has the samples of the file. */
async function expectStreamed(resources: Map<string, Resource>, body: object, type: string): Promise<string> {
  const { site, release } = await startHalvesSite(resources, halvesOf(resources));
  const { id } = await shared.client.post(site.url([...resources.keys()][0]!), body);
  const reader = await shared.readStream(id);
  expect(reader.response.headers.get("content-type")).toBe(type);
  await reader.untilMedia();
  expect(await shared.client.get(id)).toMatchObject({ state: "running" });
  release();
  const file = await expectAll(reader, id, 1);
  expect(await shared.client.get(id)).not.toHaveProperty("warnings");
  return file;
}

/** Expects that the task succeeds, and that all that comes has the samples of its file, whose path it returns. */
async function expectAll(reader: StreamReader, id: string, attempts: number): Promise<string> {
  const streamed = save(join(shared.dataDir, "streamed"), await reader.all());
  expect(await shared.client.ended(id)).toMatchObject({ state: "succeeded", attempts });
  const file = await shared.saveFile(id);
  expect(presented(streamed)).toEqual(presented(file));
  return file;
}

/** Makes the site cut the first response with each file after half of it, once that is called, and refuse the rest three times: a run gives up at the fourth failure in a row. */
function cutHalves(site: Site, resources: Map<string, Resource>): () => void {
  const { promise: isCut, resolve: cut } = Promise.withResolvers<void>();
  for (const [path, half] of halvesOf(resources)) {
    const { type, body } = resources.get(path)!;
    let refused = 0;
    site.answer(path, async (response, serve, { headers }): Promise<unknown> => {
      // The page, and its first bytes.
      if (!isDownload(headers) || (headers.range !== undefined && headers["if-range"] === undefined)) return serve();
      if (headers["if-range"] !== undefined) return ++refused > 3 ? serve() : response.writeHead(503).end();
      response.writeHead(200, { "content-type": type, "content-length": body.length, etag: '"film"' });
      response.write(body.subarray(0, half));
      await isCut;
      return response.destroy();
    });
  }
  return cut;
}

/** Expects the same audio of a medium whose length is stated as of one whose is not, which is read once it is complete. */
async function expectSame(path: string, { type, body }: Resource): Promise<void> {
  const site = await startTestSite(new Map([[path, resource(type, body)]]));
  const made = [];
  for (const isStated of [true, false]) {
    site.answer(path, (response, serve, { headers }): unknown => {
      if (!isDownload(headers)) return serve();
      const length = isStated ? { "content-length": body.length } : {};
      return response.writeHead(200, { "content-type": type, ...length }).end(body);
    });
    const { id } = await shared.client.post(site.url(path), { audio_only: true, if_exists: "new" });
    const { state, error, file } = await shared.client.ended(id);
    const bytes = state === "succeeded" ? await (await shared.client.file(id)).bytes() : undefined;
    const frames = bytes && framesOf(save(join(shared.dataDir, "made"), bytes));
    made.push({ state, code: error?.code, frames, warnings: file?.warnings });
  }
  expect(made[0]).toEqual(made[1]);
}

/** What FFmpeg decodes of the priming of a stream, which its edit list hides, is before 0. */
function presented(path: string): Record<string, string[]> {
  const kinds = Object.entries(framesOf(path)).map(([kind, lines]) => [
    kind,
    lines.filter((line) => !line.startsWith("-")),
  ]);
  return Object.fromEntries(kinds);
}

describe.skipIf(missing("libx264"))("GET /tasks/{id}/stream of MP4 files that become another one", () => {
  it.each([
    ["with its index in front", front],
    ["of fragments", fragmented],
  ])("sends the audio of an MP4 %s while the rest of it is held back", async (_name, flags) => {
    const medium = film("film.mp4", flags);
    const file = await expectStreamed(new Map([["film.mp4", medium]]), { audio_only: true }, "audio/mp4");
    expect(presented(file)["audioSamples"]).toEqual(
      presented(save(join(shared.dataDir, "source"), medium.body))["audioSamples"],
    );
  });

  it("sends video and audio of two files while the rest of both is held back", async () => {
    const resources = presentation();
    const file = await expectStreamed(resources, {}, "video/mp4");
    const source = (name: string) => presented(save(join(shared.dataDir, "source"), resources.get(name)!.body));
    expect(presented(file)["videoSamples"]).toEqual(source("video.mp4")["videoSamples"]);
    expect(presented(file)["audioSamples"]).toEqual(source("audio.mp4")["audioSamples"]);
  });

  it("waits for the end of an MP4 whose index is there, and then sends its audio", async () => {
    const medium = film("film.mp4", "");
    const site = await startTestSite(new Map([["film.mp4", medium]]));
    const { id } = await shared.client.post(site.url("film.mp4"), { audio_only: true });
    const sent = await (await fetch(`${shared.service.url}/tasks/${id}/stream`)).bytes();
    expect(await shared.client.ended(id)).toMatchObject({ state: "succeeded", file: { mime_type: "audio/mp4" } });
    const samplesOf = (bytes: Uint8Array) => presented(save(join(shared.dataDir, "read"), bytes))["audioSamples"];
    expect(samplesOf(sent)).toEqual(samplesOf(medium.body));
  });

  it("holds the connection of a reader over a retry, and goes on at the same sample", async () => {
    const resources = new Map([["film.mp4", film("film.mp4", front)]]);
    const site = await startTestSite(resources);
    const cut = cutHalves(site, resources);
    const { id } = await shared.client.post(site.url("film.mp4"), { audio_only: true });
    const reader = await shared.readStream(id);
    await reader.untilMedia();
    cut();
    await expectAll(reader, id, 2);
  });

  it("holds the connection of a reader over a retry because of segments, which go with the file", async () => {
    const resources = inSegments();
    const site = await startTestSite(resources);
    const { promise: hasMedia, resolve: refuse } = Promise.withResolvers<void>();
    let asked = 0;
    site.answer("4.m4s", async (response, serve): Promise<unknown> => {
      await hasMedia;
      asked += 1;
      return asked > 4 ? serve() : response.writeHead(503).end();
    });
    const { id } = await shared.client.post(site.url("film.mpd"));
    const reader = await shared.readStream(id);
    await reader.untilMedia();
    refuse();
    await expectAll(reader, id, 2);
  });

  it("fails once one of two files cannot be fetched, while the rest of the other one is held back", async () => {
    const resources = presentation();
    const site = await startTestSite(resources);
    const { promise: hasMedia, resolve: cut } = Promise.withResolvers<void>();
    for (const [path, part] of [
      ["video.mp4", 0.3],
      ["audio.mp4", 0.6],
    ] as const) {
      const { type, body } = resources.get(path)!;
      site.answer(path, async (response, serve, { headers }): Promise<unknown> => {
        // The rest, also that of the run that reads the MPD again.
        if (headers["if-range"] !== undefined) return path === "audio.mp4" && response.writeHead(404).end();
        if (headers.range !== undefined) return serve();
        response.writeHead(200, { "content-type": type, "content-length": body.length, etag: '"file"' });
        response.write(body.subarray(0, body.length * part));
        await hasMedia;
        return path === "audio.mp4" && response.destroy();
      });
    }
    const { id } = await shared.client.post(site.url("film.mpd"));
    const reader = await shared.readStream(id);
    await reader.untilMedia();
    cut();
    await expect(reader.all()).rejects.toThrow("terminated");
    const { state, error } = await shared.client.ended(id);
    expect(state).toBe("failed");
    expect(error).toMatchObject({ code: "upstream_status", message: expect.stringContaining("audio.mp4") });
  });

  it("breaks off if the file is fetched again from its start, and makes the file of what came then", async () => {
    const first = film("film.mp4", front);
    const later = makeFile("later.mp4", `${videoInput(5)} ${audioInput(5)} ${video} -c:a aac -b:a 96k ${front}`);
    const site = await startTestSite(new Map([["film.mp4", later]]));
    const { promise: hasMedia, resolve: cut } = Promise.withResolvers<void>();
    let asked = 0;
    site.answer("film.mp4", (response, serve, { headers }): unknown => {
      asked += isDownload(headers) ? 1 : 0;
      if (!isDownload(headers) || asked > 1) return serve();
      response.writeHead(200, { "content-type": first.type, "content-length": first.body.length });
      response.write(first.body.subarray(0, first.body.length >> 1));
      return hasMedia.then(() => response.destroy());
    });
    const { id } = await shared.client.post(site.url("film.mp4"), { audio_only: true });
    const reader = await shared.readStream(id);
    await reader.untilMedia();
    cut();
    await expect(reader.all()).rejects.toThrow("terminated");
    expect(await shared.client.ended(id)).toMatchObject({ state: "succeeded", attempts: 1 });
    const file = await shared.saveFile(id);
    const source = save(join(shared.dataDir, "source"), later.body);
    expect(presented(file)["audioSamples"]).toEqual(presented(source)["audioSamples"]);
  });

  const indexed = () => film("film.mp4", front).body;
  const withFragments = () => film("film.mp4", fragmented).body;
  it.each([
    ["has its index in front", indexed],
    ["has fragments", withFragments],
    ["has fragments, and an index that is damaged", () => withBadTable(withFragments())],
    ["has an index without samples, and no fragments", () => withoutFragments(withFragments())],
    ["has more fragments after the media of its index", () => Buffer.concat([indexed(), fragmentsOf(withFragments())])],
    ["has bytes after its last box that are none", () => Buffer.concat([indexed(), Buffer.alloc(100, 1)])],
    ["is one file after another", () => Buffer.concat([indexed(), indexed()])],
    ["lacks its end", () => indexed().subarray(0, -5_000)],
    ["lacks the end of its last fragment", () => withFragments().subarray(0, -2_000)],
    ["lists a sample that it does not have", () => withBadOffset(indexed())],
  ])("makes the same of an MP4 that %s, whether or not it could be read while it was fetched", async (_name, make) => {
    await expectSame("film.mp4", resource("video/mp4", make()));
  });
});

const webmVideo = "-c:v libvpx-vp9 -g 25 -deadline realtime -cpu-used 8 -b:v 100k";
const webmAudio = "-c:a libopus -b:a 64k";

const webmCodecs = ["vp9", "opus"];

const webmFile = (kind: "video" | "audio"): Resource => {
  const input = kind === "video" ? `${videoInput(8)} ${webmVideo}` : `${audioInput(8)} ${webmAudio}`;
  return makeFile(`${kind}.webm`, `${input} -cluster_time_limit 1000`, `${kind}/webm`);
};

const webmFiles = (): Map<string, Resource> =>
  new Map([
    ["film.mpd", presentationOf("webm", webmCodecs, [inOneFile("video", "webm"), inOneFile("audio", "webm")])],
    ["video.webm", webmFile("video")],
    ["audio.webm", webmFile("audio")],
  ]);

const webmSegments = () => layWebm(webmFile("video").body, webmFile("audio").body, 8);

/** States that the Segment of a file or an init section ends so many bytes after it. */
function withEnd(bytes: Buffer, later = 0): Buffer {
  const size = bytes.indexOf("18538067", 0, "hex") + 4;
  bytes.writeUIntBE(bytes.length + later - size - 8, size + 2, 6);
  bytes.writeUInt16BE(0x0100, size);
  return bytes;
}

const webmFilm = (flags = ""): Resource =>
  makeFile("film.webm", `${videoInput(8)} ${audioInput(8)} ${webmVideo} ${webmAudio} ${flags}`, "video/webm");

function webmWithText(): Resource {
  const path = save(join(shared.dataDir, "own.vtt"), Buffer.from("WEBVTT\n\n00:01.000 --> 00:02.000\nHello\n"));
  const inputs = `${videoInput(8)} ${audioInput(8)} -i ${path} -map 0 -map 1 -map 2`;
  return makeFile("text.webm", `${inputs} ${webmVideo} ${webmAudio} -c:s webvtt`, "video/webm");
}

const indexInFront = "-cues_to_front 1";
const withoutSizes = "-f webm -live 1";

describe.skipIf(missing("libvpx-vp9", "libopus"))(
  "GET /tasks/{id}/stream of WebM files that become another one",
  () => {
    it("sends video and audio of two files while the rest of both is held back", async () => {
      const resources = webmFiles();
      const file = await expectStreamed(resources, {}, "video/webm");
      const source = (name: string) => presented(save(join(shared.dataDir, "source"), resources.get(name)!.body));
      expect(presented(file)["videoSamples"]).toEqual(source("video.webm")["videoSamples"]);
      expect(presented(file)["audioSamples"]).toEqual(source("audio.webm")["audioSamples"]);
    });

    it("sends video and audio in segments while all but the first of each are held back", async () => {
      const { site, release } = await startHeldSite({ resources: webmSegments() });
      const { id } = await shared.client.post(site.url("film.mpd"));
      const reader = await shared.readStream(id);
      expect(reader.response.headers.get("content-type")).toBe("video/webm");
      await reader.untilMedia();
      expect(await shared.client.get(id)).toMatchObject({ state: "running" });
      release();
      await expectAll(reader, id, 1);
    });

    it("comes to the end of segments after that of the Segment that their init section states", async () => {
      const resources = webmSegments();
      const { type, body } = resources.get("audio/init.webm")!;
      const site = await startTestSite(resources.set("audio/init.webm", { type, body: withEnd(body) }));
      const { id } = await shared.client.post(site.url("film.mpd"));
      const { state, file } = await shared.client.ended(id);
      expect(state).toBe("succeeded");
      expect(file?.warnings?.map(({ code }) => code)).toEqual(["duration_differs"]);
    });

    it.each([
      ["has its index in front", indexInFront],
      ["states no sizes", withoutSizes],
    ])("sends the audio of a WebM that %s while the rest of it is held back", async (_name, flags) => {
      const resources = new Map([["film.webm", webmFilm(flags)]]);
      const { site, release } = await startHalvesSite(resources, halvesOf(resources));
      const { id } = await shared.client.post(site.url("film.webm"), { audio_only: true });
      const reader = await shared.readStream(id);
      expect(reader.response.headers.get("content-type")).toBe("audio/webm");
      await reader.untilMedia();
      expect(await shared.client.get(id)).toMatchObject({ state: "running" });
      release();
      const streamed = save(join(shared.dataDir, "streamed"), await reader.all());
      expect(await shared.client.ended(id)).toMatchObject({ state: "succeeded", file: { mime_type: "audio/ogg" } });
      const file = await shared.saveFile(id);
      const source = save(join(shared.dataDir, "source"), resources.get("film.webm")!.body);
      expect(packetsOf(streamed)).toEqual(packetsOf(source));
      expect(packetsOf(file)).toEqual(packetsOf(source));
    });

    it("sends the audio of a WebM whose first bytes do not have its tracks", async () => {
      const { type, body } = webmFilm();
      const site = await startTestSite(new Map([["film.webm", { type, body }]]));
      const [begun, sent] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const parts = [body.subarray(0, 20), body.subarray(20, body.length >> 1), body.subarray(body.length >> 1)];
      site.answer("film.webm", async (response, serve, { headers }): Promise<unknown> => {
        if (!isDownload(headers)) return serve();
        response.writeHead(200, { "content-type": type, "content-length": body.length });
        response.write(parts[0]);
        await begun.promise;
        response.write(parts[1]);
        await sent.promise;
        return response.end(parts[2]);
      });
      const { id } = await shared.client.post(site.url("film.webm"), { audio_only: true });
      await shared.client.until(id, ({ progress }) => (progress?.downloaded_bytes ?? 0) > 0);
      begun.resolve();
      const reader = await shared.readStream(id);
      await reader.untilMedia();
      expect(await shared.client.get(id)).toMatchObject({ state: "running" });
      sent.resolve();
      expect(await shared.client.ended(id)).toMatchObject({ state: "succeeded" });
    });

    it("holds the connection of a reader over a retry, and goes on at the same sample", async () => {
      const resources = webmFiles();
      const site = await startTestSite(resources);
      const cut = cutHalves(site, resources);
      const { id } = await shared.client.post(site.url("film.mpd"));
      const reader = await shared.readStream(id);
      await reader.untilMedia();
      cut();
      await expectAll(reader, id, 2);
    });

    it("breaks off if a file is fetched again from its start, and makes the file of what came then", async () => {
      const resources = webmFiles();
      const { type, body } = webmFile("audio");
      const later = makeFile("later.webm", `${audioInput(5)} ${webmAudio}`, "audio/webm");
      const site = await startTestSite(resources.set("audio.webm", later));
      const { promise: hasMedia, resolve: cut } = Promise.withResolvers<void>();
      let asked = 0;
      site.answer("audio.webm", (response, serve): unknown => {
        asked += 1;
        if (asked > 1) return serve();
        response.writeHead(200, { "content-type": type, "content-length": body.length });
        response.write(body.subarray(0, body.length >> 1));
        return hasMedia.then(() => response.destroy());
      });
      const { id } = await shared.client.post(site.url("film.mpd"));
      const reader = await shared.readStream(id);
      await reader.untilMedia();
      cut();
      await expect(reader.all()).rejects.toThrow("terminated");
      expect(await shared.client.ended(id)).toMatchObject({ state: "succeeded", attempts: 1 });
      const file = await shared.saveFile(id);
      const source = save(join(shared.dataDir, "source"), later.body);
      expect(presented(file)["audioSamples"]).toEqual(presented(source)["audioSamples"]);
    });

    const indexed = () => webmFilm(indexInFront).body;
    it.each([
      ["has its index in front", indexed],
      ["states no sizes", () => webmFilm(withoutSizes).body],
      ["lacks its end", () => indexed().subarray(0, -5_000)],
      ["ends before it says, after a whole block", () => withEnd(indexed(), 50_000)],
      ["has bytes after its last element that are none", () => Buffer.concat([indexed(), Buffer.alloc(100)])],
      ["is one file after another", () => Buffer.concat([indexed(), indexed()])],
      ["has a damaged block", () => withBadBlock(indexed())],
      ["has subtitles", () => webmWithText().body],
    ])(
      "makes the same of a WebM that %s, whether or not it could be read while it was fetched",
      async (_name, make) => {
        await expectSame("film.webm", resource("video/webm", make()));
      },
    );
  },
);

/** Pages are read in any encoding. */
const isDownload = (headers: IncomingHttpHeaders): boolean => headers["accept-encoding"] === "identity";

/** What follows the index. */
function fragmentsOf(file: Buffer): Buffer {
  return file.subarray(file.indexOf("moof", 0, "latin1") - 4);
}

/** What is before them. */
const withoutFragments = (file: Buffer): Buffer => file.subarray(0, file.indexOf("moof", 0, "latin1") - 4);

/** States more chunks of the first track than it lists. */
function withBadTable(file: Buffer): Buffer {
  file.writeUInt32BE(1, file.indexOf("stco", 0, "latin1") + 8);
  return file;
}

/** Moves the first chunk of the first track behind the end of the file. */
function withBadOffset(file: Buffer): Buffer {
  const at = file.indexOf("stco", 0, "latin1");
  file.writeUInt32BE(file.length, at + 12);
  return file;
}

/** Makes a block in the middle end behind the file. */
function withBadBlock(file: Buffer): Buffer {
  const at = file.indexOf("1f43b675", file.length >> 1, "hex");
  file[file.indexOf(0xa3, at + 12) + 1] = 0x1f;
  return file;
}
