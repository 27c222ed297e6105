import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { findKept, keep, keyOf } from "../../media/kept.ts";
import { runFfmpeg } from "./ffmpeg.ts";

/** A decoded picture, or a packet of audio: a hash of its bytes and its time, seconds. */
export interface Frame {
  hash: string;
  atS: number;
  durationS: number;
}

export interface Frames {
  video: Frame[];
  audio: Frame[];
  /** Decoded samples of audio that are presented. */
  samples: number;
}

interface Kinds {
  video: boolean;
  audio: boolean;
  isAac: boolean;
  /** Packets of FLAC have numbers, which depend on those before. */
  isFlac: boolean;
}

/** Returns a reader that decodes files of the same bytes only once. */
export function createFrameReader() {
  const known = new Map<string, Promise<Frames>>();
  /** Reads what ffmpeg finds in a file. A file that it cannot read has nothing. */
  return async (path: string, kinds: Kinds): Promise<Frames> => {
    const key = createHash("sha256")
      .update(await readFile(path))
      .update(JSON.stringify(kinds))
      .digest("hex");
    const frames = known.get(key) ?? readFrames(path, kinds);
    known.set(key, frames);
    return frames;
  };
}

async function readFrames(path: string, { video, audio, isAac, isFlac }: Kinds): Promise<Frames> {
  const outputs = [...(video ? ["-map", "0:v:0?"] : []), ...(audio ? ["-map", "0:a:0?", "-map", "0:a:0?"] : [])];
  const codecs = ["-c:v", "rawvideo", "-c:a:0", isFlac ? "pcm_s16le" : "copy", "-c:a:1", "pcm_s16le"];
  const filters = isAac ? ["-bsf:a:0", "aac_adtstoasc"] : [];
  const timing = ["-fps_mode", "passthrough", "-enc_time_base", "-1", "-avoid_negative_ts", "disabled"];
  const args = [
    "-v",
    "error",
    "-copyts",
    "-threads",
    "1",
    "-i",
    path,
    ...outputs,
    ...codecs,
    ...filters,
    ...timing,
    "-autoscale",
    "0",
    "-f",
    "framemd5",
    "-",
  ];
  const key = keyOf("ffmpeg", args);
  const kept = findKept(key)?.toString();
  if (kept !== undefined) return parse(kept);
  const { stdout, error } = await runFfmpeg(args);
  if (error === null) keep(key, stdout);
  return parse(stdout);
}

function parse(text: string): Frames {
  const frames: Frames = { video: [], audio: [], samples: 0 };
  const kinds: string[] = [];
  const bases: number[] = [];
  for (const line of text.split("\n")) {
    const [, name, index, value = ""] = /^#(tb|media_type|codec_id) (\d+): (.*)$/.exec(line) ?? [];
    if (name === "tb") bases[Number(index)] = Number(value.split("/")[0]) / Number(value.split("/")[1]);
    if (name === "codec_id")
      kinds[Number(index)] =
        value === "rawvideo" ? "video" : value.startsWith("pcm_") && kinds.includes("audio") ? "pcm" : "audio";
    if (line.startsWith("#") || line === "") continue;
    const [stream = 0, , pts = 0, duration = 0, size = 0] = line.split(",").slice(0, 5).map(Number);
    const kind = kinds[stream];
    const base = bases[stream] ?? 0;
    const hash = line.split(",")[5]?.trim() ?? "";
    if (kind === "pcm") frames.samples += size / 2;
    else frames[kind === "video" ? "video" : "audio"].push({ hash, atS: pts * base, durationS: duration * base });
  }
  return frames;
}
