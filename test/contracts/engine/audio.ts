import { describe, expect, it } from "vitest";
import { makeFolder } from "../../folder.ts";
import type { DownloadFormat } from "../../../src/model/page-info.ts";
import { hasFfmpeg } from "../../media/probe.ts";
import { complaintsOf } from "../../media/read-media.ts";
import { packetHashes, probeAll } from "../../remux/additions.ts";
import { audioInput, createMediaFolder, videoInput, x264 } from "../../remux/ts-media.ts";
import { resource } from "../../media/resources.ts";
import { formatAt, type OpenEngine, openEntry, openFixture } from "./harness.ts";

/** Several audio tracks in one file. */
export function describeAudio(open: OpenEngine): void {
  const inLanguage = (format: DownloadFormat, language: string): DownloadFormat => ({ ...format, language });
  const audioOf = (path: string) =>
    probeAll(path)
      .streams.filter(({ codec_type }) => codec_type === "audio")
      .map(({ tags, disposition }) => [tags?.["language"], disposition["default"]]);

  describe.skipIf(!hasFfmpeg).concurrent("puts several audio tracks into a file, the first enabled:", () => {
    it.each(["HLS in fMP4 with sound of two languages apart", "HLS in MPEG-TS with packed AAC of two languages apart"])(
      "%s",
      async (name) => {
        await using harness = await openFixture(open, name);
        const audio = harness.job.audio!;
        const single = await harness.download({ audio: inLanguage(audio, "de") });
        const before = new Set(packetHashes(single.path));
        const { path, ext, warnings } = await harness.download({
          audio: inLanguage(audio, "de"),
          otherAudio: [inLanguage(audio, "en-GB"), inLanguage(audio, "fr")],
        });
        expect([ext, warnings]).toEqual(["mp4", []]);
        expect(audioOf(path)).toEqual([
          ["deu", 1],
          ["eng", 0],
          ["fra", 0],
        ]);
        expect(packetHashes(path).filter((hash) => !before.has(hash))).toEqual([]);
        expect(complaintsOf(path, "-map", "0")).toBe("");
      },
    );

    it("WebM", async () => {
      await using harness = await openFixture(open, "DASH in WebM");
      const audio = harness.job.audio!;
      const { path, ext, warnings } = await harness.download({
        audio: inLanguage(audio, "de"),
        otherAudio: [inLanguage(audio, "fr")],
      });
      expect([ext, warnings]).toEqual(["webm", []]);
      expect(audioOf(path)).toEqual([
        ["deu", 1],
        ["fra", 0],
      ]);
    });

    it("WebM with one track, which has its language, if that is known", async () => {
      await using harness = await openFixture(open, "DASH in WebM");
      const audio = harness.job.audio!;
      const stated = await harness.download({ audio: inLanguage(audio, "de") });
      expect(audioOf(stated.path)).toEqual([["deu", 1]]);
      const [video] = probeAll(stated.path).streams;
      expect(video?.disposition["default"]).toBe(1);
      const unknown = await harness.download({
        audio: { ...audio, language: null },
        folder: await harness.newFolder(),
      });
      expect(audioOf(unknown.path)).toEqual([[undefined, 1]]);
    });

    it("WebM of an MP4 and a WebM, with the language, also if nothing is to be embedded", async () => {
      const folder = createMediaFolder();
      const video = folder.make("v.mp4", ...videoInput(1), "-c:v", "libvpx-vp9", "-cpu-used", "8");
      const audio = folder.make("a.webm", ...audioInput(1, 48_000), "-c:a", "libopus");
      const media = new Map([
        ["v.mp4", resource("video/mp4", video)],
        ["a.webm", resource("audio/webm", audio)],
      ]);
      await using harness = await openEntry(open, media, "v.mp4");
      const separate = { ...formatAt(harness.site.url("a.webm")), vcodec: "none" };
      const { path, ext } = await harness.download({
        format: { ...harness.job.format, acodec: "none" },
        audio: inLanguage(separate, "de"),
        embed: "none",
      });
      expect([ext, audioOf(path)]).toEqual(["webm", [["deu", 1]]]);
    });

    it("Matroska, of what neither WebM nor MP4 holds together", async () => {
      await using other = await openFixture(open, "an M4A");
      await using harness = await openFixture(open, "DASH in WebM");
      const { path, ext, warnings } = await harness.download({
        audio: inLanguage(harness.job.audio!, "de"),
        otherAudio: [inLanguage(other.job.format, "fr")],
      });
      expect([ext, warnings]).toEqual(["mkv", []]);
      expect(audioOf(path)).toEqual([
        ["deu", 1],
        ["fra", 0],
      ]);
    });

    it.each([
      ["HLS in fMP4 with sound of two languages apart", "handler_name"],
      ["DASH in WebM", "title"],
    ])("with what it is for, if that is known: %s", async (name, tag) => {
      await using harness = await openFixture(open, name);
      const audio = inLanguage(harness.job.audio!, "de");
      const { path, warnings } = await harness.download({
        audio: { ...audio, audio_role: "original" },
        otherAudio: [
          { ...audio, audio_role: "description" },
          { ...audio, audio_role: "commentary" },
          { ...audio, audio_role: "commentary", name: "With jokes" },
          { ...audio, audio_role: null },
        ],
      });
      expect(warnings).toEqual([]);
      const found = probeAll(path).streams.filter(({ codec_type }) => codec_type === "audio");
      expect(
        found.map(({ tags, disposition }) => [
          tags?.[tag] ?? "",
          disposition["visual_impaired"],
          disposition["comment"],
        ]),
      ).toEqual([
        ["", 0, 0],
        ["Audio description", 1, 0],
        ["Commentary", 0, 1],
        ["With jokes", 0, 1],
        ["", 0, 0],
      ]);
    });

    it("of audio alone", async () => {
      await using harness = await openFixture(open, "HLS in fMP4 with sound of two languages apart");
      const audio = harness.job.audio!;
      const { path, ext } = await harness.download({
        format: inLanguage(audio, "de"),
        audio: null,
        otherAudio: [inLanguage(audio, "fr")],
      });
      expect(ext).toBe("m4a");
      expect(audioOf(path)).toEqual([
        ["deu", 1],
        ["fra", 0],
      ]);
    });
  });

  describe.skipIf(!hasFfmpeg).concurrent("gives audio in its own container if an audio file is wanted:", () => {
    it.each([
      ["DASH in WebM", "opus", "audio/ogg"],
      ["a WebM of VP9 and Opus", "opus", "audio/ogg"],
      ["a WebM of VP8 and Vorbis", "ogg", "audio/ogg"],
      ["HLS in MPEG-TS with MP3", "mp3", "audio/mpeg"],
    ])("%s", async (name, ext, mime_type) => {
      await using harness = await openFixture(open, name);
      const { audio, format } = harness.job;
      const job = audio === null ? { format, audioOnly: true } : { format: audio, audio: null };
      const single = await harness.download(job);
      const own = new Set(packetHashes(single.path));
      const made = await harness.download({ ...job, isAudioFile: true, folder: await harness.newFolder() });
      expect(made).toMatchObject({ ext, mime_type, warnings: [] });
      expect(Math.abs((made.duration ?? 0) - Number(probeAll(made.path).format.duration))).toBeLessThan(0.1);
      expect(packetHashes(made.path).filter((hash) => !own.has(hash))).toEqual([]);
      expect(complaintsOf(made.path)).toBe("");
    });

    it.each([
      ["MP3 in Matroska, of whose end some is left out", "mkv", ["-c:a", "libmp3lame"], "mka"],
      ["MP3 in MP4", "mp4", ["-c:a", "libmp3lame"], "mp3"],
      ["FLAC in Matroska", "mkv", ["-c:a", "flac"], "flac"],
      ["FLAC in MP4", "mp4", ["-c:a", "flac", "-strict", "-2"], "flac"],
      ["Opus in MP4", "mp4", ["-c:a", "libopus"], "opus"],
      ["AAC in Matroska", "mkv", ["-c:a", "aac"], "m4a"],
    ])("%s with video", async (_, from, args, ext) => {
      const folder = createMediaFolder(makeFolder());
      const file = `film.${from}`;
      const bytes = folder.make(file, ...videoInput(3), ...audioInput(3, 48_000), ...x264, ...args);
      const type = from === "mkv" ? "video/x-matroska" : "video/mp4";
      await using harness = await openEntry(open, new Map([[file, resource(type, bytes)]]), file);
      const own = new Set(packetHashes(folder.path(file)));
      const job = { audioOnly: true, isAudioFile: true };
      const { path, warnings, duration, ...made } = await harness.download(job);
      expect([made.ext, warnings]).toEqual([ext, []]);
      expect(Math.abs(duration! - 3)).toBeLessThan(0.06);
      expect(packetHashes(path).filter((hash) => !own.has(hash))).toEqual([]);
      expect(complaintsOf(path)).toBe("");
    });
  });

  it.skipIf(!hasFfmpeg)("has whole packets of a part of FLAC, which is no difference to warn of", async () => {
    const folder = createMediaFolder(makeFolder());
    const bytes = folder.make("song.flac", ...audioInput(3, 48_000), "-c:a", "flac", "-frame_size", "4800");
    await using harness = await openEntry(open, new Map([["song.flac", resource("audio/flac", bytes)]]), "song.flac");
    const made = await harness.download({
      isAudioFile: true,
      audioOnly: true,
      ranges: [{ startS: 0.59, endS: 1.41 }],
    });
    expect(made).toMatchObject({ ext: "flac", warnings: [] });
    expect(made.duration).toBeCloseTo(1, 3);
  });

  it.skipIf(!hasFfmpeg)(
    "takes of a file with several tracks those in the languages that were asked for if it is cut, else says which is first",
    async () => {
      const folder = createMediaFolder(makeFolder());
      const tracks = ["-map", "0", "-map", "1", "-map", "2", "-metadata:s:a:0", "language=eng", "-metadata:s:a:1"];
      const inputs = [...videoInput(3), ...audioInput(3, 48_000), ...audioInput(3, 44_100)];
      const film = folder.make("film.mp4", ...inputs, ...tracks, "language=ger", ...x264, "-movflags", "+faststart");
      await using harness = await openEntry(open, new Map([["film.mp4", resource("video/mp4", film)]]), "film.mp4");
      const languagesOf = async (...audioLanguages: string[]) => {
        const ranges = [{ startS: 1, endS: 2 }];
        const { path, warnings } = await harness.download({
          ranges,
          audioLanguages,
          folder: await harness.newFolder(),
        });
        return [...audioOf(path), ...warnings.map(({ code, message }) => [code, message])];
      };
      const message = "1 further audio track of the source is left out";
      expect(await languagesOf("de")).toEqual([
        ["deu", 1],
        ["tracks_left", message],
      ]);
      expect(await languagesOf("de", "en")).toEqual([
        ["deu", 1],
        ["eng", 0],
      ]);
      expect(await languagesOf("original")).toEqual([
        ["eng", 1],
        ["tracks_left", message],
      ]);
      expect(await languagesOf("all")).toEqual([
        ["eng", 1],
        ["deu", 0],
      ]);
      const warningsOf = async (...audioLanguages: string[]) =>
        (await harness.download({ audioLanguages, folder: await harness.newFolder() })).warnings.map(
          ({ code }) => code,
        );
      expect(await warningsOf("de")).toEqual(["tracks_left"]);
      expect(await warningsOf("de", "en")).toEqual(["tracks_left"]);
      for (const asked of [["original", "de"], ["en"], ["fr"], ["all"], []]) {
        expect(await warningsOf(...asked), String(asked)).toEqual([]);
      }
    },
  );

  it.skipIf(!hasFfmpeg)("takes the original of a film that is cut from the tracks that players take", async () => {
    const folder = createMediaFolder(makeFolder());
    const tracks = ["-map", "0", "-map", "1", "-map", "2", "-metadata:s:a:0", "language=eng", "-metadata:s:a:1"];
    const inputs = [...videoInput(3), ...audioInput(3, 48_000), ...audioInput(3, 44_100)];
    // The muxer disables tracks without this disposition.
    const second = ["language=ger", "-disposition:a:0", "0", "-disposition:a:1", "default"];
    const film = folder.make("film.mp4", ...inputs, ...tracks, ...second, ...x264, "-movflags", "+faststart");
    await using harness = await openEntry(open, new Map([["film.mp4", resource("video/mp4", film)]]), "film.mp4");
    const { path, warnings } = await harness.download({ ranges: [{ startS: 1, endS: 2 }] });
    expect(audioOf(path)).toEqual([["deu", 1]]);
    expect(warnings.map(({ code }) => code)).toEqual(["tracks_left"]);
  });

  it.skipIf(!hasFfmpeg)("says of a film that is cut which of its tracks are encrypted", async () => {
    const folder = createMediaFolder(makeFolder());
    const inputs = [...videoInput(30), ...audioInput(30, 48_000), ...audioInput(30, 44_100)];
    const film = folder.make(
      "film.mp4",
      ...inputs,
      "-map",
      "0",
      "-map",
      "1",
      "-map",
      "2",
      ...x264,
      "-movflags",
      "+faststart",
    );
    // The sample entry of the last track.
    film.write("enca", film.lastIndexOf("mp4a", film.indexOf("mdat")), "latin1");
    await using harness = await openEntry(open, new Map([["film.mp4", resource("video/mp4", film)]]), "film.mp4");
    const { warnings } = await harness.download({ ranges: [{ startS: 1, endS: 2 }] });
    expect(warnings).toEqual([{ code: "tracks_left", message: "1 audio track of the file is encrypted" }]);
  });

  it.skipIf(!hasFfmpeg)("says the language of audio that is cut, if only the page knows it", async () => {
    await using harness = await openFixture(open, "an M4A");
    const ranges = [{ startS: 1, endS: 2 }];
    const cut = async (language: string | null) =>
      audioOf(
        (
          await harness.download({
            ranges,
            format: { ...harness.job.format, language },
            folder: await harness.newFolder(),
          })
        ).path,
      );
    expect(await cut("de")).toEqual([["deu", 1]]);
    expect(await cut(null)).toEqual([["und", 1]]);
  });

  it("leaves video alone if an audio file is wanted of media that the page took for audio", async () => {
    await using harness = await openFixture(open, "HLS in MPEG-TS with B-frames");
    const made = await harness.download({ isAudioFile: true, ranges: [{ startS: 1, endS: 2 }] });
    expect(made).toMatchObject({ ext: "mp4", mime_type: "video/mp4", warnings: [] });
  });

  it("leaves AAC in MP4 if an audio file is wanted", async () => {
    await using harness = await openFixture(open, "HLS in MPEG-TS with B-frames");
    expect(await harness.download({ audioOnly: true, isAudioFile: true })).toMatchObject({ ext: "m4a" });
  });

  it("resumes a download of several tracks, and starts over for others", async () => {
    await using harness = await openFixture(open, "HLS in fMP4 with sound of two languages apart");
    const audio = harness.job.audio!;
    const otherAudio = [inLanguage(audio, "fr")];
    const { sha256 } = await harness.download({ otherAudio });
    const asked = harness.site.asked.length;
    expect((await harness.download({ otherAudio })).sha256).toBe(sha256);
    const segments = harness.site.asked.slice(asked).filter(({ path }) => !path.endsWith(".m3u8"));
    expect(segments).toEqual([]);
  });
}
