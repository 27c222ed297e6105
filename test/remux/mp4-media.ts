import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { makeSharedFolder } from "../folder.ts";
import { Mp4Writer } from "../../src/remux/mp4/write/writer.ts";
import { createMp4Demuxer } from "../../src/remux/mp4/read/demuxer.ts";
import type { SegmentTiming, TrackKind } from "../../src/remux/samples.ts";
import { Timelines } from "../../src/remux/timelines.ts";
import { makeFile, readMedia, readMediaSync } from "../media/read-media.ts";

const encoders = spawnSync("ffmpeg", ["-hide_banner", "-encoders"], { encoding: "utf8" }).stdout;

/** Returns why a test that needs these encoders of ffmpeg cannot run; `false` if it can. */
export function missing(...names: string[]): string | false {
  if (typeof encoders !== "string") return "ffmpeg is not installed";
  const absent = names.filter((name) => !encoders.includes(` ${name} `));
  return absent.length > 0 && `this ffmpeg has no ${absent.join(", ")}`;
}

/** Creates a temporary folder. */
export function openFolder(): { path: (name: string) => string } {
  const folder = makeSharedFolder();
  return { path: (name) => join(folder, name) };
}

/** Runs ffmpeg with the space-separated arguments in `line`, the last of which is the file that it makes, or `-`; returns its output. */
export function ffmpeg(line: string): string {
  const words = line.split(" ");
  const path = words.at(-1)!;
  if (path === "-") return readMediaSync("ffmpeg", "-v", "error", "-nostdin", ...words);
  makeFile(words.slice(0, -1), path);
  return "";
}

export const videoInput = (seconds: number) => `-f lavfi -i testsrc=size=160x90:rate=25:duration=${seconds}`;
export const audioInput = (seconds: number) => `-f lavfi -i sine=duration=${seconds}:sample_rate=44100`;

/** What ffprobe and ffmpeg report of a file. */
export interface FileSummary {
  streams: { codec: string; packets: number; startS: number }[];
  durationS: number;
  /** MD5 of the decoded video. */
  videoMd5: string;
  /** Warnings of the decoders. */
  complaints: string;
}

export async function inspectFile(path: string): Promise<FileSummary> {
  const entries = "stream=codec_type,codec_name,nb_read_packets,start_time:format=duration";
  const probing = ["-v", "quiet", "-count_packets", "-show_entries", entries, "-of", "json", path];
  const decoding = `-v warning -nostdin -i ${path} -map 0 -f null - -map v? -fps_mode passthrough -f md5 -`;
  const [probed, decoded] = await Promise.all([
    readMedia("ffprobe", ...probing),
    readMedia("ffmpeg", ...decoding.split(" ")),
  ]);
  const json: unknown = JSON.parse(probed.stdout);
  const { streams, format } = json as {
    streams: Record<"codec_type" | "codec_name" | "nb_read_packets" | "start_time", string>[];
    format: { duration: string };
  };
  return {
    streams: streams.map((stream) => ({
      codec: stream.codec_name,
      packets: Number(stream.nb_read_packets),
      startS: Number(stream.start_time),
    })),
    durationS: Number(format.duration),
    videoMd5: streams.some(({ codec_type }) => codec_type === "video") ? decoded.stdout : "",
    complaints: decoded.stderr,
  };
}

/** Returns how long a file says that it is, seconds. */
export async function readDuration(path: string): Promise<number> {
  const { stdout } = await readMedia(
    "ffprobe",
    ..."-v quiet -show_entries format=duration -of csv=p=0".split(" "),
    path,
  );
  return Number(stdout);
}

/** A source of segments, or of the paths of files. */
export interface Source {
  segments: Iterable<Uint8Array | string>;
  /** Default: both. */
  kinds?: readonly TrackKind[];
  /** Default: all are on the first timeline. */
  timing?: (index: number) => SegmentTiming;
}

const bothKinds: readonly TrackKind[] = ["video", "audio"];
export const start: SegmentTiming = { timeline: 0, offsetS: null };

/** Demuxes the sources one after the other into one MP4. */
export function remux(sources: readonly Source[], path: string, expectedS: number | null = 4) {
  const writer = new Mp4Writer({ path, expectedS });
  const timelines = new Timelines();
  for (const { segments, kinds = bothKinds, timing = () => start } of sources) {
    const demuxer = createMp4Demuxer({ sink: writer, timelines, kinds });
    let i = 0;
    for (const segment of segments) {
      if (typeof segment !== "string") demuxer.read(segment, timing(i));
      else for (const _ of demuxer.readFile({ path: segment }, timing(i)));
      i++;
    }
    demuxer.flush();
  }
  return writer.finish();
}

/** Returns the types of a file's top-level boxes. */
export function layoutOf(path: string): string[] {
  const bytes = readFileSync(path);
  const types: string[] = [];
  for (let at = 0; at < bytes.length; at += bytes.readUInt32BE(at)) {
    types.push(bytes.toString("latin1", at + 4, at + 8));
  }
  return types;
}
