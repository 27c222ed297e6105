import { open } from "node:fs/promises";
import { ALL_FORMATS, FilePathSource, Input } from "mediabunny";
import { readMedia } from "./read-media.ts";

/** What a media file holds. */
export interface Probe {
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
  return { durationS, streams: streams.toSorted((a, b) => (a.kind < b.kind ? 1 : -1)) };
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

/** What comes of a file that is decoded to its end. */
export interface Decoded {
  /** What ffmpeg finds wrong; empty where all is right. */
  faults: string;
  /** A hash of each picture, in the order in which they are shown. */
  pictures: string[];
}

/** Decodes the streams that `probe` found, which needs ffmpeg. */
export async function decode(path: string, { streams }: Probe): Promise<Decoded> {
  const outputs = streams.map(({ kind }) =>
    kind === "video"
      ? ["-map", "0:v:0", "-fps_mode", "passthrough", "-f", "framemd5", "-"]
      : ["-map", "0:a:0", "-f", "null", "-"],
  );
  const asked = ["-v", "error", "-i", path, ...outputs.flat()];
  const { stdout, stderr } = await readMedia("ffmpeg", ...asked);
  const lines = stdout.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return {
    faults: stderr,
    pictures: lines.map((line) => line.slice(line.lastIndexOf(",") + 1).trim()),
  };
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
