import { describe, expect, it } from "vitest";
import { Mp4Writer } from "../../src/remux/mp4/write/writer.ts";
import { createMpegTsDemuxer } from "../../src/remux/mpeg-ts/demuxer.ts";
import { Timelines } from "../../src/remux/timelines.ts";
import { createMediaFolder, hasFfmpeg, videoInput, probePackets, probeStreams, audioInput, x264 } from "./ts-media.ts";
import { demux, start } from "./ts-recorder.ts";
import { decodedMd5 } from "../media/read-media.ts";

const x265 = "-c:v libx265 -preset ultrafast -g 25 -x265-params log-level=none".split(" ");
const aac = ["-c:a", "aac"];
const surround = ["-ac", "6", "-ar", "48000"];

/** Arguments of ffmpeg for each kind of stream. */
const matrix: Record<string, { args: string[]; codecs: string[] }> = {
  "H.264 with B-frames and AAC": {
    args: [...videoInput(), ...audioInput(), ...x264, ...aac],
    codecs: ["h264", "aac"],
  },
  "H.264 in several slices with open GOPs": {
    args: [...videoInput(), ...x264, "-x264-params", "slices=4:open-gop=1:keyint=20"],
    codecs: ["h264"],
  },
  "interlaced H.264": {
    args: [...videoInput(), ...x264, "-flags", "+ilme+ildct", "-x264-params", "tff=1"],
    codecs: ["h264"],
  },
  "H.264 that refreshes without key frames": {
    args: [...videoInput(), ...x264, "-x264-params", "intra-refresh=1:keyint=25"],
    codecs: ["h264"],
  },
  "HEVC and AAC": {
    args: [...videoInput(), ...audioInput(), ...x265, ...aac],
    codecs: ["hevc", "aac"],
  },
  "H.264 and MP3": {
    args: [...videoInput(), ...audioInput(), ...x264, "-c:a", "libmp3lame"],
    codecs: ["h264", "mp3"],
  },
  "MP3 at a half rate": { args: [...audioInput(2, 22_050), "-c:a", "libmp3lame"], codecs: ["mp3"] },
  "AC-3": { args: [...audioInput(), ...surround, "-c:a", "ac3"], codecs: ["ac3"] },
  "AC-3 as in DVB": {
    args: [...audioInput(), ...surround, "-c:a", "ac3", "-mpegts_flags", "system_b"],
    codecs: ["ac3"],
  },
  "AC-3 at 44.1 kHz": { args: [...audioInput(), "-c:a", "ac3", "-b:a", "96k"], codecs: ["ac3"] },
  "E-AC-3": { args: [...audioInput(), ...surround, "-c:a", "eac3"], codecs: ["eac3"] },
  "AAC in 5.1": { args: [...audioInput(), ...surround, ...aac], codecs: ["aac"] },
  "AAC with a channel layout that it lists itself": {
    args: [...audioInput(), "-af", "aformat=channel_layouts=quad", ...aac],
    codecs: ["aac"],
  },
  "a stream whose times wrap around": {
    args: [...videoInput(), ...audioInput(), ...x264, ...aac, "-output_ts_offset", "95440"],
    codecs: ["h264", "aac"],
  },
};

describe.skipIf(!hasFfmpeg)("an MPEG-TS demuxer", () => {
  const media = createMediaFolder();

  for (const [what, { args, codecs }] of Object.entries(matrix)) {
    it(`reads the packets that ffmpeg sees, into an MP4 that decodes to the same: ${what}`, () => {
      const source = media.make("source.ts", ...args);
      const recorder = demux([source]);
      const seen = probePackets(media.path("source.ts"));
      for (const kind of ["video", "audio"] as const) {
        const packets = seen[kind];
        const { samples, formats } = packets.length > 0 ? recorder.track(kind) : noTrack;
        expect(samples.length).toBe(packets.length);
        expect(samples.map(({ isSync }) => isSync)).toEqual(packets.map(isKey));
        const scale = 90_000 / (formats[0]?.timescale ?? 1);
        const first = samples[0] ? samples[0].dts * scale - packets[0]!.dts : 0;
        for (const [i, sample] of samples.entries()) {
          expect(Math.abs(sample.dts * scale - packets[i]!.dts - first)).toBeLessThan(maxJitter);
          expect(Math.abs(sample.pts * scale - packets[i]!.pts - first)).toBeLessThan(maxJitter);
        }
      }
      writeMp4(source, media.path("result.mp4"));
      expect(probeStreams(media.path("result.mp4"), "codec_name")).toEqual(codecs);
      const kinds = recorder.tracks.map(({ formats }) => formats[0]!.kind);
      expect(decodedMd5(media.path("result.mp4"), ...kinds)).toBe(decodedMd5(media.path("source.ts"), ...kinds));
    });
  }

  it("leaves out a kind that is not wanted", () => {
    const source = media.make("both.ts", ...videoInput(1), ...audioInput(1), ...x264, ...aac);
    expect(demux([source], ["audio"]).tracks.map(({ formats }) => formats[0]!.kind)).toEqual(["audio"]);
  });

  it("states the width as shown if pixels are not square", () => {
    const source = media.make("wide.ts", ...videoInput(0.4, "720x576"), "-vf", "setsar=64/45", ...x264);
    expect(demux([source]).track("video").formats[0]).toMatchObject({ width: 1024, height: 576 });
    writeMp4(source, media.path("wide.mp4"));
    expect(probeStreams(media.path("wide.mp4"), "width,height,sample_aspect_ratio")).toEqual(["720", "576", "64:45"]);
  });

  for (const tools of [
    "pools=1",
    "scaling-list=default",
    "amp=1:sao=0:bframes=4:ref=5:open-gop=0",
    "keyint=60:b-pyramid=1:hrd=0",
  ]) {
    it(`keeps pixels of HEVC that are not square, whatever tools it uses: ${tools}`, () => {
      const codec = ["-c:v", "libx265", "-x265-params", `log-level=none:${tools}`];
      const source = media.make("wide.ts", ...videoInput(0.4, "720x576"), "-vf", "setsar=64/45", ...codec);
      writeMp4(source, media.path("wide.mp4"));
      expect(probeStreams(media.path("wide.mp4"), "width,height,sample_aspect_ratio")).toEqual(["720", "576", "64:45"]);
    });
  }

  it("reads the language of the audio", () => {
    const tagged = ["-metadata:s:a:0", "language=deu"];
    const source = media.make("german.ts", ...audioInput(1), ...aac, ...tagged);
    expect(demux([source]).track("audio").formats[0]?.language).toBe("de");
  });
});

/** Ticks of 1/90000 s: ffmpeg adds up rounded durations, the demuxer counts samples. */
const maxJitter = 90;
const noTrack = { samples: [], formats: [] };

function isKey({ flags }: { flags: string }): boolean {
  return flags.startsWith("K");
}

function writeMp4(source: Uint8Array, path: string): void {
  const sink = new Mp4Writer({ path, expectedS: null });
  const kinds = ["video", "audio"] as const;
  const demuxer = createMpegTsDemuxer({ sink, timelines: new Timelines(), kinds });
  demuxer.read(source, start);
  demuxer.flush();
  sink.finish();
}
