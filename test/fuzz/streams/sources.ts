import { mkdtempSync, rmSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findKept, keep } from "../../media/kept.ts";
import { keyOfFile } from "../../media/read-media.ts";
import { runFfmpeg } from "./ffmpeg.ts";

export const seconds = 3;
export const framesPerSecond = 25;
const video = `-f lavfi -i testsrc2=size=128x72:rate=${framesPerSecond}:duration=${seconds}`;
/** A chirp: no two packets are alike. */
const audio = "-f lavfi -i aevalsrc=0.4*sin(2*PI*(200*t+300*t*t)):d=3:s=";

const encoders = {
  h264: "-c:v libx264 -preset ultrafast -crf 30 -bf 0 -sc_threshold 0",
  "h264-b": "-c:v libx264 -preset veryfast -crf 30 -bf 2 -sc_threshold 0 -x264-params open-gop=0",
  hevc: "-c:v libx265 -preset ultrafast -crf 30 -tag:v hvc1 -x265-params scenecut=0:open-gop=0:info=0:log-level=none",
  vp8: "-c:v libvpx -b:v 200k -deadline realtime -cpu-used 8",
  vp9: "-c:v libvpx-vp9 -b:v 200k -deadline realtime -cpu-used 8",
  av1: "-c:v libsvtav1 -preset 12 -qp 50",
  aac: "-c:a aac -b:a 48k -ac 1",
  "aac-44": "-c:a aac -b:a 48k -ac 1",
  mp3: "-c:a libmp3lame -b:a 48k -ac 1",
  ac3: "-c:a ac3 -b:a 64k -ac 1",
  eac3: "-c:a eac3 -b:a 64k -ac 1",
  opus: "-c:a libopus -b:a 32k -ac 1",
  flac: "-c:a flac -ac 1",
  vorbis: "-c:a libvorbis -b:a 48k -ac 1",
  pcm: "-c:a pcm_s16le -ac 1",
} as const;
export type VideoCodec = "h264" | "h264-b" | "hevc" | "vp8" | "vp9" | "av1";
export type AudioCodec = Exclude<keyof typeof encoders, VideoCodec>;

/** Media made with ffmpeg, each only once. */
export type Sources = ReturnType<typeof createSources>;

export function createSources() {
  const folder = mkdtempSync(join(tmpdir(), "unreel-streams-"));
  const made = new Map<string, Promise<string>>();

  const run = async (path: string, args: (path: string) => Promise<string> | string): Promise<string> => {
    const words = ["-fflags", "+bitexact", ...(await args(path)).split(" ").filter((word) => word !== "")];
    const key = keyOfFile(words.slice(0, -1), path);
    const kept = findKept(key);
    if (kept !== undefined) {
      await writeFile(path, kept);
      return path;
    }
    await ffmpeg(words);
    keep(key, await readFile(path));
    return path;
  };
  const make = (name: string, args: (path: string) => Promise<string> | string): Promise<string> => {
    const path = join(folder, name);
    const making = made.get(path) ?? run(path, args);
    made.set(path, making);
    return making;
  };
  const encode = (codec: VideoCodec | AudioCodec, gop: number): Promise<string> =>
    make(`${codec}-${gop}.mkv`, (path) => {
      const rate = codec === "aac-44" ? 44_100 : 48_000;
      const input = codec in videoCodecs ? `${video} -g ${gop} -keyint_min ${gop}` : `${audio}${rate}`;
      return `${input} -threads 1 ${encoders[codec]} ${path}`;
    });

  return {
    path: (name: string) => join(folder, name),
    /** Returns a file of these tracks in a container, which `args` say. */
    async mux(codecs: readonly (VideoCodec | AudioCodec)[], gop: number, args: string, ext: string): Promise<Buffer> {
      const name = `${codecs.join("+")}-${gop}-${Buffer.from(args).toString("base64url").slice(0, 60)}.${ext}`;
      return readFile(
        await make(name, async (path) =>
          muxing(await Promise.all(codecs.map((each) => encode(each, gop))), args, path),
        ),
      );
    },
    /** Returns one file of all segments, and the playlist that says where they are. */
    async segment(codecs: readonly (VideoCodec | AudioCodec)[], gop: number, type: "mpegts" | "fmp4") {
      const name = `${codecs.join("+")}-${gop}-${type}.m3u8`;
      const options = `-f hls -hls_time ${(gop - 0.5) / framesPerSecond} -hls_list_size 0 -hls_playlist_type vod -hls_flags single_file -hls_segment_type ${type}`;
      const playlist = await make(name, async (path) => {
        const inputs = await Promise.all(codecs.map((each) => encode(each, gop)));
        return muxing(inputs, `${options} -hls_segment_filename ${path}.media`, path);
      });
      return { medium: await readFile(`${playlist}.media`), playlist: await readFile(playlist, "utf8") };
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

const videoCodecs: Readonly<Record<string, true>> = {
  h264: true,
  "h264-b": true,
  hevc: true,
  vp8: true,
  vp9: true,
  av1: true,
};

function muxing(inputs: readonly string[], args: string, path: string): string {
  const maps = inputs.map((_, index) => `-map ${index}`).join(" ");
  return `${inputs.map((input) => `-i ${input}`).join(" ")} ${maps} -c copy -strict -2 ${args} ${path}`;
}

async function ffmpeg(args: readonly string[]): Promise<void> {
  const { error } = await runFfmpeg(["-v", "error", "-y", ...args]);
  if (error !== null) throw new Error(error);
}
