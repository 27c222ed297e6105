import { readFile } from "node:fs/promises";
import { afterAll, describe, expect, it } from "vitest";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { sniffContainer } from "../../src/remux/sniff.ts";
import { openEntry } from "../contracts/engine/harness.ts";
import { stopFfmpeg } from "../fuzz/streams/ffmpeg.ts";
import { createFrameReader, type Frames } from "../fuzz/streams/frames.ts";
import { createSources } from "../fuzz/streams/sources.ts";
import { listStreams, type Part, type Stream } from "../fuzz/streams/streams.ts";
import { hasFfmpeg, probePackets } from "../remux/ts-media.ts";

const sources = createSources();
afterAll(() => sources.remove());
afterAll(stopFfmpeg);
const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
afterAll(() => engine.close());

const streamOf = (name: string) => listStreams().find((stream) => stream.name === name)!;

const readFrames = createFrameReader();

/** Downloads the pieces in another order, which the playlists say, or do not; `change` changes the playlists. */
async function download(
  stream: Stream,
  order: readonly number[],
  isAnnounced: boolean,
  change = (playlist: string, _path: string): string => playlist,
) {
  const parts = (await stream.make(sources)).map((part): Part => {
    const { init, pieces } = part.rendition;
    const listed = order.map((index, at) => {
      const isJoin = isAnnounced && at > 0 && index !== order[at - 1]! + 1;
      return { ...pieces[index]!, isJoin };
    });
    return { ...part, rendition: { init, pieces: listed } };
  });
  const { resources, entry } = stream.lay(parts);
  for (const [path, { body, type }] of resources)
    if (path.endsWith(".m3u8")) resources.set(path, { type, body: Buffer.from(change(body.toString(), path)) });
  await using harness = await openEntry(() => engine, resources, entry);
  const { audioOnly = false } = stream.options;
  const { path, warnings } = await harness.download({ audioOnly, isAudioFile: audioOnly });
  const container = sniffContainer(await readFile(path));
  const isAac = stream.codecs.includes("aac");
  const frames = await readFrames(path, { video: true, audio: true, isAac, isFlac: false });
  return { warnings: warnings.map(({ code }) => code), container, frames, ...probePackets(path) };
}

/** Returns how far the parts of a track are from where they are in the right stream, seconds, in the order of the file. */
function shiftsOf(kind: "video" | "audio", made: Frames, right: Frames): number[] {
  const times = new Map(right[kind].map(({ hash, atS }) => [hash, atS]));
  const shifts = made[kind].map(({ hash, atS }) => atS - times.get(hash)!);
  return shifts.filter((shift, i) => i === 0 || Math.abs(shift - shifts[i - 1]!) > 0.5);
}

describe.skipIf(!hasFfmpeg)("segments in another order", () => {
  const names = ["h264+aac", "h264+mp3", "h264-b+aac"].map((codecs) => `HLS mpegts, tracks apart, ${codecs}`);

  it.each(names)("of which the playlists of %s say nothing have a warning", async (name) => {
    const { warnings } = await download(streamOf(name), [2, 1, 0, 3], false);
    expect(warnings).toEqual(["times_changed"]);
  });

  it.each(names)("which the playlists of %s announce are right", async (name) => {
    const { video, warnings } = await download(streamOf(name), [2, 1, 0, 3], true);
    expect(warnings).toEqual([]);
    expect(video).toHaveLength(75);
  });

  const codecs = [
    "fmp4, tracks apart, h264-b+aac",
    "fmp4, tracks apart, h264+opus",
    "mpegts, tracks apart, h264-b+aac",
  ];
  it.each(codecs)("keep audio in sync with video in each part of HLS %s", async (name) => {
    const stream = streamOf(`HLS ${name}`);
    const { frames: right } = await download(stream, [0, 1, 2, 3], true);
    const again = (playlist: string) => {
      const [map = ""] = /^#EXT-X-MAP.*\n/m.exec(playlist) ?? [];
      return playlist.replaceAll("#EXT-X-DISCONTINUITY\n", (line) => `${line}${map.replace("init.mp4", "init.mp4?2")}`);
    };
    for (const change of [again, undefined]) {
      const { frames, warnings } = await download(stream, [0, 3, 2, 1], true, change);
      const [video, audio] = (["video", "audio"] as const).map((kind) => shiftsOf(kind, frames, right));
      expect(warnings).toEqual([]);
      expect(audio).toHaveLength(4);
      expect(audio!.map((shift, i) => Math.abs(shift - video![i]!)).filter((off) => off > 0.005)).toEqual([]);
    }
  });

  it.each(["0.m3u8", "1.m3u8"])(
    "are right if only one playlist, %s, lists a discontinuity, and the times go on",
    async (changed) => {
      const stream = streamOf("HLS mpegts, tracks apart, h264+aac");
      const announce = (playlist: string, path: string) =>
        path === changed
          ? playlist.replace(/(?:#EXTINF.*\n.*\n){2}/, (two) => `${two}#EXT-X-DISCONTINUITY\n`)
          : playlist;
      const [right, made] = [
        await download(stream, [0, 1, 2, 3], true),
        await download(stream, [0, 1, 2, 3], true, announce),
      ];
      expect(made.warnings).toEqual([]);
      for (const kind of ["video", "audio"] as const) expect(shiftsOf(kind, made.frames, right.frames)).toEqual([0]);
    },
  );

  it("begin where the longest track ends, so that no picture overlaps another one, and none lasts much longer", async () => {
    const { video } = await download(streamOf("HLS mpegts, tracks apart, h264+aac"), [2, 1, 0, 3], true);
    const steps = video.slice(1).map(({ pts }, i) => Math.round((pts - video[i]!.pts) / 90));
    expect(steps.filter((step) => step < 40 || step > 100)).toEqual([]);
    expect(steps.filter((step) => step > 40).length).toBeLessThanOrEqual(3);
  });

  it.each(["TS", "fMP4"])(
    "of %s have no pauses between them if audio begins and ends before video in each",
    async (type) => {
      const { frames } = await download(streamOf(`HLS ${type} h264-b+aac, pieces of 24 frames`), [2, 1, 0, 3], true);
      const pauses = (kind: "video" | "audio", frameS: number) =>
        frames[kind].slice(1).filter(({ atS }, i) => atS - frames[kind][i]!.atS > frameS + 0.002);
      expect(pauses("video", 0.04)).toEqual([]);
      // Only in the first piece of the stream do they begin at once.
      expect(pauses("audio", 1024 / 48_000)).toHaveLength(1);
    },
  );

  it("have FLAC whose frames are numbered in the order of the file", async () => {
    const stream = streamOf("HLS fMP4 h264+flac, pieces of 24 frames, its audio");
    const { audio, warnings } = await download(stream, [2, 1, 0, 3], true);
    const steps = audio.slice(1).map(({ pts }, i) => pts - audio[i]!.pts);
    expect(steps.every((step) => step === 4_608)).toBe(true);
    expect(warnings).toEqual([]);
  });

  it("stay an MP4 if a shorter frame of FLAC is not the last one, whose time its number would not tell", async () => {
    const stream = streamOf("HLS fMP4 h264+flac, pieces of 24 frames, its audio");
    const { audio, container } = await download(stream, [3, 1, 2, 0], true);
    expect(container).toBe("mp4");
    const samples = audio.map(({ duration }) => duration);
    expect(audio.every(({ pts }, i) => i === 0 || pts - audio[i - 1]!.pts === samples[i - 1])).toBe(true);
    expect(samples.filter((each) => each !== 4_608)).toHaveLength(1);
  });
});
