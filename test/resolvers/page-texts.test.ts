import { expect, it } from "vitest";
import { createPageResolver } from "./page/local-reader.ts";
import { createSavedClient } from "./page/saved-client.ts";

const site = "https://video.example.com";
/** Shows what comes after it from right to left. */
const b = "\u202E";

const thing = {
  "@type": "VideoObject",
  name: `Otters${b}gpj.exe`,
  description: `At play${b}`,
  author: { name: `Ada${b}` },
  publisher: { name: `Films${b}` },
  keywords: `otters${b},play`,
  contentUrl: `${site}/otters${b}.mp4`,
  thumbnailUrl: `${site}/${b}.jpg`,
  encodingFormat: `video/mp4${b}`,
  inLanguage: `en${b}`,
  videoQuality: `HD${b}`,
};
const html = `<html lang="en${b}"><title>t${b}</title><link rel=canonical href="/c${b}">
<script type="application/ld+json">${JSON.stringify(thing)}</script>
<meta property="og:site_name" content="s${b}"><meta property="og:video" content="${site}/main.m3u8">
<video><source src="/f.mp4" type='video/mp4; codecs="avc1${b}"' label="720${b}">
<track src="/x${b}.vtt" srclang="en${b}" label="l${b}"></video>`;
const hls = `#EXTM3U
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a${b}",NAME="n${b}",LANGUAGE="en${b}",URI="a${b}.m3u8"
#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="n${b}",LANGUAGE="de${b}",URI="s.m3u8"
#EXT-X-STREAM-INF:BANDWIDTH=100000,CODECS="avc1.4d${b},mp4a.40.2",AUDIO="a${b}",NAME="x${b}"
v.m3u8
`;
const set = (kind: string, type: string) =>
  `<AdaptationSet lang="en${b}" contentType="${kind}" mimeType="${type}" codecs="avc1${b}"><Label>x${b}</Label>
<Representation id="i${b}" bandwidth="100000"><BaseURL>b${b}.mp4</BaseURL></Representation></AdaptationSet>`;
const mpd = `<MPD><Period duration="PT5S">${set("video", `video/mp4${b}`)}${set("text", `text/vtt`)}</Period></MPD>`;

it.each([
  ["a page", "/watch", "text/html", html],
  ["an HLS playlist", "/main.m3u8", "application/x-mpegurl", hls],
  ["an MPD", "/main.mpd", "application/dash+xml", mpd],
])("nothing that %s states changes the reading direction", async (_what, path, type, body) => {
  const hlsUrl = `${site}/main.m3u8`;
  const client = createSavedClient({
    [hlsUrl]: { type: "application/x-mpegurl", body: hls },
    [site + path]: { type, body },
  });
  const resolver = createPageResolver({ client, pageMaxBytes: 1e6 });
  const { signal } = new AbortController();
  const info = await resolver.resolve(new URL(path, site), { signal });
  expect(info.formats.length).toBeGreaterThan(0);
  expect(JSON.stringify(info).match(/.{0,60}\p{Bidi_Control}/gu)).toBeNull();
});
