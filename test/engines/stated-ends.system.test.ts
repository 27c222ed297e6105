import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { assembleFile } from "./assemble-file.ts";
import { createMediaFolder, hasFfmpeg, videoInput, x264 } from "../remux/ts-media.ts";
import { readMediaSync } from "../media/read-media.ts";

const media = createMediaFolder();
const folder = media.path(".");

/** Makes a file of noise, of which no two parts sound alike. */
const makeNoise = (name: string, seconds: number, ...options: string[]) =>
  media.make(name, "-f", "lavfi", "-i", `anoisesrc=d=${seconds}:r=48000:seed=1`, ...options);

/** Returns the samples that a player hears of a part. */
const heard = (path: string, part = "0:0.5") =>
  readMediaSync("ffmpeg", "-v", "error", "-i", path, "-map", "0:a", "-af", `atrim=${part}`, "-f", "md5", "-");

/** Makes an MP4 of video and of a file with its audio. */
function join(name: string) {
  media.make("silent.mp4", ...videoInput(1), ...x264);
  return assembleFile({ path: media.path("silent.mp4"), audio: media.path(name), folder });
}

describe.skipIf(!hasFfmpeg)("audio of a file that says what decoders leave out", () => {
  it("begins, next to video, where decoders of an MP3 file begin", async () => {
    makeNoise("tagged.mp3", 1, "-c:a", "libmp3lame");
    const { path } = await join("tagged.mp3");
    expect(heard(path)).toBe(heard(media.path("tagged.mp3")));
  });

  it("begins with its first frame if an MP3 file says nothing", async () => {
    makeNoise("bare.mp3", 1, "-c:a", "libmp3lame", "-write_xing", "0");
    const { path, warnings } = await join("bare.mp3");
    expect(heard(path)).toBe(heard(media.path("bare.mp3")));
    expect(warnings).toEqual([]);
  });

  it.each(["opus", "mp3"])("is cut to the sample, counted from where decoders begin: %s", async (kind) => {
    makeNoise(`cut.${kind}`, 2.01, "-c:a", kind === "mp3" ? "libmp3lame" : "libopus");
    const source = media.path(`cut.${kind}`);
    const cut = async (startS: number) =>
      (await assembleFile({ path: source, ranges: [{ startS, endS: Infinity }], folder })).path;
    expect(heard(await cut(0), "0:9")).toBe(heard(source, "0:9"));
    // After a while a decoder has the same state.
    expect(heard(await cut(0.03), "0.02:9")).toBe(heard(source, "0.05:9"));
  });

  it("ends with the last of the MP3 files that were put together, whatever the first one says of its own end", async () => {
    // FFmpeg leaves out a frame after tags between frames.
    const options = ["-c:a", "libmp3lame", "-id3v2_version", "0"];
    makeNoise("first.mp3", 1, ...options);
    makeNoise("second.mp3", 2, ...options);
    const files = ["first.mp3", "second.mp3"].map((name) => readFileSync(media.path(name)));
    const path = media.path("together.mp3");
    writeFileSync(path, Buffer.concat(files));
    const copy = await assembleFile({ path, ranges: [{ startS: 0, endS: Infinity }], folder });
    expect(heard(copy.path, "0:9")).toBe(heard(path, "0:9"));
  });

  // A packet of Opus has 960 samples, and 312 before the first are left out.
  it.each([
    ["opus", 1, ["end_padding"]],
    ["opus", (50 * 960 - 312) / 48_000, []],
    ["vorbis", 1.0021, ["end_padding"]],
  ] as const)(
    "has a warning if Ogg leaves out its end, which an MP4 cannot do for all players: %s, %d s",
    async (codec, seconds, codes) => {
      makeNoise("end.ogg", seconds, "-c:a", `lib${codec}`);
      const { warnings } = await join("end.ogg");
      expect(warnings.map(({ code }) => code)).toEqual(codes);
    },
  );

  it("has a warning of streams that follow the first one in an Ogg file", async () => {
    makeNoise("first.ogg", (50 * 960 - 312) / 48_000, "-c:a", "libopus");
    const link = readFileSync(media.path("first.ogg"));
    writeFileSync(media.path("chained.ogg"), Buffer.concat([link, link]));
    const { warnings } = await join("chained.ogg");
    const message = "the file has 2 streams one after the other, of which only the first is read";
    expect(warnings).toEqual([{ code: "frames_missing", message }]);
  });

  it("is named if it is FLAC in Ogg, which no other file can be made of", async () => {
    makeNoise("flac.oga", 1, "-c:a", "flac");
    const { warnings } = await join("flac.oga");
    const message = "the audio of the source cannot be read: its codec is FLAC";
    expect(warnings).toContainEqual({ code: "track_missing", message });
  });

  it("plays all of Vorbis from its start on, without a warning, though its first packet has no time", async () => {
    makeNoise("first.oga", 3, "-c:a", "libvorbis");
    const source = media.path("first.oga");
    const { path, warnings } = await assembleFile({ path: source, ranges: [{ startS: 0, endS: Infinity }], folder });
    expect(heard(path, "0:3")).toBe(heard(source, "0:3"));
    expect(warnings).toEqual([]);
  });
});
