import { execFileSync } from "node:child_process";
import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";

/** Makes media of any size with ffmpeg in `folder`: a looped clip of noise. */
export interface MediaMaker {
  /** An HLS stream in MPEG-TS of `segments` segments of about `segmentBytes`; returns its path. */
  hls(name: string, segments: number, segmentBytes: number): string;
  /** Makes an MP4 of about `bytes`; returns its path. */
  mp4(name: string, bytes: number): string;
}

const segmentS = 4;
const clipS = 20;

export function createMediaMaker(folder: string): MediaMaker {
  const clips = new Map<number, { path: string; bytes: number }>();

  function clip(bitsPerSecond: number): { path: string; bytes: number } {
    const known = clips.get(bitsPerSecond);
    if (known !== undefined) return known;
    const path = join(folder, `clip-${bitsPerSecond}.mp4`);
    const rate = `${bitsPerSecond}`;
    const picture = `testsrc2=size=1280x720:rate=25:duration=${clipS},noise=alls=30:allf=t`;
    const tone = `sine=frequency=440:sample_rate=48000:duration=${clipS}`;
    const exact = "-c:v libx264 -preset ultrafast -pix_fmt yuv420p -g 100 -sc_threshold 0";
    const steady = `-b:v ${rate} -minrate ${rate} -maxrate ${rate} -bufsize ${rate}`;
    ffmpeg(`-f lavfi -i ${picture} -f lavfi -i ${tone} ${exact} ${steady} -c:a aac -t ${clipS}`, path);
    const made = { path, bytes: statSync(path).size };
    clips.set(bitsPerSecond, made);
    return made;
  }

  return {
    hls(name, segments, segmentBytes) {
      const { path } = clip(Math.round((segmentBytes * 8) / segmentS));
      mkdirSync(join(folder, name));
      const cut = `-f hls -hls_time ${segmentS} -hls_list_size 0 -hls_playlist_type vod`;
      ffmpeg(`-stream_loop -1 -i ${path} -t ${segments * segmentS} -c copy ${cut}`, join(folder, name, "index.m3u8"));
      return `${name}/index.m3u8`;
    },
    mp4(name, bytes) {
      const { path, bytes: once } = clip(8_000_000);
      const loops = Math.max(0, Math.round(bytes / once) - 1);
      const target = join(folder, `${name}.mp4`);
      ffmpeg(`-stream_loop ${loops} -i ${path} -c copy -movflags +faststart`, target);
      return `${name}.mp4`;
    },
  };
}

/** Splits arguments at spaces. */
function ffmpeg(args: string, target: string): void {
  execFileSync("ffmpeg", ["-v", "error", "-y", ...args.split(" "), target], {
    stdio: ["ignore", "inherit", "inherit"],
  });
}
