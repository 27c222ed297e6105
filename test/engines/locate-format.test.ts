import { afterAll, expect, it } from "vitest";
import { createFormatLocator } from "../../src/engines/native/sources/locate-format.ts";
import { planDownload } from "../../src/engines/native/sources/plan.ts";
import type { Format } from "../../src/model/page-info.ts";
import type { TaskOptions } from "../../src/model/task.ts";
import { createHttpClient } from "../../src/net/http/http-client.ts";
import { formatAt } from "../contracts/engine/harness.ts";
import { mediaPlaylist, multivariant } from "../media/hls.ts";
import { dash, hls, resource, type Resources } from "../media/resources.ts";
import { startSite } from "../media/site.ts";

const client = createHttpClient({ allowNetworks: ["127.0.0.1/32"] });
afterAll(() => client.close());
const locator = (preference: TaskOptions = {}) =>
  createFormatLocator(client, { pageUrl: "", preference, signal: new AbortController().signal });

const set = (kind: string, codecs: string) =>
  `<AdaptationSet mimeType="${kind}/mp4"><SegmentTemplate media="${kind}-$Number$.m4s" duration="3"/>` +
  `<Representation id="${kind}" bandwidth="1000" codecs="${codecs}"/></AdaptationSet>`;
const mpd = dash(
  `<MPD mediaPresentationDuration="PT6S"><Period>${set("video", "avc1.64000c")}${set("audio", "mp4a.40.2")}</Period></MPD>`,
);
const playlist = hls(mediaPlaylist(["#EXTINF:6,", "1.ts"]));

/** `format` and `audio`: what is known of them, if they were listed before. */
async function plan(
  resources: Resources,
  entry: string,
  format: Partial<Format> = {},
  audio: Partial<Format> | null = null,
  preference: TaskOptions = {},
) {
  const site = await startSite(new Map(resources));
  try {
    const at = formatAt(site.url(entry));
    const job = {
      format: { ...at, ...format },
      audio: audio && { ...at, ...audio },
      audioOnly: false,
      otherAudio: [],
      folder: "/none",
    };
    const { sources } = await planDownload(job, locator(preference));
    const urls = sources.map((source) => (source.kind === "segments" ? source.list.segments[0]?.url : null));
    const paths = urls.map((url) => url && new URL(url).pathname.slice(1));
    return { paths, asked: site.asked.map(({ path }) => path) };
  } finally {
    await site.close();
  }
}

it("requests an MPD once for its video and its audio", async () => {
  expect(await plan(new Map([["main.mpd", mpd]]), "main.mpd")).toEqual({
    paths: ["video-1.m4s", "audio-1.m4s"],
    asked: ["main.mpd"],
  });
});

it("reads a variant with no tags but those of M3U, which alone is a list of media", async () => {
  const bare = hls("#EXTM3U\n#EXTINF:6,\n1.ts\n");
  const main = hls("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nbare.m3u8\n");
  const resources: Resources = new Map([
    ["main.m3u8", main],
    ["bare.m3u8", bare],
  ]);
  expect(await plan(resources, "main.m3u8")).toMatchObject({ paths: ["1.ts"] });
  await expect(plan(resources, "bare.m3u8")).rejects.toThrow(/it is a list of media \(M3U\)/);
});

const high = `<Representation id="high" bandwidth="9000" codecs="avc1.64001f" height="1080"><SegmentTemplate media="high-$Number$.m4s"/></Representation>`;
/** What a page lists of an MPD, each of whose Representations has another id the next time. */
const listed = { format_id: "dash-7", tbr: 1, vcodec: "avc1.64000c", acodec: "none" };
const listedAudio = { ...listed, format_id: "dash-8", vcodec: "none", acodec: "mp4a.40.2" };

it("finds the video and the audio of an MPD that were listed with other ids", async () => {
  const text = `<MPD mediaPresentationDuration="PT6S"><Period>${set("video", "avc1.64000c").replace("</A", `${high}</A`)}${set("audio", "mp4a.40.2")}</Period></MPD>`;
  const { paths } = await plan(new Map([["main.mpd", dash(text)]]), "main.mpd", listed, listedAudio);
  expect(paths).toEqual(["video-1.m4s", "audio-1.m4s"]);
});

it("refuses audio that was listed if the MPD has only video now", async () => {
  const text = `<MPD mediaPresentationDuration="PT6S"><Period>${set("video", "avc1.64000c")}</Period></MPD>`;
  const planning = plan(new Map([["main.mpd", dash(text)]]), "main.mpd", listed, listedAudio);
  await expect(planning).rejects.toMatchObject({ code: "format_unavailable" });
});

it("chooses the best variant, and the default rendition of its group as its audio, not an audio-only variant", async () => {
  const text = multivariant(
    [
      { uri: "low.m3u8", bandwidth: 90_000, codecs: "avc1.64000c,mp4a.40.2", audio: "aac" },
      { uri: "only/audio.m3u8", bandwidth: 64_000, codecs: "mp4a.40.2", audio: "aac" },
      { uri: "high/video.m3u8", bandwidth: 110_000, codecs: "avc1.64000c,mp4a.40.2", audio: "aac" },
    ],
    [{ group: "aac", language: "en", uri: "en/audio.m3u8", isDefault: true }],
  );
  const resources = new Map([
    ["index.m3u8", hls(text)],
    ["high/video.m3u8", playlist],
    ["en/audio.m3u8", playlist],
    ["only/audio.m3u8", playlist],
  ]);
  expect(await plan(resources, "index.m3u8")).toEqual({
    paths: ["high/1.ts", "en/1.ts"],
    asked: ["index.m3u8", "high/video.m3u8", "en/audio.m3u8"],
  });
});

it.each<[TaskOptions, string]>([
  [{}, "1080-h265"],
  [{ preferred_codecs: ["h264"] }, "720-h264"],
  [{ preferred_codecs: ["av1", "h265"] }, "1080-h265"],
  [{ max_height: 720 }, "720-h264"],
  [{ max_height: 360, preferred_codecs: ["h264"] }, "360-h265"],
  [{ max_height: 240 }, "1080-h265"],
])("chooses of a playlist that was not listed before as the task's options say: %j is %s", async (options, name) => {
  const text = `#EXTM3U
#EXT-X-STREAM-INF:BANDWIDTH=900000,RESOLUTION=1920x1080,CODECS="hvc1.1.6.L93.B0,mp4a.40.2"\n1080-h265/v.m3u8
#EXT-X-STREAM-INF:BANDWIDTH=500000,RESOLUTION=1280x720,CODECS="avc1.64000c,mp4a.40.2"\n720-h264/v.m3u8
#EXT-X-STREAM-INF:BANDWIDTH=200000,RESOLUTION=640x360,CODECS="hvc1.1.6.L93.B0,mp4a.40.2"\n360-h265/v.m3u8
#EXT-X-STREAM-INF:BANDWIDTH=64000,CODECS="mp4a.40.2"\naudio/v.m3u8\n`;
  const resources = new Map([["index.m3u8", hls(text)]]);
  for (const kind of ["1080-h265", "720-h264", "360-h265", "audio"]) resources.set(`${kind}/v.m3u8`, playlist);
  expect(await plan(resources, "index.m3u8", {}, null, options)).toMatchObject({
    paths: [`${name}/1.ts`, "audio/1.ts"],
  });
});

it("fetches the variables that a media playlist imports from its multivariant playlist, once", async () => {
  const variant = mediaPlaylist(['#EXT-X-DEFINE:IMPORT="dir"', "#EXTINF:6,", "{$dir}/1.ts"], false);
  const site = await startSite(
    new Map([
      ["index.m3u8", hls('#EXTM3U\n#EXT-X-DEFINE:NAME="dir",VALUE="a/b"\n#EXT-X-STREAM-INF:BANDWIDTH=9000\nv.m3u8\n')],
      ["v.m3u8", hls(variant)],
    ]),
  );
  const format = { ...formatAt(site.url("v.m3u8")), manifest_url: site.url("index.m3u8"), protocol: "m3u8" as const };
  const { media } = await locator()(format);
  const lists = media.kind === "segments" ? [media.list, await media.reload()] : [];
  expect(lists.map(({ segments }) => segments[0]?.url)).toEqual([site.url("a/b/1.ts"), site.url("a/b/1.ts")]);
  expect(site.asked.map(({ path }) => path)).toEqual(["v.m3u8", "index.m3u8", "v.m3u8"]);
  await site.close();
});

it("refuses a media playlist that has become a multivariant one", async () => {
  const live = hls(mediaPlaylist(["#EXTINF:6,", "1.ts"], false));
  const site = await startSite(new Map([["index.m3u8", live]]));
  const { media } = await locator()(formatAt(site.url("index.m3u8")));
  site.resources.set("index.m3u8", hls(multivariant([{ uri: "a.m3u8", bandwidth: 1, codecs: "" }])));
  const reloaded = media.kind === "segments" ? media.reload() : null;
  await expect(reloaded).rejects.toMatchObject({ code: "upstream_invalid" });
  await site.close();
});

it("locates a file without a request", async () => {
  const site = await startSite(new Map([["film.mp4", resource("video/mp4", "")]]));
  const { media, audio } = await locator()(formatAt(site.url("film.mp4")));
  expect({ media, audio }).toMatchObject({
    media: { kind: "file", url: new URL(site.url("film.mp4")) },
    audio: null,
  });
  expect(site.asked).toEqual([]);
  await site.close();
});
