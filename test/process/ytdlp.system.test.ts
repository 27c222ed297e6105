import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PageInfo } from "../../src/model/page-info.ts";
import { readMediaFixtures } from "../media/media-fixtures.ts";
import { readMedium } from "../media/rendition.ts";
import { hls, resource } from "../media/resources.ts";
import { type Site, startSite } from "../media/site.ts";
import { createVariant, installed, missing, type Variant } from "../resolvers/ytdlp/installed.ts";
import { childrenOf, isRunning } from "./child-processes.ts";
import { withPadding } from "./padded-film.ts";
import { openTaskClient, type TaskClient } from "./download-client.ts";
import { openStreamReader } from "./stream-client.ts";
import { collectLog, type LogLine, type ServiceProcess, startService } from "./service.ts";

const secret = "cookie-of-the-operator";
const fixtures = readMediaFixtures();
const film = fixtures.get("an MP4 with its index in front")!;
const dash = fixtures.get("DASH with a SegmentTimeline")!;
const files = fixtures.get("DASH of single files")!;

/** An extractor for a site on this machine; the film needs the cookie that the operator has given. */
const extractor = `
import re
from .common import InfoExtractor
from ..utils import ExtractorError
__all__ = ['OtterIE']

class OtterIE(InfoExtractor):
    _VALID_URL = r'(?P<site>http://127\\.0\\.0\\.1:\\d+)/otters/(?P<id>\\w+)'

    def _real_extract(self, url):
        site, video_id = self._match_valid_url(url).group('site', 'id')
        if video_id == 'list':
            entries = [self.url_result(f'{site}/otters/{n}', OtterIE, n, f'Otter {n}') for n in ('1', '2')]
            return self.playlist_result(entries, video_id, 'All otters')
        if video_id in ('dash', 'fragments'):
            mpd_url = f'{site}/main.mpd'
            if video_id == 'dash':
                formats = self._extract_mpd_formats(mpd_url, video_id)
            else:
                mpd = self._download_xml(mpd_url, video_id)
                formats = self._parse_mpd_formats(mpd, mpd_base_url=f'{site}/')
            return {'id': video_id, 'title': 'Otters', 'formats': formats}
        if video_id == 'texts':
            formats, subtitles = self._extract_mpd_formats_and_subtitles(f'{site}/texts.mpd', video_id)
            return {'id': video_id, 'title': 'Otters', 'formats': formats, 'subtitles': subtitles}
        if video_id == 'hls':
            formats, subtitles = self._extract_m3u8_formats_and_subtitles(f'{site}/main.m3u8', video_id, ext='mp4')
            return {'id': video_id, 'title': 'Otters', 'formats': formats, 'subtitles': subtitles}
        if video_id == 'chunks':
            options = {'http_chunk_size': 65536}
            formats = [
                {'url': f'{site}/video.mp4', 'vcodec': 'avc1.64000c', 'acodec': 'none', 'downloader_options': options},
                {'url': f'{site}/audio.mp4', 'vcodec': 'none', 'acodec': 'mp4a.40.2', 'downloader_options': options},
            ]
            return {'id': video_id, 'title': 'Otters', 'formats': formats}
        if video_id == 'late':
            formats = [{'url': f'{site}/late.mp4', 'ext': 'mp4', 'downloader_options': {'http_chunk_size': 65536}}]
            return {'id': video_id, 'title': 'Otters', 'formats': formats}
        if video_id == 'dQw4w9WgXcQ':
            subtitles = {'en': [{'url': f'{site}/en.vtt', 'ext': 'vtt'}]}
            video = {'url': f'{site}/film.mp4', 'ext': 'mp4', 'duration': 6, 'subtitles': subtitles}
            return {'id': video_id, 'extractor_key': 'Youtube', 'title': 'Otters', **video}
        if video_id == 'private':
            self.raise_login_required()
        if video_id == 'removed':
            raise ExtractorError('Video unavailable. Its uploader has removed it', expected=True)
        self._download_webpage(url, video_id)
        episode = {'series': 'All otters', 'season_number': 2, 'episode_number': 7}
        return {'id': video_id, 'title': 'Otters', 'url': f'{site}/film.mp4', 'ext': 'mp4', **episode}
`;

/** Makes the site refuse requests for more bytes than that. */
function answerLimited(path: string, limit: number): void {
  site.answer(path, async (response, serve, { headers }) => {
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? "") ?? [];
    if (last === undefined || Number(last) - Number(first) >= limit) response.writeHead(403).end();
    else await serve();
  });
}

const opened = new AsyncDisposableStack();
let variant: Variant;
let site: Site;
let service: ServiceProcess;
let client: TaskClient;
let log: LogLine[];

describe.skipIf(installed === undefined)(`the program with yt-dlp${missing}`, () => {
  beforeAll(async () => {
    const folder = mkdtempSync(join(tmpdir(), "unreel-"));
    opened.defer(() => rmSync(folder, { recursive: true }));
    variant = opened.use(createVariant({ extractors: { otter: extractor } }));
    site = opened.use(await startSite(new Map(dash.resources)));
    site.resources.set("otters/1", resource("text/html", "<title>Otters</title>"));
    site.resources.set("otters/private", resource("text/html", "<title>Log in</title>"));
    site.resources.set("otters/removed", resource("text/html", "<title>Removed</title>"));
    site.resources.set("film.mp4", film.resources.get(film.entry)!);
    for (const path of ["otters/1", "film.mp4"]) {
      site.answer(path, async (response, serve, { headers }) => {
        if (headers.cookie === `session=${secret}`) await serve();
        else response.writeHead(403).end();
      });
    }
    const cookies = join(folder, "cookies.txt");
    const cookie = ["127.0.0.1", "FALSE", "/", "FALSE", "4000000000", "session", secret];
    // With a byte order mark, as some editors write it.
    writeFileSync(cookies, `\uFEFF# Netscape HTTP Cookie File\n${cookie.join("\t")}\n`);
    service = await startService({
      DATA_DIR: join(folder, "data"),
      ALLOW_NETWORKS: "127.0.0.1/32",
      LOG_LEVEL: "trace",
      MIN_FREE_BYTES: "0",
      YTDLP: variant.path,
      YTDLP_COOKIES: cookies,
      SPONSORBLOCK_URL: site.url(""),
    });
    opened.defer(async () => void (await service.end("SIGTERM")));
    log = collectLog(service);
    client = await openTaskClient(service.url);
    opened.defer(() => client.close());
  });
  afterAll(() => opened.disposeAsync());

  const readInfo = async (path: string) => fetch(`${service.url}/info?url=${encodeURIComponent(site.url(path))}`);

  it("says what read a page, and downloads with the operator's cookies, which it never shows", async () => {
    const shown = await (await readInfo("otters/1")).text();
    const info = JSON.parse(shown) as PageInfo;
    expect(info).toMatchObject({
      title: "Otters",
      formats: [{ url: site.url("film.mp4") }],
      sources: { title: "yt-dlp", formats: "yt-dlp" },
      resolver: "yt-dlp",
      extractor: "Otter",
      series: "All otters",
      season_number: 2,
      episode_number: 7,
    });
    expect(info.extractor_version).toMatch(/^\d{4}\.\d{2}\.\d{2}/);
    const { id } = await client.post(site.url("otters/1"));
    const task = await client.ended(id);
    expect(task).toMatchObject({ state: "succeeded", error: null, info: { title: "Otters" } });
    const file = Buffer.from(await (await client.file(id)).arrayBuffer());
    expect(file.equals(site.resources.get("film.mp4")!.body)).toBe(true);
    const list = await (await fetch(`${service.url}/tasks/`)).text();
    const texts = [shown, list, JSON.stringify(task), JSON.stringify(log)];
    expect(texts.filter((text) => text.includes(secret))).toEqual([]);
    expect(log.length).toBeGreaterThan(0);
  });

  it.each(["dash", "fragments"])("downloads video and audio of DASH: %s", async (path) => {
    const { id } = await client.post(site.url(`otters/${path}`));
    const task = await client.ended(id);
    expect(task).toMatchObject({ state: "succeeded", file: { width: 160, height: 90 } });
    expect(task.file?.duration).toBeCloseTo(6, 0);
    const file = Buffer.from(await (await client.file(id)).arrayBuffer());
    expect([file.includes("avc1"), file.includes("mp4a")]).toEqual([true, true]);
    const isListed = task.info?.formats.every(({ manifest_url }) => manifest_url !== null);
    expect(isListed).toBe(path === "dash");
    expect(JSON.stringify(task)).not.toContain('"fragments":');
  });

  it("tells the audio and the subtitles of an HLS playlist apart", async () => {
    const audio = (name: string) =>
      `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="${name}",LANGUAGE="en",URI="${name.length}.m3u8"`;
    const playlist = [
      "#EXTM3U",
      ...["English", "English: jokes", "English, described"].map(audio),
      '#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="English",LANGUAGE="en",URI="texts.m3u8"',
      '#EXT-X-STREAM-INF:BANDWIDTH=300000,CODECS="avc1.64000b,mp4a.40.2",RESOLUTION=160x90,AUDIO="a",SUBTITLES="s"',
      "video.m3u8",
    ];
    site.resources.set("main.m3u8", hls(playlist.join("\n")));
    const info = (await (await readInfo("otters/hls")).json()) as PageInfo;
    expect(info.subtitles).toMatchObject({ en: [{ url: site.url("texts.m3u8"), ext: "m3u8" }] });
    const audios = info.formats.filter(({ vcodec }) => vcodec === "none");
    expect(new Set(audios.map(({ name }) => name))).toEqual(
      new Set(["English", "English, described", "English: jokes"]),
    );
    // What is for few listeners only comes last.
    expect(audios.map(({ audio_role }) => audio_role)).toEqual([null, null, "description"]);
  });

  it("has the subtitles of an MPD, in one file or in segments", async () => {
    const set = (lang: string, media: string) =>
      `<AdaptationSet contentType="text" lang="${lang}" mimeType="text/vtt"><Representation id="${lang}" bandwidth="9">${media}</Representation></AdaptationSet>`;
    const segments = '<SegmentTemplate media="$Number$.vtt" duration="3" timescale="1" startNumber="0"/>';
    const sets = set("de", "<BaseURL>de.vtt</BaseURL>") + set("en", segments);
    const mpd = dash.resources.get("main.mpd")!.body.toString().replace("</Period>", `${sets}</Period>`);
    site.resources.set("texts.mpd", resource("application/dash+xml", mpd));
    const texts = ["de.vtt", "0.vtt", "1.vtt"];
    const cueAt = (second: number) => `WEBVTT\n\n00:0${second}.100 --> 00:0${second}.900\nAt ${second}\n`;
    for (const [index, path] of texts.entries()) site.resources.set(path, resource("text/vtt", cueAt(index * 2)));
    const { id } = await client.post(site.url("otters/texts"), { subtitles: true });
    const task = await client.ended(id);
    expect(task).toMatchObject({ state: "succeeded", file: { warnings: [] } });
    const subtitles = (task.files ?? []).filter(({ name }) => name.endsWith(".vtt"));
    const read = subtitles.map(async ({ language, url }) => {
      const text = await (await fetch(`${service.url}${url}`)).text();
      return [language, text.match(/At \d/g)] as const;
    });
    expect(Object.fromEntries(await Promise.all(read))).toEqual({ de: ["At 0"], en: ["At 2", "At 4"] });
  });

  it("downloads two tracks apart of a site that serves ranges of a limited size only", async () => {
    const limit = 65_536;
    const tracks = ["video.mp4", "audio.mp4"];
    for (const path of tracks) {
      const { type, body } = files.resources.get(path)!;
      site.resources.set(path, resource(type, withPadding(body, 3 * limit)));
      answerLimited(path, limit);
    }
    const { id } = await client.post(site.url("otters/chunks"));
    const task = await client.ended(id);
    expect(task).toMatchObject({
      state: "succeeded",
      error: null,
      file: { width: 160, height: 90 },
    });
    expect(task.info?.formats).toMatchObject(tracks.map(() => ({ http_chunk_size: limit })));
    const file = Buffer.from(await (await client.file(id)).arrayBuffer());
    expect([file.includes("avc1"), file.includes("mp4a")]).toEqual([true, true]);
    for (const track of tracks) {
      const ranges = site.asked.filter(({ path }) => path === track).map(({ range }) => range);
      expect(new Set(ranges).size).toBeGreaterThanOrEqual(4);
    }
  });

  it("streams an MP4 with its index at the end of such a site before the rest has come", async () => {
    const limit = 65_536;
    const media = readMedium("index-last.mp4");
    const sizeAt = media.indexOf("mdat") - 4;
    const indexAt = media.lastIndexOf("moov") - 4;
    media.writeUInt32BE(media.readUInt32BE(sizeAt) + 8 * limit, sizeAt);
    const room = [media.subarray(0, indexAt), Buffer.alloc(8 * limit), media.subarray(indexAt)];
    const body = withPadding(Buffer.concat(room), 2 * limit);
    site.resources.set("late.mp4", resource("video/mp4", body));
    answerLimited("late.mp4", limit);
    site.bytesPerSecond = 200_000;
    using _ = { [Symbol.dispose]: () => void (site.bytesPerSecond = Infinity) };
    const { id } = await client.post(site.url("otters/late"));
    const reader = await openStreamReader(`${service.url}/tasks/${id}/stream`);
    await reader.until(indexAt);
    expect(await client.get(id)).toMatchObject({ state: "running" });
    site.bytesPerSecond = Infinity;
    const all = await reader.all();
    expect(all.indexOf("moov")).toBeLessThan(all.indexOf("mdat"));
    expect(all.length).toBe(body.length - 2 * limit);
    expect(await client.ended(id)).toMatchObject({ state: "succeeded", file: { size: body.length } });
  });

  it.each([
    ["cut", [0, 2, 3, 4], 4.5],
    ["chapters", [0, 1, 2, 3, 4], 6],
  ] as const)("leaves to SponsorBlock what is skipped of a video of YouTube: %s", async (skip_mode, cues, seconds) => {
    const of = (segment: number[], others: object = {}) => ({
      category: "sponsor",
      segment,
      videoDuration: 6,
      ...others,
    });
    const segments = [
      of([1, 2]),
      of([1.5, 2.5]),
      of([3, 4], { votes: -3 }),
      of([0, 0], { actionType: "full" }),
      of([8, 9]),
    ];
    const prefix = createHash("sha256").update("dQw4w9WgXcQ").digest("hex").slice(0, 4);
    const answer = JSON.stringify([{ videoID: "dQw4w9WgXcQ", segments }]);
    site.resources.set(`api/skipSegments/${prefix}`, resource("application/json", answer));
    const texts = [0, 1, 2, 3, 4].map((second) => `00:0${second}.600 --> 00:0${second}.900\nAt ${second}\n`);
    site.resources.set("en.vtt", resource("text/vtt", ["WEBVTT\n", ...texts].join("\n")));
    const { id } = await client.post(site.url("otters/dQw4w9WgXcQ"), { skip: ["sponsor"], skip_mode, subtitles: true });
    const task = await client.ended(id);
    expect(task).toMatchObject({ state: "succeeded", error: null, file: { warnings: [] } });
    expect(task.file?.duration).toBeCloseTo(seconds, 1);
    const text = await (
      await fetch(`${service.url}${task.files?.find(({ name }) => name.endsWith(".vtt"))?.url}`)
    ).text();
    expect(text.match(/At \d/g)).toEqual(cues.map((second) => `At ${second}`));
    const file = Buffer.from(await (await client.file(id)).arrayBuffer());
    expect(file.includes("[SponsorBlock]: Sponsor")).toBe(skip_mode === "chapters");
  });

  it("lists the entries of a playlist, and tells a task on it to post one", async () => {
    expect(await (await readInfo("otters/list")).json()).toMatchObject({
      title: "All otters",
      formats: [],
      entries: [1, 2].map((n) => ({ url: site.url(`otters/${n}`), title: `Otter ${n}` })),
    });
    const { id } = await client.post(site.url("otters/list"));
    const { state, error } = await client.ended(id);
    expect([state, error]).toMatchObject(["failed", { code: "playlist", retryable: false }]);
    expect(error?.message).toContain(site.url("otters/1"));
  });

  it("says that a login is required", async () => {
    const response = await readInfo("otters/private");
    expect([response.status, await response.json()]).toMatchObject([422, { code: "login_required", retryable: false }]);
    const { id } = await client.post(site.url("otters/private"));
    expect((await client.ended(id)).error).toMatchObject({ code: "login_required" });
  });

  it("says that a video was removed, as the site does", async () => {
    const response = await readInfo("otters/removed");
    expect([response.status, await response.json()]).toMatchObject([200, { title: "Removed", formats: [] }]);
    const { id } = await client.post(site.url("otters/removed"));
    const { error } = await client.ended(id);
    expect(error).toMatchObject({ code: "no_media", message: expect.stringContaining("the site says") });
  });

  it("leaves no process behind", async () => {
    const other = await startService({ STORE_URL: "memory:", YTDLP: variant.path });
    expect((await fetch(`${other.url}/health/live`)).status).toBe(200);
    const children = childrenOf(other.process.pid!);
    expect(children).not.toEqual([]);
    expect(await other.end("SIGTERM")).toEqual({ code: 0, signal: null });
    await expect.poll(() => children.filter(isRunning)).toEqual([]);
  });
});

describe("the program without yt-dlp", () => {
  it("says once how to get it, and reads pages alone", async () => {
    const pages = await startSite(new Map());
    pages.resources.set("watch", resource("text/html", "<title>Otters</title>"));
    const env = { STORE_URL: "memory:", ALLOW_NETWORKS: "127.0.0.1/32" };
    const without = await startService({ ...env, YTDLP: "", PATH: "/nowhere" });
    const advice = without.startLog.filter(({ msg }) => String(msg).includes("pipx install"));
    expect(advice).toMatchObject([{ level: 30, msg: expect.stringContaining("no yt-dlp on PATH") }]);
    const url = `${without.url}/info?url=${encodeURIComponent(pages.url("watch"))}`;
    expect(await (await fetch(url)).json()).toMatchObject({ title: "Otters", resolver: "page" });
    await without.end("SIGTERM");
    const off = await startService({ ...env, YTDLP: "off" });
    expect(JSON.stringify(off.startLog)).not.toContain("yt-dlp");
    await off.end("SIGTERM");
    await pages.close();
  });
});
