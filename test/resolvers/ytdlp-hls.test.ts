import { describe, expect, it } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import type { PageInfo } from "../../src/model/page-info.ts";
import { createSavedClient } from "./page/saved-client.ts";
import { fileDict, readRecorded, videoDict } from "./ytdlp/recorded.ts";

const folder = "https://cdn.example.com/film";
const mainUrl = `${folder}/main.m3u8`;

const media = (type: string, name: string, language: string, more = "") =>
  `#EXT-X-MEDIA:TYPE=${type},GROUP-ID="${type}",NAME="${name}",LANGUAGE="${language}"${more},URI="${name}.m3u8"`;
const main = [
  "#EXTM3U",
  media("AUDIO", "German", "de", ",AUTOSELECT=YES"),
  media("AUDIO", "Narrator", "en", ',CHARACTERISTICS="public.accessibility.describes-video"'),
  media("AUDIO", "English", "en", ",DEFAULT=YES,AUTOSELECT=YES"),
  media("SUBTITLES", "Full", "en"),
  media("SUBTITLES", "Deaf", "en", ',CHARACTERISTICS="public.accessibility.transcribes-spoken-dialog"'),
  media("SUBTITLES", "Signs", "en", ",FORCED=YES"),
  '#EXT-X-STREAM-INF:BANDWIDTH=800000,RESOLUTION=640x360,CODECS="avc1.64001e,mp4a.40.2",AUDIO="AUDIO",SUBTITLES="SUBTITLES"',
  "video.m3u8",
].join("\n");

/** As yt-dlp lists what such a playlist has. */
const formatDict = (name: string, changes: object = {}) =>
  fileDict({
    format_id: name,
    url: `${folder}/${name}.m3u8`,
    manifest_url: mainUrl,
    protocol: "m3u8_native",
    ...changes,
  });
const audioDict = (name: string, language: string, changes: object = {}) =>
  formatDict(name, { format_note: name, vcodec: "none", language, ...changes });
const subtitleDict = (name: string) => ({ url: `${folder}/${name}.m3u8`, ext: "vtt", protocol: "m3u8_native" });

const videoFormat = formatDict("video", { vcodec: "avc1.64001e", acodec: "none" });
const audioFormats = [audioDict("German", "de"), audioDict("Narrator", "en"), audioDict("English", "en")];
const hlsDict = (changes = {}) => videoDict({ formats: [videoFormat, ...audioFormats], ...changes });
const read = (dict: unknown, response: { body: string } | Error = { body: main }) =>
  readRecorded(dict, {}, { [mainUrl]: response });

const rolesOf = ({ formats }: PageInfo) =>
  Object.fromEntries(formats.map(({ format_id, audio_role }) => [format_id, audio_role]));

describe("of the audio of HLS that yt-dlp lists, the resolver knows", () => {
  it("the original and descriptions, as the playlist says", async () => {
    const info = await read(hlsDict());
    expect(rolesOf(info)).toEqual({ video: undefined, English: "original", German: null, Narrator: "description" });
    expect(info.sources["audio"]).toBe("manifest");
    expect(info.formats.map(({ format_id, name }) => [format_id, name])).toEqual([
      ["video", undefined],
      ["English", undefined],
      ["German", undefined],
      ["Narrator", undefined],
    ]);
  });

  it("what yt-dlp itself knows, if it knows the original", async () => {
    const stated = [videoFormat, audioDict("German", "de", { language_preference: 10 }), audioDict("English", "en")];
    const info = await read(hlsDict({ formats: stated }));
    expect(rolesOf(info)).toEqual({ video: undefined, German: "original", English: "dub" });
    expect(info.sources["audio"]).toBe("yt-dlp");
  });

  it.each([
    ["is gone", new ServiceError("upstream_unreachable", "gone")],
    ["is none", { body: "<html>" }],
    ["lists others", { body: main.replaceAll(/(\w+\.m3u8)/g, "other-$1") }],
  ])("no more than yt-dlp if the playlist %s", async (_, response) => {
    const info = await read(hlsDict({ subtitles: { en: [subtitleDict("Full")] } }), response);
    expect(info.formats).toHaveLength(4);
    expect(rolesOf(info)).toEqual({ video: undefined, English: null, German: null, Narrator: null });
    expect(info.subtitles["en"]?.[0]).toMatchObject({ url: `${folder}/Full.m3u8`, ext: "m3u8" });
  });
});

describe("of the subtitles of HLS that yt-dlp lists, the resolver knows", () => {
  const subtitles = { en: ["Full", "Deaf", "Signs"].map(subtitleDict) };
  const file = { url: "https://cdn.example.com/en.vtt", ext: "vtt", name: "English" };

  it("which are forced, and which are for the deaf", async () => {
    const info = await read(hlsDict({ subtitles: { en: [...subtitles.en, file] } }));
    expect(info.subtitles["en"]?.map(({ url, role, name }) => [url, role, name])).toEqual([
      [file.url, undefined, "English"],
      [`${folder}/Full.m3u8`, "subtitles", "Full"],
      [`${folder}/Deaf.m3u8`, "captions", "Deaf"],
      [`${folder}/Signs.m3u8`, "forced", "Signs"],
    ]);
  });

  it("none that yt-dlp leaves out", async () => {
    const info = await read(hlsDict({ subtitles: { en: [file] } }));
    expect(info.subtitles["en"]).toHaveLength(1);
  });
});

describe("a playlist of HLS is not fetched again", () => {
  const requested = async (formats: object[]) => {
    const client = createSavedClient({ [mainUrl]: { body: main } });
    await readRecorded(videoDict({ formats }), {}, {}, client);
    return client.requested;
  };

  it.each([
    ["without separate audio", [formatDict("video")]],
    ["with one kind of audio, in two qualities", [videoFormat, audioDict("low", "en"), audioDict("high", "en")]],
    ["that is a media playlist", [formatDict("main")]],
    [
      "if yt-dlp knows the original",
      [videoFormat, audioDict("German", "de", { language_preference: 10 }), audioDict("English", "en")],
    ],
  ])("%s", async (_, formats) => {
    expect(await requested(formats)).toEqual([]);
  });

  it("but if there may be several versions", async () => {
    expect(await requested([videoFormat, ...audioFormats])).toEqual([mainUrl]);
    expect(await requested([formatDict("video", { acodec: "mp4a.40.2" }), audioDict("Narrator", "en")])).toEqual([
      mainUrl,
    ]);
  });
});
