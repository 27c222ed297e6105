import { readFile } from "node:fs/promises";
import { afterAll, describe, expect, it } from "vitest";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { sniffContainer } from "../../src/remux/sniff.ts";
import { openEntry } from "../contracts/engine/harness.ts";
import { stopFfmpeg } from "../fuzz/streams/ffmpeg.ts";
import { createSources } from "../fuzz/streams/sources.ts";
import { listStreams, type Part, type Stream } from "../fuzz/streams/streams.ts";
import { hasFfmpeg, probePackets } from "../remux/ts-media.ts";

const sources = createSources();
afterAll(() => sources.remove());
afterAll(stopFfmpeg);
const engine = createNativeEngine({ allowNetworks: "127.0.0.1/32" });
afterAll(() => engine.close());

const streamOf = (name: string) => listStreams().find((stream) => stream.name === name)!;

/** Downloads the pieces in another order, which the playlists say, or do not. */
async function download(stream: Stream, order: readonly number[], isAnnounced: boolean) {
  const parts = (await stream.make(sources)).map((part): Part => {
    const { init, pieces } = part.rendition;
    const listed = order.map((index, at) => {
      const isJoin = isAnnounced && at > 0 && index !== order[at - 1]! + 1;
      return { ...pieces[index]!, isJoin };
    });
    return { ...part, rendition: { init, pieces: listed } };
  });
  const { resources, entry } = stream.lay(parts);
  await using harness = await openEntry(() => engine, resources, entry);
  const { audioOnly = false } = stream.options;
  const { path, warnings } = await harness.download({ audioOnly, isAudioFile: audioOnly });
  const container = sniffContainer(await readFile(path));
  return { warnings: warnings.map(({ code }) => code), container, ...probePackets(path) };
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

  it("begin where the longest track ends, so that no picture overlaps another one", async () => {
    const { video } = await download(streamOf("HLS mpegts, tracks apart, h264+aac"), [2, 1, 0, 3], true);
    const steps = video.slice(1).map(({ pts }, i) => Math.round((pts - video[i]!.pts) / 90));
    expect(steps.every((step) => step === 40)).toBe(true);
  });

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
