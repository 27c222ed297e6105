import { readFileSync, writeFileSync } from "node:fs";
import { deflateSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { findFileWarnings } from "../../src/engines/native/output/file-warnings.ts";
import { createAudioChoice, firstAudio } from "../../src/remux/audio-choice.ts";
import { iso639ToBcp47 } from "../../src/remux/language.ts";
import { assembleFile as assemble } from "./assemble-file.ts";
import { compression, writeChanged } from "../remux/matroska-changes.ts";
import { audioInput, createMediaFolder, hasFfmpeg, probeStreams, run, videoInput, x264 } from "../remux/ts-media.ts";
import { readMediaSync } from "../media/read-media.ts";

const media = createMediaFolder();

/** Returns the path of the MP4 that is made of a file. */
async function convert(name: string): Promise<string> {
  return (await assembleFile(name)).path;
}

/** Makes an MP4 of a file. */
const assembleFile = (name: string, audioChoice = firstAudio) =>
  assemble({ path: media.path(name), audioChoice, folder: media.path(".") });

/** Returns the pitch of the tone of each audio track, Hz: half of its zero crossings in the middle half second, doubled. */
function pitches(path: string): number[] {
  const tracks = probeStreams(path, "codec_type").filter((type) => type === "audio");
  return tracks.map((_, index) => {
    const target = media.path("tone.raw");
    const range = ["-af", "atrim=0.25:0.75", "-ac", "1", "-f", "s16le", "-y", target];
    run("ffmpeg", "-v", "error", "-i", path, "-map", `0:a:${index}`, ...range);
    const bytes = readFileSync(target);
    const samples = Array.from({ length: bytes.length / 2 }, (__, at) => bytes.readInt16LE(2 * at));
    const crossings = samples.filter((sample, at) => at > 0 && sample < 0 !== samples[at - 1]! < 0).length;
    return Math.round(crossings / 10) * 10;
  });
}

/** Returns how long the last track is presented by its edit list, which has one entry, seconds. */
function presentedS(path: string): number {
  const bytes = readFileSync(path);
  const list = bytes.lastIndexOf("elst");
  expect(bytes.readUInt32BE(list + 8)).toBe(1);
  return Number(bytes.readBigUInt64BE(list + 12)) / 90_000;
}

/** Returns the samples that a player hears. */
function heard(path: string): string {
  return readMediaSync("ffmpeg", "-v", "error", "-i", path, "-map", "0:a", "-c:a", "pcm_f64le", "-f", "md5", "-");
}

describe.skipIf(!hasFfmpeg)("an MP4 that is made of a Matroska file", () => {
  for (const codec of ["pcm_s16le", "pcm_s24le", "pcm_s32le", "pcm_f32le", "pcm_f64le"]) {
    it(`has the audio that its source has, uncompressed: ${codec}`, async () => {
      media.make(`${codec}.mkv`, ...videoInput(1), ...audioInput(1, 48_000), ...x264, "-c:a", codec);
      const path = await convert(`${codec}.mkv`);
      expect(probeStreams(path, "codec_name")).toEqual(["h264", codec]);
      expect(heard(path)).toBe(heard(media.path(`${codec}.mkv`)));
    });
  }

  it("has the frames that its source has compressed with zlib", async () => {
    media.make("plain.mkv", ...videoInput(1), ...audioInput(1, 48_000), ...x264, "-c:a", "flac");
    const changes = { numbers: [1, 2], entry: compression(0), change: deflateSync };
    writeChanged(media.path("plain.mkv"), media.path("packed.mkv"), changes);
    const hashes = (path: string) => readMediaSync("ffmpeg", "-v", "error", "-i", path, "-f", "streamhash", "-");
    const { path, warnings } = await assembleFile("packed.mkv");
    expect({ hashes: hashes(path), warnings }).toEqual({ hashes: hashes(media.path("plain.mkv")), warnings: [] });
  });

  it("has the frames of laces of which its source has left out the start", async () => {
    media.make("sync.mka", ...audioInput(1, 48_000), "-c:a", "ac3");
    const changes = {
      numbers: [1],
      laced: 4,
      entry: compression(3, Uint8Array.of(0x0b, 0x77)),
      change: (frame: Uint8Array) => frame.subarray(2),
    };
    writeChanged(media.path("sync.mka"), media.path("no-sync.mka"), changes);
    const { path, warnings } = await assembleFile("no-sync.mka");
    expect({ heard: heard(path), warnings }).toEqual({ heard: heard(media.path("sync.mka")), warnings: [] });
  });

  for (const [written, stated] of [
    ["ger", "deu"],
    ["de", "deu"],
    ["pt-BR", "por"],
    ["und", "und"],
  ] as const) {
    it(`has the language and the name of a track, such as ${written}`, async () => {
      const tags = ["-metadata:s:a", `language=${written}`, "-metadata:s:a", "title=Ton, 2. Fassung"];
      media.make("tags.mkv", ...videoInput(1), ...audioInput(1), ...x264, "-c:a", "aac", ...tags);
      const path = await convert("tags.mkv");
      const tagsOf = (file: string) => probeStreams(file, "codec_name:stream_tags=language,handler_name").slice(-5);
      expect(tagsOf(path).join(" ")).toContain(`${stated} Ton, 2. Fassung`);
      expect(readFileSync(path).includes("elng")).toBe(written.includes("-"));
    });
  }

  it("marks a track as a description or a commentary if that does, and no other", async () => {
    const tracks = ["default", "visual_impaired", "comment"].flatMap((is, i) => [
      "-map",
      "1:a",
      `-disposition:a:${i}`,
      is,
    ]);
    media.make("roles.mkv", ...videoInput(1), ...audioInput(1), "-map", "0:v", ...tracks, ...x264, "-c:a", "aac");
    const all = { audioChoice: createAudioChoice(["all"]), ranges: [{ startS: 0, endS: 0.5 }] };
    const { path } = await assemble({ path: media.path("roles.mkv"), ...all, folder: media.path(".") });
    const roles = readFileSync(path)
      .toString("latin1")
      .matchAll(/urn:mpeg:dash:role:2011\0(\w+)\0/g);
    expect([...roles].map(([, role]) => role)).toEqual(["description", "commentary"]);
  });

  it("has the colours that only the source's container states", async () => {
    const colours = ["-color_primaries", "bt709", "-color_trc", "bt709", "-colorspace", "bt709", "-color_range", "pc"];
    const vp9 = ["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", ...colours];
    media.make("colours.mkv", ...videoInput(1), ...audioInput(1), ...vp9, "-c:a", "aac");
    const colourOf = (file: string) =>
      probeStreams(file, "color_range,color_space,color_transfer,color_primaries").slice(0, 4);
    const path = await convert("colours.mkv");
    expect(colourOf(path)).toEqual(colourOf(media.path("colours.mkv")));
    expect(readFileSync(path).includes("colr")).toBe(true);
  });

  it("leaves out the delay of its audio codec, in sync with the video", async () => {
    const opus = ["-c:a", "libopus", "-frame_duration", "60"];
    media.make("opus.mkv", ...videoInput(2), ...audioInput(2, 48_000), ...x264, ...opus);
    const source = media.path("opus.mkv");
    const path = await convert("opus.mkv");
    const first = (file: string) =>
      readMediaSync(
        "ffmpeg",
        "-v",
        "error",
        "-i",
        file,
        "-map",
        "0:a",
        "-af",
        "atrim=end_sample=48000",
        "-f",
        "md5",
        "-",
      );
    expect(first(path)).toBe(first(source));
    const starts = (file: string) => probeStreams(file, "start_time").map(Number) as [number, number];
    const distance = (file: string) => starts(file)[0] - starts(file)[1];
    // Of the source, the start of what is left out.
    expect(distance(path)).toBeCloseTo(distance(source) - 0.0065, 2);
  });

  for (const duration of ["20", "60"]) {
    it(`leaves out the padding at the end of audio in packets of ${duration} ms, and warns of players that do not`, async () => {
      const opus = ["-c:a", "libopus", "-frame_duration", duration];
      media.make("padded.mkv", ...videoInput(1), ...audioInput(1.0102, 48_000), ...x264, ...opus);
      const { path, warnings } = await assembleFile("padded.mkv");
      expect(presentedS(path)).toBeCloseTo(1.0102, 2);
      expect(warnings).toMatchObject([{ code: "end_padding" }]);
    });
  }

  it("presents all of audio without padding, and warns of nothing", async () => {
    media.make("whole.mkv", ...videoInput(1), ...audioInput(1.0102, 48_000), ...x264, "-c:a", "flac");
    const { path, warnings } = await assembleFile("whole.mkv");
    expect(heard(path)).toBe(heard(media.path("whole.mkv")));
    expect(warnings).toEqual([]);
  });

  for (const codec of ["flac", "aac"]) {
    it(`has the first packets of tracks whose blocks are alone in their clusters: ${codec}`, async () => {
      const alone = ["-c:a", codec, "-cluster_time_limit", "1"];
      media.make("alone.mkv", ...videoInput(1), ...audioInput(1, 48_000), ...x264, ...alone);
      const { path, warnings } = await assembleFile("alone.mkv");
      const pictures = (file: string) =>
        readMediaSync("ffmpeg", "-v", "error", "-i", file, "-map", "0:v", "-f", "md5", "-");
      expect(heard(path)).toBe(heard(media.path("alone.mkv")));
      expect(pictures(path)).toBe(pictures(media.path("alone.mkv")));
      expect(warnings).toEqual([]);
    });
  }

  for (const codec of ["mp2", "tta", "wavpack"]) {
    it(`stays Matroska if no MP4 can hold its audio: ${codec}`, async () => {
      media.make(`${codec}.mkv`, ...videoInput(1), ...audioInput(1, 48_000), ...x264, "-c:a", codec);
      const { path, warnings } = await assembleFile(`${codec}.mkv`);
      expect(readFileSync(path).subarray(0, 64).includes("matroska")).toBe(true);
      expect(probeStreams(path, "codec_name")).toEqual(["h264", codec]);
      expect(heard(path)).toBe(heard(media.path(`${codec}.mkv`)));
      expect(warnings).toEqual([]);
    });
  }

  const two = ["-map", "0:v", "-map", "1:a", "-map", "2:a", "-c:a", "aac"];
  for (const name of ["two.ts", "two.mkv", "two.mp4"]) {
    it(`has the first of two audio tracks, and a warning tells of the other: ${name}`, async () => {
      media.make(name, ...videoInput(1), ...audioInput(1), ...audioInput(1), ...x264, ...two);
      const { path, written, warnings } = await assembleFile(name);
      const stats = { path, written, durationS: 1, listedKinds: [] };
      const all = [...warnings, ...(written === null ? [] : findFileWarnings(new Map(), stats))];
      const message = "1 further audio track of the source is left out";
      expect(all).toEqual([{ code: "tracks_left", message }]);
      expect(probeStreams(path, "codec_name")).toEqual(["h264", "aac"]);
    });
  }

  const fragmented = ["-movflags", "+frag_keyframe+empty_moov"];
  for (const [name, ...options] of [["views.ts"], ["views.mkv"], ["views.mp4"], ["fragments.mp4", ...fragmented]]) {
    it(`has the first of two video tracks, and a warning tells of the other: ${name}`, async () => {
      const inputs = [...videoInput(1), ...audioInput(1), ...videoInput(1)];
      media.make(name!, ...inputs, ...["0:v", "1:a", "2:v"].flatMap((each) => ["-map", each]), ...x264, ...options);
      const made = await assembleFile(name!);
      const stats = { path: made.path, written: made.written, durationS: 1, listedKinds: [] };
      const all = [...made.warnings, ...(made.written === null ? [] : findFileWarnings(new Map(), stats))];
      const message = "1 further video track of the source is left out";
      expect(all).toEqual([{ code: "tracks_left", message }]);
      expect(probeStreams(made.path, "codec_type")).toEqual(["video", "audio"]);
    });
  }

  it("has no warning of the pictures of chapters (QuickTime) beside separate audio", async () => {
    const list = [";FFMETADATA1", "[CHAPTER]", "TIMEBASE=1/1", "START=0", "END=1", "title=One", ""];
    writeFileSync(media.path("chapters.txt"), list.join("\n"));
    const chapters = ["-i", media.path("chapters.txt"), "-map_chapters", "2"];
    media.make("pictures.mp4", ...videoInput(1), ...videoInput(1), ...chapters, "-map", "0:v", "-map", "1:v", ...x264);
    media.make("audio.webm", ...audioInput(1, 48_000), "-c:a", "libopus");
    const bytes = readFileSync(media.path("pictures.mp4"));
    // What refers to the track of titles refers to the second track then.
    const at = bytes.indexOf("chap", bytes.indexOf("tref")) + 4;
    expect(bytes.readUInt32BE(at)).toBe(3);
    const [path, audio] = [media.path("pictures.mp4"), media.path("audio.webm")];
    const codesOf = async () => {
      const { warnings } = await assemble({ path, audio, folder: media.path(".") });
      return warnings.map(({ code }) => code);
    };
    expect(await codesOf()).toContain("tracks_left");
    bytes.writeUInt32BE(2, at);
    writeFileSync(path, bytes);
    expect(await codesOf()).not.toContain("tracks_left");
  });

  const tagged = ["eng", "deu", "fra"].flatMap((code, index) => [`-metadata:s:a:${index}`, `language=${code}`]);
  const three = ["-map", "0:v", "-map", "1:a", "-map", "2:a", "-map", "3:a", "-c:a", "aac", ...tagged];
  for (const name of ["three.ts", "three.mkv", "three.mp4"]) {
    it(`has those of three audio tracks that were asked for, with their samples: ${name}`, async () => {
      const audio = [1, 2, 3].flatMap((n) => ["-f", "lavfi", "-i", `sine=${220 * n}:d=1:r=48000`]);
      media.make(name, ...videoInput(1), ...audio, ...x264, ...three);
      const choice = createAudioChoice(["fr", "de", "xx"]);
      const { path, written, warnings } = await assembleFile(name, choice);
      expect([...choice.found]).toEqual(["fr", "de"]);
      expect([...choice.offered]).toEqual(["en", "de", "fr"]);
      const tags = ["-select_streams", "a", "-show_entries", "stream_tags=language", "-of", "csv=p=0", path];
      expect(
        readMediaSync("ffprobe", "-v", "error", ...tags)
          .match(/\w+/g)
          ?.map(iso639ToBcp47),
      ).toEqual(["fr", "de"]);
      expect(pitches(path)).toEqual([660, 440]);
      const stats = { path, written, durationS: 1, listedKinds: [] };
      const all = [...warnings, ...(written === null ? [] : findFileWarnings(new Map(), stats))];
      expect(all).toEqual([{ code: "tracks_left", message: "1 further audio track of the source is left out" }]);
    });
  }
});
