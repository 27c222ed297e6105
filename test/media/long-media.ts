import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { deserialize, serialize } from "node:v8";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findKept, keep, keyOf } from "./kept.ts";
import { type Resources, resource } from "./resources.ts";

/** Seconds of all of them. */
export const longS = 20;

const video = `-f lavfi -i testsrc2=size=160x90:rate=25:duration=${longS}`;
// Every packet of noise differs.
const audio = `-f lavfi -i anoisesrc=duration=${longS}:sample_rate=48000:amplitude=0.3:seed=7`;
const x264 = "-c:v libx264 -preset veryfast -bf 3 -g 50 -sc_threshold 0 -b:v 300k -c:a aac";
const vp9 = "-c:v libvpx-vp9 -cpu-used 8 -deadline realtime -g 50 -b:v 200k -c:a libopus";
const hls = "-f hls -hls_time 2 -hls_list_size 0";
// A bar stands for a space.
const apart = "-map 0:v -map 1:a -var_stream_map v:0,agroup:a,name:v|a:0,agroup:a,default:yes,name:a";

/** What is encoded once; most other media are copies of it in other containers. */
const source = { name: "h264.mp4", line: `${video} ${audio} ${x264}` };
const h264 = `-i ${source.name} -c copy`;

/** 20 s of video with a group of pictures every 2 s and of noise, in streams of many kinds: how they are made, and where they start. */
export const longMedia = {
  "HLS in MPEG-TS": [`${h264} ${hls} -hls_segment_filename s%03d.ts index.m3u8`, "index.m3u8"],
  "HLS in fMP4": [`${h264} ${hls} -hls_segment_type fmp4 -hls_segment_filename s%03d.m4s index.m3u8`, "index.m3u8"],
  "HLS with separate audio": [
    `${video} ${audio} ${x264} ${apart} ${hls} -hls_segment_filename %v-%03d.ts -master_pl_name index.m3u8 %v.m3u8`,
    "index.m3u8",
  ],
  DASH: [`${h264} -f dash -seg_duration 2 -use_timeline 1 -use_template 1 index.mpd`, "index.mpd"],
  "DASH with a duration of all segments": [
    `${h264} -f dash -seg_duration 2 -use_timeline 0 -use_template 1 index.mpd`,
    "index.mpd",
  ],
  "a progressive MP4": [`${h264} -movflags +faststart index.mp4`, "index.mp4"],
  "a progressive MP4 with its index at the end": [`${h264} index.mp4`, "index.mp4"],
  "a fragmented MP4": [`${h264} -movflags +frag_keyframe+empty_moov index.mp4`, "index.mp4"],
  WebM: [`${video} ${audio} ${vp9} index.webm`, "index.webm"],
  "open GOPs in MPEG-TS": [
    `${video} ${audio} ${x264} -x264-params open-gop=1 ${hls} -hls_segment_filename s%03d.ts index.m3u8`,
    "index.m3u8",
  ],
} as const;

const types: Readonly<Record<string, string>> = {
  m3u8: "application/vnd.apple.mpegurl",
  mpd: "application/dash+xml",
  ts: "video/mp2t",
  m4s: "video/iso.segment",
  mp4: "video/mp4",
  webm: "video/webm",
};

const known = new Map<string, ReturnType<typeof makeMedia>>();

function makeOnce(line: string, make: () => ReturnType<typeof makeMedia>): ReturnType<typeof makeMedia> {
  const media = known.get(line) ?? make();
  known.set(line, media);
  return media;
}

/** Makes one of them, once for all tests; returns what a server has then, to which a test may add. */
export async function makeLongMedia(name: keyof typeof longMedia): ReturnType<typeof makeMedia> {
  const [line, entry] = longMedia[name];
  const media = makeOnce(line, async () => {
    if (!line.includes(source.name)) return makeMedia(line, entry);
    const { resources } = await makeOnce(source.line, () => makeMedia(`${source.line} ${source.name}`, source.name));
    return makeMedia(line, entry, resources);
  });
  return { resources: new Map((await media).resources), entry };
}

/** Makes files with FFmpeg, whose arguments are in `line`, apart by spaces; a bar stands for a space in one. It may read `inputs`. */
export async function makeMedia(
  line: string,
  entry: string,
  inputs: Resources = new Map(),
): Promise<{ resources: Resources; entry: string }> {
  const words = line.split(" ").map((word) => word.replace("|", " "));
  const key = keyOf("ffmpeg", ["files", ...words], inputs);
  const kept = findKept(key);
  const made = kept === undefined ? await makeFiles(words, inputs) : (deserialize(kept) as MadeFile[]);
  if (kept === undefined) keep(key, serialize(made));
  const files = made.map(([file, bytes]) => {
    const type = types[file.slice(file.lastIndexOf(".") + 1)] ?? "application/octet-stream";
    return [file, resource(type, Buffer.from(bytes))] as const;
  });
  return { resources: new Map(files), entry };
}

type MadeFile = [name: string, bytes: Uint8Array];

async function makeFiles(words: readonly string[], inputs: Resources): Promise<MadeFile[]> {
  const folder = mkdtempSync(join(tmpdir(), "unreel-long-"));
  try {
    for (const [path, { body }] of inputs) writeFileSync(join(folder, path), body);
    await promisify(execFile)("ffmpeg", ["-v", "error", "-nostdin", "-y", ...words], { cwd: folder });
    const made = readdirSync(folder).filter((file) => !inputs.has(file));
    return made.map((file) => [file, readFileSync(join(folder, file))]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
