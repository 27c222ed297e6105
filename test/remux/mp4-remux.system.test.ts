import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  type FileSummary,
  inspectFile,
  ffmpeg,
  layoutOf,
  missing,
  openFolder,
  videoInput,
  remux,
  audioInput,
} from "./mp4-media.ts";

const folder = openFolder();

const av = `${videoInput(2)} ${audioInput(2)}`;
const h264 = "-c:v libx264 -preset ultrafast -bf 2 -g 25";
const fragmented = "-movflags +frag_keyframe+empty_moov+default_base_moof";

/**
 * What a file is made with, and the encoders that it takes. `isTogether`: its tracks start at the same
 * time, though ffmpeg reports otherwise for fragments.
 */
const files: Record<string, { line: string; encoders: string[]; isTogether?: true }> = {
  "H.264 with B-frames and AAC": {
    line: `${av} ${h264} -c:a aac ${fragmented}`,
    encoders: ["libx264", "aac"],
  },
  "priming in an edit list": {
    line: `${av} ${h264} -c:a aac -movflags +frag_keyframe+default_base_moof+delay_moov`,
    encoders: ["libx264", "aac"],
    isTogether: true,
  },
  "offsets counted from the start of the file": {
    line: `${av} ${h264} -c:a aac -movflags +frag_keyframe`,
    encoders: ["libx264", "aac"],
  },
  "negative composition offsets": {
    line: `${av} ${h264} -c:a aac ${fragmented}+negative_cts_offsets`,
    encoders: ["libx264", "aac"],
    isTogether: true,
  },
  "a moof box for each track": {
    line: `${av} ${h264} -c:a aac ${fragmented}+separate_moof`,
    encoders: ["libx264", "aac"],
  },
  "HEVC and AC-3": {
    line: `${av} -c:v libx265 -preset ultrafast -x265-params log-level=none -c:a ac3 ${fragmented}+delay_moov`,
    encoders: ["libx265", "ac3"],
    isTogether: true,
  },
  "VP9 and Opus": {
    line: `${av} -c:v libvpx-vp9 -deadline realtime -c:a libopus ${fragmented}`,
    encoders: ["libvpx-vp9", "libopus"],
  },
  "AV1 and FLAC": {
    line: `${av} -c:v libaom-av1 -cpu-used 8 -usage realtime -c:a flac -strict -2 ${fragmented}`,
    encoders: ["libaom-av1", "flac"],
  },
  "E-AC-3 alone": {
    line: `${audioInput(2)} -c:a eac3 ${fragmented}+delay_moov`,
    encoders: ["eac3"],
  },
  "a variable frame rate": {
    line: `${videoInput(2)} ${h264} -vf select='not(eq(mod(n,5),2))' -vsync vfr ${fragmented}`,
    encoders: ["libx264"],
  },
  "a file that is not fragmented": {
    line: `${av} ${h264} -c:a aac`,
    encoders: ["libx264", "aac"],
  },
};

/** Returns how much later the second stream starts than the first, seconds. */
function delayOf({ streams: [first, second] }: FileSummary): number {
  return first && second ? second.startS - first.startS : 0;
}

describe("remuxing MP4", () => {
  for (const [name, { line, encoders, isTogether }] of Object.entries(files)) {
    const reason = missing(...encoders);
    it.skipIf(reason)(`keeps every sample and its time: ${name}${reason ? ` (${reason})` : ""}`, async () => {
      const [source, target] = [folder.path("source.mp4"), folder.path("target.mp4")];
      ffmpeg(`${line} ${source}`);
      const result = remux([{ segments: [source] }], target);
      const [expected, actual] = await Promise.all([inspectFile(source), inspectFile(target)]);
      expect(actual.complaints).toBe("");
      expect(actual.videoMd5).toBe(expected.videoMd5);
      expect(actual.streams.map(({ codec, packets }) => [codec, packets])).toEqual(
        expected.streams.map(({ codec, packets }) => [codec, packets]),
      );
      expect(delayOf(actual)).toBeCloseTo(isTogether ? 0 : delayOf(expected), 3);
      expect(Math.abs(actual.durationS - expected.durationS)).toBeLessThan(0.05);
      expect(Math.abs(result.durationS - expected.durationS)).toBeLessThan(0.05);
      expect(layoutOf(target)).toEqual(["ftyp", "moov", "mdat"]);
    });
  }

  it.skipIf(missing("libx264", "aac"))("decodes to the same audio if there is priming", async () => {
    const [source, target] = [folder.path("primed.mp4"), folder.path("target.mp4")];
    ffmpeg(`${av} ${h264} -c:a aac ${source}`);
    remux([{ segments: [source] }], target);
    const heard = (path: string) => ffmpeg(`-i ${path} -map a -f md5 -`);
    expect(heard(target)).toBe(heard(source));
  });

  it.skipIf(missing("libx264", "aac"))("reads a whole file as one segment", async () => {
    const [source, target] = [folder.path("whole.mp4"), folder.path("target.mp4")];
    ffmpeg(`${av} ${h264} -c:a aac -movflags +faststart ${source}`);
    remux([{ segments: [readFileSync(source)] }], target);
    expect(await inspectFile(target)).toEqual(await inspectFile(source));
  });

  it.skipIf(missing("libx264", "aac"))("joins tracks from two sources, and a late one keeps its distance", async () => {
    const [video, audio, target] = ["v.mp4", "a.mp4", "target.mp4"].map(folder.path) as [string, string, string];
    ffmpeg(`${videoInput(2)} ${h264} ${fragmented}+negative_cts_offsets ${video}`);
    ffmpeg(`${audioInput(2)} -c:a aac ${fragmented} ${audio}`);
    const timing = () => ({ timeline: 0, offsetS: 1.5 });
    remux([{ segments: [video] }, { segments: [audio], kinds: ["audio"], timing }], target);
    const { streams, complaints } = await inspectFile(target);
    expect(streams.map(({ codec }) => codec)).toEqual(["h264", "aac"]);
    expect(streams[0]?.startS).toBe(0);
    expect(Math.abs((streams[1]?.startS ?? 0) - 1.5)).toBeLessThan(0.03);
    expect(complaints).toBe("");
  });

  it.skipIf(missing("libx264", "aac"))("leaves out kinds that are not wanted", async () => {
    const [source, target] = [folder.path("source.mp4"), folder.path("target.mp4")];
    ffmpeg(`${av} ${h264} -c:a aac ${fragmented} ${source}`);
    const result = remux([{ segments: [source], kinds: ["audio"] }], target);
    expect((await inspectFile(target)).streams.map(({ codec }) => codec)).toEqual(["aac"]);
    expect(result).toMatchObject({ width: null, height: null });
  });
});
