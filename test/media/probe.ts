import { open } from "node:fs/promises";
import { mediabunny } from "../../src/engines/native/inspect/local-input.ts";
import { readMedia } from "./read-media.ts";

/** What a media file holds. */
interface Probe {
  /** Seconds; NaN where the file does not tell. */
  durationS: number;
  streams: ProbedStream[];
}

export interface ProbedStream {
  kind: "video" | "audio";
  codec: string;
  /** Packets: pictures of video. */
  frames: number;
  /** Pixels; 0 for sound. */
  width: number;
  height: number;
}

/** Whether ffmpeg and ffprobe can be run here. */
export const hasFfmpeg: boolean = await readMedia("ffprobe", "-version").then(
  () => true,
  () => false,
);

/** What is in the file, video first: as ffprobe says it, where that is missing as mediabunny does. */
export async function probe(path: string): Promise<Probe> {
  const { durationS, streams } = hasFfmpeg ? await askFfprobe(path) : await readBack(path);
  return { durationS, streams: videoFirst(streams) };
}

function videoFirst(streams: readonly ProbedStream[]): ProbedStream[] {
  return streams.toSorted((a, b) => (a.kind < b.kind ? 1 : -1));
}

async function askFfprobe(path: string): Promise<Probe> {
  const entries = "stream=index,codec_type,codec_name,width,height,nb_read_packets:format=duration";
  const asked = ["-v", "error", "-count_packets", "-show_entries", entries, "-of", "json", path];
  const { stdout } = await readMedia("ffprobe", ...asked);
  const { streams, format } = JSON.parse(stdout) as {
    streams: {
      codec_type: "video" | "audio";
      codec_name: string;
      width?: number;
      height?: number;
      nb_read_packets?: string;
    }[];
    format: { duration?: string };
  };
  return {
    durationS: Number(format.duration ?? Number.NaN),
    streams: streams.map((stream) => ({
      kind: stream.codec_type,
      codec: stream.codec_name,
      frames: Number(stream.nb_read_packets ?? 0),
      width: stream.width ?? 0,
      height: stream.height ?? 0,
    })),
  };
}

async function readBack(path: string): Promise<Probe> {
  const { ALL_FORMATS, FilePathSource, Input } = mediabunny;
  using input = new Input({ source: new FilePathSource(path), formats: ALL_FORMATS });
  const streams: ProbedStream[] = [];
  for (const track of await input.getTracks()) {
    const { packetCount } = await track.computePacketStats();
    const codec = (await track.getCodec()) ?? "unknown";
    const [width, height] = track.isVideoTrack() ? [await track.getCodedWidth(), await track.getCodedHeight()] : [0, 0];
    const kind = track.isVideoTrack() ? "video" : "audio";
    streams.push({ kind, codec: names[codec] ?? codec, frames: packetCount, width, height });
  }
  const end = await input.computeDuration();
  return { durationS: end - (await input.getFirstTimestamp()), streams };
}

/** What a media file holds, and what comes of it if it is decoded to its end. */
export interface Decoded extends Probe {
  /** What ffmpeg finds wrong; empty where all is right. */
  faults: string;
  /** A hash of each picture, in the order in which they are shown. */
  pictures: string[];
}

/** Decodes the first video and all audio, which needs ffmpeg: one run of it, as starting it takes longer than its work. */
export async function decode(path: string): Promise<Decoded> {
  // The decoded video comes first, if there is any, then every stream as it is.
  const listed =
    "-map 0:v:0? -map 0 -c copy -c:v:0 rawvideo -copyinkf -copypriorss 1 -fps_mode passthrough -f framemd5 -";
  const played = "-map 0:v:0? -map 0:a? -fps_mode passthrough -f null -";
  const outputs = `${listed} ${played}`.split(" ");
  const asked = ["-v", "level+info", "-nostats", "-nostdin", "-i", path, ...outputs];
  const { stdout, stderr } = await readMedia("ffmpeg", ...asked);
  const streams: ProbedStream[] = [];
  const pictures: string[] = [];
  for (const line of stdout.split("\n")) {
    const [, name, index, value = ""] = /^#(media_type|codec_id|dimensions) (\d+): (.+)$/.exec(line) ?? [];
    const [place = ""] = line.split(",");
    const stream = streams[Number(index ?? place)];
    if (name === "media_type")
      streams.push({ kind: value as ProbedStream["kind"], codec: "", frames: 0, width: 0, height: 0 });
    if (stream === undefined) continue;
    if (name === "codec_id") stream.codec = value;
    if (name === "dimensions") [stream.width = 0, stream.height = 0] = value.split("x").map(Number);
    if (!/^\d/.test(line)) continue;
    if (stream.codec === "rawvideo") pictures.push(line.slice(line.lastIndexOf(",") + 1).trim());
    stream.frames += 1;
  }
  const faults = stderr.split("\n").filter((line) => /\[(?:error|fatal|panic)\]/.test(line));
  return {
    durationS: secondsIn(/ Duration: (\d+):(\d+):([\d.]+)/.exec(stderr)),
    streams: videoFirst(streams.filter(({ codec }) => codec !== "rawvideo")),
    faults: faults.join("\n"),
    pictures,
  };
}

function secondsIn(match: readonly string[] | null): number {
  const [, hours, minutes, seconds] = match ?? [];
  return Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds);
}

/** Whether an MP4's index comes before its media, by the boxes of the top level. */
export async function isIndexFirst(path: string): Promise<boolean> {
  await using file = await open(path);
  const { size } = await file.stat();
  const head = Buffer.alloc(16);
  for (let at = 0; at < size;) {
    await file.read(head, 0, 16, at);
    const type = head.toString("latin1", 4, 8);
    if (type === "moov" || type === "mdat") return type === "moov";
    const length = head.readUInt32BE(0);
    at += length === 1 ? Number(head.readBigUInt64BE(8)) : length;
    if (length === 0) break;
  }
  return false;
}

/** mediabunny's names of codecs that ffmpeg calls otherwise. */
const names: Readonly<Record<string, string>> = { avc: "h264" };
