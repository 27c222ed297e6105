import { describe, expect, it } from "vitest";
import type { DownloadFormat } from "../../../src/model/page-info.ts";
import { readExhibits } from "../../media/media-fixtures.ts";
import { hasFfmpeg } from "../../media/probe.ts";
import { packetHashes, probeAll } from "../../remux/additions.ts";
import { run } from "../../remux/ts-media.ts";
import { type OpenEngine, openFixture } from "./harness.ts";

/** Several audio tracks in one file. */
export function describeAudio(open: OpenEngine): void {
  const openNamed = (name: string) => openFixture(open, readExhibits().get(name)!);
  const inLanguage = (format: DownloadFormat, language: string): DownloadFormat => ({ ...format, language });
  const audioOf = (path: string) =>
    probeAll(path)
      .streams.filter(({ codec_type }) => codec_type === "audio")
      .map(({ tags, disposition }) => [tags?.["language"], disposition["default"]]);

  describe.skipIf(!hasFfmpeg).concurrent("puts several audio tracks into a file, the first enabled:", () => {
    it.each(["HLS in fMP4 with sound of two languages apart", "HLS in MPEG-TS with packed AAC of two languages apart"])(
      "%s",
      async (name) => {
        await using harness = await openNamed(name);
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
        expect(run("ffmpeg", "-v", "error", "-i", path, "-map", "0", "-f", "null", "-")).toBe("");
      },
    );

    it("WebM", async () => {
      await using harness = await openNamed("DASH in WebM");
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

    it("Matroska, of what neither WebM nor MP4 holds together", async () => {
      await using other = await openNamed("an M4A");
      await using harness = await openNamed("DASH in WebM");
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

    it("of audio alone", async () => {
      await using harness = await openNamed("HLS in fMP4 with sound of two languages apart");
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

  it.skipIf(!hasFfmpeg).each(["DASH in WebM", "a WebM of VP9 and Opus"])(
    "gives Opus in its own container if an audio file is wanted: %s",
    async (name) => {
      await using harness = await openNamed(name);
      const { audio, format } = harness.job;
      const job = audio === null ? { format, audioOnly: true } : { format: audio, audio: null };
      const single = await harness.download(job);
      const own = new Set(packetHashes(single.path));
      const { path, ext, mime_type, duration, warnings } = await harness.download({ ...job, isAudioFile: true });
      expect([ext, mime_type, warnings]).toEqual(["opus", "audio/ogg", []]);
      expect(Math.abs((duration ?? 0) - Number(probeAll(path).format.duration))).toBeLessThan(0.1);
      expect(packetHashes(path).filter((hash) => !own.has(hash))).toEqual([]);
    },
  );

  it("leaves AAC in MP4 if an audio file is wanted", async () => {
    await using harness = await openNamed("HLS in MPEG-TS with B-frames");
    expect(await harness.download({ audioOnly: true, isAudioFile: true })).toMatchObject({ ext: "m4a" });
  });

  it("resumes a download of several tracks, and starts over for others", async () => {
    await using harness = await openNamed("HLS in fMP4 with sound of two languages apart");
    const audio = harness.job.audio!;
    const otherAudio = [inLanguage(audio, "fr")];
    const { sha256 } = await harness.download({ otherAudio });
    const asked = harness.site.asked.length;
    expect((await harness.download({ otherAudio })).sha256).toBe(sha256);
    const segments = harness.site.asked.slice(asked).filter(({ path }) => !path.endsWith(".m3u8"));
    expect(segments).toEqual([]);
  });
}
