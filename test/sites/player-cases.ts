import { resource } from "../media/resources.ts";
import type { Site } from "../media/site.ts";
import { casePage, inAttribute, inScript, media, servePage, type SiteCase } from "./site-case.ts";

const hlsType = "application/x-mpegURL";

/** Returns a script with a set-up call, after the player's own script and element. */
const setup = (element: string, call: string) => ({
  body: `${element}<script src="/player.js"></script><script>\n  ${call}\n</script>`,
});

/** Returns the set-up of each player that names a medium in data of its own. */
export const playerCases: readonly SiteCase[] = [
  casePage("JW Player with a file", media.mp4, (url) =>
    setup(
      '<div id="player"></div>',
      `jwplayer("player").setup({file: "${url}", image: "poster.jpg", title: 'The film', width: "100%"});`,
    ),
  ),
  casePage("JW Player with a playlist", media.hls, (url, site) => {
    const captions = { file: site.url("en.vtt"), label: "English", kind: "captions" };
    const item = { title: "The film", image: "poster.jpg", duration: 6, mediaid: "film1" };
    const playlist = [{ ...item, sources: [{ file: url, type: "hls" }], tracks: [captions] }];
    return setup(
      '<div id="player"></div>',
      `var config = ${inScript({ playlist, autostart: false })};\n  jwplayer("player").setup(config);`,
    );
  }),
  casePage("video.js with data-setup", media.mp4, (url) => {
    const options = { controls: true, sources: [{ src: url, type: "video/mp4" }] };
    const value = inAttribute(JSON.stringify(options));
    return { body: `<video id="player" class="video-js" data-setup="${value}"></video>` };
  }),
  casePage("video.js with a set-up call", media.hls, (url) =>
    setup(
      '<video id="player" class="video-js"></video>',
      `var player = videojs('player', {fluid: true});\n  player.src({src: '${url}', type: '${hlsType}'});`,
    ),
  ),
  casePage("Flowplayer", media.hls, (url) =>
    setup(
      '<div id="player"></div>',
      `flowplayer("#player", {clip: {title: "The film", sources: [{type: "${hlsType}", src: "${url}"}]}});`,
    ),
  ),
  casePage("Flowplayer with data-item", media.mp4, (url) => {
    const item = { sources: [{ type: "video/mp4", src: url }], duration: 6 };
    return {
      body: `<div class="flowplayer" data-item="${inAttribute(JSON.stringify(item))}"></div>`,
    };
  }),
  casePage("Kaltura", media.hls, (url) => {
    const hls = [{ id: "1_film,hls", mimetype: hlsType, url }];
    const entry = {
      sources: { hls, progressive: [] },
      duration: 6,
      metadata: { name: "The film" },
    };
    return setup('<div id="player"></div>', `KalturaPlayer.setup({targetId: "player"}).setMedia(${inScript(entry)});`);
  }),
  casePage("Brightcove", media.mp4, (url, site) => {
    const captions = [{ src: site.url("en.vtt"), kind: "captions", srclang: "en" }];
    const sources = [{ src: url, container: "MP4", codec: "H264", width: 160, height: 90 }];
    const video = { name: "The film", duration: 6_000, poster: "poster.jpg", sources };
    const data = { account_id: "1", video: { ...video, text_tracks: captions } };
    return { body: `<script type="application/json" id="player-data">${inScript(data)}</script>` };
  }),
  casePage("Plyr", media.mp4, (url) =>
    setup(
      '<video id="player"></video>',
      "const player = new Plyr('#player');\n  player.source = {type: 'video', title: 'The film', " +
        `sources: [{src: '${url}', type: 'video/mp4', size: 90}], poster: 'poster.jpg'};`,
    ),
  ),
  casePage("data of a page made by Next.js", media.hls, (url, site) => {
    const video = { id: "film1", title: "The film", duration: 6, streams: { hls: url } };
    const related = [{ id: "film2", title: "Another film", preview: site.url("other.mp4") }];
    const data = {
      props: { pageProps: { video, related } },
      page: "/watch",
      query: { id: "film1" },
    };
    return {
      body: `<script id="__NEXT_DATA__" type="application/json">${inScript(data)}</script>`,
    };
  }),
  casePage("a variable of a player of its own", media.mp4, (url) => {
    const info = { title: "The film", video_url: url, thumb: "poster.jpg", length: 6 };
    return { body: `<script>window.playerConfig = ${inScript(info)};</script>` };
  }),
  casePage("a data attribute of a player of its own", media.dash, (url) => {
    const value = inAttribute(JSON.stringify({ dash: url, poster: "poster.jpg" }));
    return { body: `<div class="player" data-player="${value}"></div>` };
  }),
  {
    name: "video and audio in files apart",
    media: media.dashFiles,
    prepare(site) {
      // The manifest is not what the page names.
      site.resources.delete("main.mpd");
      const formats = [
        track(site, "video.mp4", 'video/mp4; codecs="avc1.64000c"', { width: 160, height: 90 }),
        track(site, "audio.mp4", 'audio/mp4; codecs="mp4a.40.2"', {}),
      ];
      const data = {
        streamingData: { adaptiveFormats: formats },
        videoDetails: { title: "The film" },
      };
      servePage(site, "watch", { body: `<script>var playerData = ${inScript(data)};</script>` });
      site.resources.set("en.vtt", resource("text/vtt", "WEBVTT\n"));
    },
  },
];

function track(site: Site, path: string, mimeType: string, more: Record<string, number>) {
  return { url: site.url(path), mimeType, bitrate: 50_000, ...more };
}
