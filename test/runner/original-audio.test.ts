import { describe, expect, it } from "vitest";
import type { AudioRole, PageInfo } from "../../src/model/page-info.ts";
import { chooseAudio } from "../../src/runner/choice/choose-audio.ts";
import { chooseFormat } from "../../src/resolvers/choose-format.ts";
import { jsonLd, resolvePage } from "../resolvers/page/saved-client.ts";
import { fileDict, readRecorded, videoDict } from "../resolvers/ytdlp/recorded.ts";

const at = "https://cdn.example.com/film";

/** Reads a page in this language that names a manifest. */
function readPage(language: string | null, manifest: string): Promise<PageInfo> {
  const isHls = manifest.startsWith("#EXTM3U");
  const url = isHls ? `${at}.m3u8` : `${at}.mpd`;
  const type = isHls ? "application/vnd.apple.mpegurl" : "application/dash+xml";
  const page = jsonLd({ "@type": "VideoObject", name: "Film", contentUrl: url });
  const html = language === null ? page : `<html lang="${language}">${page}</html>`;
  return resolvePage(html, { [url]: { type, body: manifest } });
}

type Attributes = Record<string, string>;

/** `name` is that of the audio, and of its format. */
function hls(...renditions: readonly [name: string, language: string, more?: string][]): string {
  const media = renditions.map(
    ([name, language, more = ""]) =>
      `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="${name}",LANGUAGE="${language}",URI="${name}.m3u8"${more}`,
  );
  const variant = '#EXT-X-STREAM-INF:BANDWIDTH=900000,RESOLUTION=640x360,CODECS="avc1.4d401e,mp4a.40.2",AUDIO="a"';
  return ["#EXTM3U", ...media, variant, "v.m3u8"].join("\n");
}

/** Adds a rendition whose media is in the variants. */
const withIncluded = (name: string, language: string, more: string, playlist: string): string =>
  playlist.replace(
    "#EXTM3U",
    `#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="${name}",LANGUAGE="${language}"${more}`,
  );

const describing = ',CHARACTERISTICS="public.accessibility.describes-video"';

function dash(...tracks: readonly [name: string, language: string, roles: readonly string[], more?: Attributes][]) {
  const sets = tracks.map(([name, language, roles, more = {}]) => {
    const stated = roles.map((role) => `<Role schemeIdUri="urn:mpeg:dash:role:2011" value="${role}"/>`).join("");
    const { tbr = "64000" } = more;
    return `<AdaptationSet mimeType="audio/mp4" codecs="mp4a.40.2" lang="${language}">${stated}
<Representation id="${name}" bandwidth="${tbr}"><BaseURL>${name}.mp4</BaseURL></Representation></AdaptationSet>`;
  });
  return `<MPD type="static" mediaPresentationDuration="PT10S" xmlns="urn:mpeg:dash:schema:mpd:2011"><Period>
<AdaptationSet mimeType="video/mp4" codecs="avc1.64001e"><Representation id="v" bandwidth="900000" width="640" height="360">
<BaseURL>v.mp4</BaseURL></Representation></AdaptationSet>${sets.join("")}</Period></MPD>`;
}

/** As YouTube's extractor lists them: the worst first. */
function listed(...tracks: readonly [name: string, language: string | null, preference: number, more?: object][]) {
  const audio = tracks.map(([name, language, language_preference, more = {}]) =>
    fileDict({
      format_id: name,
      url: `${at}-${name}.m4a`,
      ext: "m4a",
      vcodec: "none",
      acodec: "mp4a.40.2",
      language,
      language_preference,
      ...more,
    }),
  );
  const video = fileDict({ format_id: "v", url: `${at}.mp4`, vcodec: "avc1.64001e", acodec: "none", height: 360 });
  return readRecorded(videoDict({ formats: [...audio.toReversed(), video] }));
}

interface Listing {
  read: () => Promise<PageInfo>;
  /** Of the file that a task makes. */
  original: string;
  roles: Record<string, AudioRole | null>;
  decided: string | undefined;
}

const listings: Record<string, Listing> = {
  "HLS whose DEFAULT is listed last": {
    read: () => readPage(null, hls(["de", "de"], ["fr", "fr"], ["en", "en", ",DEFAULT=YES"])),
    original: "en",
    roles: { de: null, fr: null, en: "original" },
    decided: "manifest",
  },
  "HLS whose DEFAULT is not in the language of the page": {
    read: () => readPage("de", hls(["de", "de"], ["en", "en", ",DEFAULT=YES"])),
    original: "en",
    roles: { de: null, en: "original" },
    decided: "manifest",
  },
  "HLS with a description that is listed first": {
    read: () => readPage("en", hls(["ad", "en", describing], ["en", "en", ",DEFAULT=YES"])),
    original: "en",
    roles: { ad: "description", en: "original" },
    decided: "manifest",
  },
  "HLS whose DEFAULT is in the variants, with one that is in the language of the page": {
    read: () => readPage("de", withIncluded("en", "en", ",DEFAULT=YES", hls(["de", "de", ",AUTOSELECT=YES"]))),
    original: "hls-900",
    roles: { de: null },
    decided: undefined,
  },
  "HLS whose DEFAULT is in the variants, with a description": {
    read: () => readPage("en", withIncluded("en", "en", ",DEFAULT=YES", hls(["ad", "en", describing]))),
    original: "hls-900",
    roles: { ad: "description" },
    decided: undefined,
  },
  "HLS whose variants have other audio than the DEFAULT": {
    read: () => readPage("de", withIncluded("de", "de", "", hls(["en", "en", ",DEFAULT=YES"]))),
    original: "en",
    roles: { de: null, en: "original" },
    decided: "manifest",
  },
  "HLS without DEFAULT": {
    read: () => readPage("fr", hls(["ad", "fr", describing], ["en", "en"], ["fr", "fr"])),
    original: "fr",
    roles: { ad: "description", en: null, fr: null },
    decided: "html",
  },
  "DASH with a dub of a higher bit rate in the language of the page": {
    read: () => readPage("de", dash(["de", "de", ["dub"], { tbr: "128000" }], ["en", "en", ["main"]])),
    original: "en",
    roles: { de: "dub", en: "original" },
    decided: "manifest",
  },
  "DASH with a description and a commentary that are main too": {
    read: () =>
      readPage(
        "en",
        dash(["ad", "en", ["main", "description"]], ["talk", "en", ["commentary"]], ["en", "en", ["main"]]),
      ),
    original: "en",
    roles: { ad: "description", talk: "commentary", en: "original" },
    decided: "manifest",
  },
  "DASH in which every language is main": {
    read: () => readPage("fr", dash(["en", "en", ["main"]], ["fr", "fr", ["main"]])),
    original: "fr",
    roles: { en: null, fr: null },
    decided: "html",
  },
  "yt-dlp's with automatic dubs of higher bit rates": {
    read: () => listed(["de", "de", -1, { tbr: 160 }], ["fr", "fr", -1, { tbr: 150 }], ["en", "en", 10, { tbr: 128 }]),
    original: "en",
    roles: { de: "dub", fr: "dub", en: "original" },
    decided: "yt-dlp",
  },
  "yt-dlp's with a description in the same language": {
    read: () =>
      listed(["ad", "en", -10, { tbr: 160 }], ["en-low", "en", -1, { tbr: 48 }], ["en", "en", 10, { tbr: 128 }]),
    original: "en",
    roles: { ad: "description", "en-low": "original", en: "original" },
    decided: "yt-dlp",
  },
  "yt-dlp's with a dub in the file of a higher picture": {
    read: () =>
      listed(
        ["muxed-de", "de", -1, { vcodec: "avc1.64001e", height: 720, ext: "mp4" }],
        ["de", "de", 5, { tbr: 160 }],
        ["en", "en", 10, { tbr: 128 }],
      ),
    original: "en",
    roles: { de: "dub", en: "original" },
    decided: "yt-dlp",
  },
  "yt-dlp's of one language, without preferences": {
    read: () => listed(["low", null, -1, { tbr: 48 }], ["high", null, -1, { tbr: 128 }]),
    original: "high",
    roles: { low: null, high: null },
    decided: undefined,
  },
};

const nameOf = (id: string): string => id.replace(/^hls-audio-a-|^dash-/, "");

describe("the audio of a page is told apart, and the original is the one that is downloaded:", () => {
  it.each(Object.entries(listings))("%s", async (_, { read, original, roles, decided }) => {
    const info = await read();
    const separate = info.formats.filter(({ vcodec }) => vcodec === "none");
    const told = separate.map(({ format_id, audio_role }) => [nameOf(format_id), audio_role]);
    expect(Object.fromEntries(told)).toEqual(roles);
    expect(info.sources["audio"]).toBe(decided);
    for (const options of [{}, { audio_languages: ["original"] }, { audio_only: true }]) {
      const { tracks } = chooseAudio(info, chooseFormat(info, options), options);
      expect(nameOf((tracks.audio ?? tracks.format).format_id)).toBe(original);
      expect(tracks.otherAudio).toEqual([]);
    }
  });
});
