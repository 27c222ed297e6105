import { multivariant } from "../media/hls.ts";
import { makeMedia } from "../media/long-media.ts";
import { dash, hls, merge, resource, type Resources } from "../media/resources.ts";
import { readMedium } from "../media/rendition.ts";
import { inScript, pageOf, type PageParts } from "./site-case.ts";

/** A page, by what it leads to, and the entry of its medium: a path of the site. */
interface SizeCase {
  name: string;
  entry: string;
  page(url: string): PageParts;
  /** Whether the size is stated exactly. */
  isExact?: boolean;
}

const tag = (type: string) => (url: string) => ({
  body: `<video><source src="${url}" type="${type}"></video>`,
});
const openGraph = (url: string) => ({ head: `<meta property="og:video" content="${url}">` });
const jsonLd = (url: string, more: object = {}) => ({
  head: `<script type="application/ld+json">${inScript({ "@type": "VideoObject", name: "The film", contentUrl: url, ...more })}</script>`,
});
const withDuration = (url: string) => jsonLd(url, { duration: "PT20S" });
const inPlayer = (url: string) => ({
  body: `<div id="p"></div><script>jwplayer("p").setup(${inScript({ file: url, title: "The film" })});</script>`,
});
const hlsTag = tag("application/x-mpegURL");
const dashTag = tag("application/dash+xml");

const file = (name: string, entry: string, page: SizeCase["page"]): SizeCase => ({
  name,
  entry,
  page,
  isExact: true,
});

export const sizeCases: readonly SizeCase[] = [
  file("an MP4 in og:video", "360.mp4", openGraph),
  file("an MP4 in a video element", "240.mp4", tag("video/mp4")),
  file("an MP4 in JSON-LD", "360.mp4", jsonLd),
  file("an MP4 in a player's script", "240.mp4", inPlayer),
  file("an MP4 whose index comes last", "index-last.mp4", openGraph),
  file("a WebM", "vp9-opus.webm", tag("video/webm")),
  file("an MP3", "tone.mp3", (url) => ({ body: `<audio src="${url}"></audio>` })),
  { name: "HLS by ffmpeg, MPEG-TS", entry: "ts360-main.m3u8", page: hlsTag },
  { name: "HLS by ffmpeg, fMP4", entry: "fmp4-360-main.m3u8", page: hlsTag },
  { name: "HLS by ffmpeg, the duration on the page", entry: "ts360-main.m3u8", page: withDuration },
  { name: "HLS of two qualities with averages", entry: "two.m3u8", page: hlsTag },
  { name: "HLS of two qualities in a player's script", entry: "two.m3u8", page: inPlayer },
  { name: "HLS without averages", entry: "peaks.m3u8", page: hlsTag },
  { name: "HLS of fMP4 of two qualities in JSON-LD", entry: "two-fmp4.m3u8", page: withDuration },
  { name: "HLS with its audio apart", entry: "apart.m3u8", page: hlsTag },
  { name: "HLS of byte ranges alone", entry: "ranges.m3u8", page: hlsTag },
  { name: "DASH with a SegmentTimeline", entry: "timeline.mpd", page: dashTag },
  { name: "DASH with a SegmentTemplate", entry: "template.mpd", page: dashTag },
  { name: "DASH of low quality", entry: "low.mpd", page: openGraph },
  { name: "DASH of single files", entry: "single.mpd", page: dashTag },
];

export function pageFor({ page }: SizeCase, url: string): string {
  return pageOf(page(url));
}

/** Makes the media of all cases with ffmpeg, 20 s in two qualities; returns what a site then has. */
export async function makeSizeMedia(): Promise<Resources> {
  const films = merge(
    await makeFilm({ name: "240", size: "426x240", video: "250k", audio: "64k" }),
    await makeFilm({ name: "360", size: "640x360", video: "700k", audio: "96k" }),
  );
  const hlsOf = (input: number, name: string, options = "") =>
    `-map ${input} -c copy${options} -f hls -hls_time 4 -hls_playlist_type vod -master_pl_name ${name}-main.m3u8 ${name}.m3u8`;
  const fmp4Of = (input: number, name: string, options = "") =>
    hlsOf(input, name, `${options} -hls_segment_type fmp4 -hls_fmp4_init_filename ${name}-init.mp4`);
  const dashOf = (input: number, name: string, options = "") =>
    `-map ${input} -c copy -f dash -seg_duration 4${options} -init_seg_name ${name}-$RepresentationID$.m4s ` +
    `-media_seg_name ${name}-$RepresentationID$-$Number$.m4s ${name}.mpd`;
  const copies = [
    hlsOf(0, "ts240"),
    hlsOf(1, "ts360"),
    fmp4Of(0, "fmp4-240"),
    fmp4Of(1, "fmp4-360"),
    fmp4Of(1, "video", " -an"),
    fmp4Of(1, "audio", " -vn"),
    fmp4Of(1, "ranges", " -hls_flags single_file"),
    dashOf(1, "timeline"),
    dashOf(1, "template", " -use_timeline 0"),
    dashOf(0, "low", " -use_timeline 0"),
    dashOf(1, "single", " -single_file 1 -single_file_name single-$RepresentationID$.mp4"),
  ];
  // To start ffmpeg takes longer than to copy.
  const copied = (await makeMedia(`-i 240.mp4 -i 360.mp4 ${copies.join(" ")}`, "", films)).resources;
  const resources: Resources = new Map(
    [...merge(films, copied)].map(([name, { body }]) => [name, resourceOf(name, body)]),
  );
  for (const name of ["index-last.mp4", "vp9-opus.webm", "tone.mp3"]) {
    resources.set(name, resourceOf(name, readMedium(name)));
  }
  return addPlaylists(resources);
}

interface Film {
  name: string;
  size: string;
  video: string;
  audio: string;
}

async function makeFilm({ name, size, video, audio }: Film): Promise<Resources> {
  const line =
    `-f lavfi -i testsrc2=size=${size}:rate=25:duration=20,noise=alls=8:allf=t ` +
    "-f lavfi -i sine=frequency=300:duration=20,aphaser " +
    "-c:v libx264 -preset ultrafast -g 50 -pix_fmt yuv420p " +
    `-b:v ${video} -maxrate ${video} -bufsize ${video} -c:a aac -b:a ${audio} -movflags +faststart ${name}.mp4`;
  return (await makeMedia(line, "")).resources;
}

const types: Readonly<Record<string, string>> = {
  mp4: "video/mp4",
  m4s: "video/mp4",
  ts: "video/mp2t",
  webm: "video/webm",
  mp3: "audio/mpeg",
};

function resourceOf(name: string, body: Buffer) {
  const ext = name.slice(name.lastIndexOf(".") + 1);
  if (ext === "m3u8") return hls(body.toString());
  return ext === "mpd" ? dash(body.toString()) : resource(types[ext] ?? "", body);
}

/** Adds the multivariant playlists that state the bit rates of the segments. */
function addPlaylists(resources: Resources): Resources {
  const variant = (name: string, height: number, codecs: string) => {
    const uri = `${name}.m3u8`;
    const resolution = `${Math.round((height * 16) / 9)}x${height}`;
    return { uri, codecs, resolution, ...ratesOf(resources, name) };
  };
  const both = "avc1.42c01e,mp4a.40.2";
  const add = (name: string, text: string) => resources.set(name, hls(text));
  add("two.m3u8", multivariant([variant("ts240", 240, both), variant("ts360", 360, both)]));
  const { averageBandwidth: _, ...peak } = variant("ts360", 360, both);
  add("peaks.m3u8", multivariant([peak]));
  add("two-fmp4.m3u8", multivariant([variant("fmp4-240", 240, both), variant("fmp4-360", 360, both)]));
  const picture = variant("video", 360, both);
  const sound = ratesOf(resources, "audio");
  const bandwidth = picture.bandwidth + sound.bandwidth;
  const averageBandwidth = picture.averageBandwidth + sound.averageBandwidth;
  add(
    "apart.m3u8",
    multivariant(
      [{ ...picture, bandwidth, averageBandwidth, audio: "a" }],
      [{ group: "a", language: "en", uri: "audio.m3u8", isDefault: true }],
    ),
  );
  return resources;
}

/** The peak and the mean of a playlist's segments, bit/s. */
function ratesOf(resources: Resources, name: string) {
  const lines = resources.get(`${name}.m3u8`)!.body.toString().split("\n");
  const segments = lines.flatMap((line, i) => {
    const durationS = Number(/^#EXTINF:([\d.]+)/.exec(line)?.[1] ?? 0);
    const bytes = resources.get(lines[i + 1] ?? "")?.body.length ?? 0;
    return durationS === 0 ? [] : [{ durationS, bits: bytes * 8 }];
  });
  const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);
  const bits = sum(segments.map((each) => each.bits));
  const seconds = sum(segments.map((each) => each.durationS));
  const peak = Math.max(...segments.map((each) => each.bits / each.durationS));
  return { bandwidth: Math.ceil(peak), averageBandwidth: Math.ceil(bits / seconds) };
}
