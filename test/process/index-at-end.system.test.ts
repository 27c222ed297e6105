import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { type Resource, resource } from "../media/resources.ts";
import type { Answer, Site } from "../media/site.ts";
import { startTestSite } from "../media/test-site.ts";
import { audioInput, ffmpeg, missing, videoInput } from "../remux/mp4-media.ts";
import { SharedService } from "./shared-service.ts";
import { framesOf, save, type StreamReader } from "./stream-client.ts";

const films = new Map<string, Resource>();
const shared = new SharedService({ RETRY_BACKOFF_MS: "1" });

beforeAll(async () => {
  const video = `${videoInput(8)} -vf noise=alls=20:allf=t -c:v libx264 -g 25 -preset ultrafast`;
  const noise = "-f lavfi -i anoisesrc=d=30:seed=1 -c:a aac -b:a 256k";
  for (const [name, type, options] of [
    ["film.mp4", "video/mp4", `${audioInput(8)} ${video} -c:a aac`],
    ["film.mov", "video/quicktime", `${audioInput(8)} ${video} -c:a pcm_s16le`],
    ["tone.m4a", "audio/mp4", noise],
  ] as const) {
    const path = join(shared.dataDir, name);
    ffmpeg(`${options} ${path}`);
    films.set(name, resource(type, readFileSync(path)));
  }
  films.set("long.mp4", resource("video/mp4", withLongIndex(films.get("film.mp4")!.body)));
});

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

/** Returns the film with an index whose size has 64 bits (ISO/IEC 14496-12 §4.2.2), after media with room at their end. */
function withLongIndex(film: Buffer): Buffer {
  const at = film.lastIndexOf("moov") - 4;
  const media = Buffer.concat([film.subarray(0, at), Buffer.alloc(8)]);
  const sizeAt = media.indexOf("mdat") - 4;
  media.writeUInt32BE(media.readUInt32BE(sizeAt) + 8, sizeAt);
  const header = Buffer.from("\0\0\0\u0001moov\0\0\0\0\0\0\0\0", "latin1");
  header.writeUInt32BE(film.readUInt32BE(at) + 8, 12);
  return Buffer.concat([media, header, film.subarray(at + 8)]);
}

interface Download {
  site: Site;
  id: string;
  reader: StreamReader;
  /** The film. */
  body: Buffer;
}

/** Opens the stream of a film that comes slowly; `answer` answers requests for a part of it. */
async function openSlowly(name: string, answer?: Answer, options = {}): Promise<Download> {
  const { type, body } = films.get(name)!;
  const site = await startTestSite(new Map([[name, { type, body, etag: '"film"' }]]), { bytesPerSecond: 100_000 });
  site.answer(name, (response, serve, request) => {
    const isPart = /^bytes=[1-9]/.test(request.headers.range ?? "") && request.headers["if-range"] === undefined;
    return isPart && answer ? answer(response, serve, request) : serve();
  });
  const { id } = await shared.client.post(site.url(name), options);
  return { site, id, reader: await shared.readStream(id), body };
}

/** Opens the stream of the film that comes slowly, until `cut` is called; `answerRest` answers requests for the rest. */
async function openCut(answerRest: Answer, options = {}): Promise<Download & { cut: () => void }> {
  const { body, type } = films.get("film.mp4")!;
  const site = await startTestSite(new Map([["film.mp4", resource(type, body)]]), { bytesPerSecond: 100_000 });
  const { promise: isCut, resolve: cut } = Promise.withResolvers<void>();
  site.answer("film.mp4", (response, serve, request) => {
    if (request.headers["if-range"] !== undefined) return answerRest(response, serve, request);
    void isCut.then(() => response.destroy());
    return serve();
  });
  const { id } = await shared.client.post(site.url("film.mp4"), options);
  return { site, id, reader: await shared.readStream(id), body, cut };
}

/** Refuses three requests: a run gives up at the fourth failure in a row. */
function refuseThrice(): Answer {
  let refused = 0;
  return (response, serve) => (++refused > 3 ? serve() : response.writeHead(503).end());
}

/** Sends a body from the byte on that is asked for; the site does not count it as sent. */
const sendRestOf =
  (body: Buffer): Answer =>
  (response, _serve, { headers }) => {
    const start = Number(/\d+/.exec(headers.range!));
    const range = `bytes ${start}-${body.length - 1}/${body.length}`;
    response.writeHead(206, { etag: '"film"', "content-range": range }).end(body.subarray(start));
  };

/** Expects that the task succeeds with the file as published, and that what came has its frames. */
async function expectAll({ site, id, reader, body }: Download, attempts = 1): Promise<void> {
  site.bytesPerSecond = Infinity;
  const all = await reader.all();
  expect(all.length).toBe(Number(reader.response.headers.get("content-length")));
  expect(await shared.client.ended(id)).toMatchObject({ state: "succeeded", attempts, file: { sha256: sha256(body) } });
  const [streamed, published] = [
    save(join(shared.dataDir, "streamed"), all),
    save(join(shared.dataDir, "source"), body),
  ];
  expect(framesOf(streamed)).toEqual(framesOf(published));
}

function sendOtherEnd(): Answer {
  const other = Buffer.from(films.get("film.mp4")!.body);
  other.write("x", other.length - 2);
  return sendRestOf(other);
}

/** Returns the samples of audio, and when they are presented, but for the priming, which an edit list hides. */
function audioOf(name: string, bytes: Uint8Array): string[] {
  const { audioSamples } = framesOf(save(join(shared.dataDir, name), bytes));
  return audioSamples!.filter((line) => !line.startsWith("-"));
}

describe.skipIf(missing("libx264"))("GET /tasks/{id}/stream of the audio of an MP4 whose index is at its end", () => {
  const audioOnly = { audio_only: true };

  it.each(["film.mp4", "long.mp4"])("sends that of %s before the rest has come", async (name) => {
    const { site, id, reader, body } = await openSlowly(name, undefined, audioOnly);
    expect(reader.response.headers.get("content-type")).toBe("audio/mp4");
    await reader.untilMedia();
    expect(await shared.client.get(id)).toMatchObject({ state: "running" });
    expect(site.sent).toBeLessThan(body.length);
    site.bytesPerSecond = Infinity;
    const sent = audioOf("streamed", await reader.all());
    expect(await shared.client.ended(id)).toMatchObject({
      state: "succeeded",
      attempts: 1,
      file: { mime_type: "audio/mp4" },
    });
    expect(await shared.client.get(id)).not.toHaveProperty("warnings");
    expect(sent).toEqual(audioOf("file", await (await shared.client.file(id)).bytes()));
    expect(sent).toEqual(audioOf("source", body));
  });

  it("goes on at the same sample after a retry", async () => {
    const { site, id, reader, body, cut } = await openCut(refuseThrice(), audioOnly);
    await reader.untilMedia();
    cut();
    site.bytesPerSecond = Infinity;
    expect(audioOf("streamed", await reader.all())).toEqual(audioOf("source", body));
    expect(await shared.client.ended(id)).toMatchObject({ state: "succeeded", attempts: 2 });
  });

  it("breaks off if the file has another end than the one that was fetched first, and makes the file of what it has", async () => {
    const { site, id, reader, body } = await openSlowly("film.mp4", sendOtherEnd(), audioOnly);
    await reader.untilMedia();
    site.bytesPerSecond = Infinity;
    await expect(reader.all()).rejects.toThrow("terminated");
    expect(await shared.client.ended(id)).toMatchObject({ state: "succeeded", attempts: 1 });
    expect(audioOf("file", await (await shared.client.file(id)).bytes())).toEqual(audioOf("source", body));
  });

  it("breaks off if the source fails for good", async () => {
    const { id, reader, cut } = await openCut((response) => response.writeHead(404).end(), audioOnly);
    await reader.untilMedia();
    cut();
    await expect(reader.all()).rejects.toThrow("terminated");
    expect(await shared.client.ended(id)).toMatchObject({ state: "failed" });
  });
});

describe.skipIf(missing("libx264"))("GET /tasks/{id}/stream of an MP4 whose index is at its end", () => {
  it.each(["film.mp4", "film.mov", "tone.m4a", "long.mp4"])(
    "sends the media of %s before the rest has come",
    async (name) => {
      const { site, id, reader, body } = await openSlowly(name);
      expect(reader.response.headers.get("content-type")).toBe(films.get(name)!.type);
      await reader.until(64 << 10);
      expect(await shared.client.get(id)).toMatchObject({ state: "running" });
      expect(site.sent).toBeLessThan(body.length);
      await expectAll({ site, id, reader, body });
    },
  );

  it("counts the end of the film once", async () => {
    const { type, body: film } = films.get("film.mp4")!;
    const tail = Buffer.concat([Buffer.from("\0\0\0\0free", "latin1"), Buffer.alloc(film.length / 2)]);
    tail.writeUInt32BE(tail.length);
    const body = Buffer.concat([film, tail]);
    films.set("tail.mp4", resource(type, body));
    const { site, id, reader } = await openSlowly("tail.mp4", sendRestOf(body));
    await reader.until(300_000);
    const { progress } = await shared.client.get(id);
    expect(progress!.downloaded_bytes).toBeGreaterThan(0);
    expect(progress!.downloaded_bytes).toBeLessThanOrEqual(site.sent);
    await expectAll({ site, id, reader, body });
  });

  it("needs no validator of the server", async () => {
    const { body, type } = films.get("tone.m4a")!;
    const site = await startTestSite(new Map([["tone.m4a", { type, body, etag: "" }]]), { bytesPerSecond: 100_000 });
    const { id } = await shared.client.post(site.url("tone.m4a"));
    const reader = await shared.readStream(id);
    await reader.until(64 << 10);
    expect(site.sent).toBeLessThan(body.length);
    await expectAll({ site, id, reader, body });
  });

  it("holds the connection of a reader over a retry, and goes on at the same byte", async () => {
    const { cut, ...download } = await openCut(refuseThrice());
    await download.reader.until(64 << 10);
    cut();
    await expectAll(download, 2);
  });

  it("breaks off if the file has another end than the one that was fetched first", async () => {
    const { site, id, reader, body } = await openSlowly("film.mp4", sendOtherEnd());
    await reader.until(64 << 10);
    site.bytesPerSecond = Infinity;
    await expect(reader.all()).rejects.toThrow("terminated");
    expect(await shared.client.ended(id)).toMatchObject({ state: "succeeded", file: { sha256: sha256(body) } });
  });

  it("goes on with the file although its server asks for a pause when the end is asked for as well", async () => {
    const { type, body } = films.get("film.mp4")!;
    const site = await startTestSite(new Map([["film.mp4", resource(type, body)]]), { bytesPerSecond: 100_000 });
    const { promise: isAsked, resolve: ask } = Promise.withResolvers<void>();
    site.answer("film.mp4", async (response, serve, { headers }) => {
      if (headers.range === undefined) {
        void isAsked.then(() => response.destroy());
        return serve();
      }
      site.bytesPerSecond = Infinity;
      if (headers["if-range"] !== undefined) return serve();
      response.writeHead(429, { "retry-after": "600" }).end(ask);
    });
    const { id } = await shared.client.post(site.url("film.mp4"));
    const reader = await shared.readStream(id);
    expect(body.equals(await reader.all())).toBe(true);
    expect(await shared.client.get(id)).toMatchObject({ state: "succeeded", attempts: 1 });
  });

  it.each([
    ["sends no parts", (response: ServerResponse) => void response.writeHead(416).end()],
    ["has no part of the file now", (response: ServerResponse) => void response.writeHead(404).end()],
  ])("waits for all of the file if its server %s, and then sends it as published", async (_name, answer) => {
    const { type, body } = films.get("film.mp4")!;
    const site = await startTestSite(new Map([["film.mp4", resource(type, body)]]), { bytesPerSecond: 100_000 });
    site.answer("film.mp4", (response, serve, { headers }) => {
      if (!/^bytes=[1-9]/.test(headers.range ?? "")) return serve();
      site.bytesPerSecond = Infinity;
      return answer(response);
    });
    const { id } = await shared.client.post(site.url("film.mp4"));
    const reader = await shared.readStream(id);
    expect(reader.response.headers.get("accept-ranges")).toBe("bytes");
    expect(body.equals(await reader.all())).toBe(true);
    expect(await shared.client.get(id)).toMatchObject({ state: "succeeded", attempts: 1 });
  });
});
