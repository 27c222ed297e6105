import { afterAll, describe, expect, it } from "vitest";
import { CountingSink } from "../../src/engines/native/output/counting-sink.ts";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import type { TrackStats } from "../../src/engines/native/output/track-stats.ts";
import { openEntry } from "../contracts/engine/harness.ts";
import { readMedium } from "../media/rendition.ts";
import { resource } from "../media/resources.ts";
import type { Edit, SampleSink, TrackKind } from "../../src/remux/samples.ts";

const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
afterAll(() => engine.close());

const ignore: SampleSink = { setFormat: (_format, track) => track ?? 0, write: () => {} };

interface Times {
  dts: number;
  pts?: number;
  duration?: number;
  isHidden?: boolean;
}

/** Returns the stats of a track with these times, in ticks of 1/100 s. */
function statsOf(
  samples: readonly Times[],
  kind: TrackKind = "video",
  edits?: readonly Edit[],
  entryType = "mp4a",
): TrackStats | undefined {
  const sink = new CountingSink(ignore);
  const shape = { sampleEntry: Buffer.from(`....${entryType}`), width: 0, height: 0, language: null };
  const track = sink.setFormat({ kind, timescale: 100, ...shape, ...(edits && { edits }) });
  for (const { dts, pts = dts, duration = 0, ...more } of samples) {
    sink.write(track, { data: new Uint8Array(), dts, pts, duration, isSync: true, ...more });
  }
  return sink.tracks()[0];
}

/** Returns the stats of a track of video whose parts are on timelines of their own. */
function joinedStats(parts: readonly (readonly Times[])[]): TrackStats | undefined {
  const sink = new CountingSink(ignore);
  const shape = { sampleEntry: Buffer.from("....avc1"), width: 9, height: 9, language: null };
  const track = sink.setFormat({ kind: "video", timescale: 100, ...shape });
  for (const [timeline, samples] of parts.entries()) {
    sink.startSegment({ timeline, offsetS: null });
    for (const { dts, pts = dts } of samples) {
      sink.write(track, { data: new Uint8Array(), dts, pts, duration: 4, isSync: true });
    }
  }
  return sink.tracks()[0];
}

const every = (ticks: number, count: number, from = 0): Times[] =>
  Array.from({ length: count }, (_, i) => ({ dts: from + i * ticks }));

describe("a gap in a track", () => {
  it("is a time of over a second without samples, after what the sample before lasts", () => {
    const stats = statsOf([...every(4, 50), ...every(4, 50, 350)]);
    expect(stats?.gaps).toEqual({ count: 1, totalS: 1.5, first: [{ fromS: 2, toS: 3.5 }] });
    expect(statsOf([...every(4, 50), ...every(4, 50, 300)])?.gaps.count).toBe(0);
  });

  it("is where nothing is presented, also if the frame after it is decoded before it", () => {
    const shown = [...every(4, 50), ...every(4, 50, 350)].map(({ dts }) => dts);
    const samples = shown.map((pts, i) => ({ dts: shown[i - 1] ?? -4, pts, duration: 4 }));
    expect(statsOf(samples)?.gaps.first).toEqual([{ fromS: 2, toS: 3.5 }]);
  });

  it("is not between the pictures of a slide show", () => {
    expect(statsOf(every(500, 10))?.gaps.count).toBe(0);
    const stated = [
      { dts: 0, duration: 4 },
      { dts: 4, duration: 900 },
      { dts: 904, duration: 4 },
    ];
    expect(statsOf(stated)?.gaps.count).toBe(0);
  });

  it("is counted, and the first ones are kept", () => {
    const parts = Array.from({ length: 5 }, (_, i) => every(4, 10, 1_000 * i));
    const gaps = statsOf(parts.flat())?.gaps;
    expect(gaps).toMatchObject({ count: 4, totalS: 4 * 9.6 });
    expect(gaps?.first).toHaveLength(3);
  });
});

describe("a time that another sample has", () => {
  it("is counted, also if pictures are reordered", () => {
    const reordered = [0, 12, 4, 8, 24, 16, 20].map((pts, i) => ({ dts: 4 * i, pts }));
    expect(statsOf(reordered)).toMatchObject({ samples: 7, outOfOrder: 0, sameTime: 0 });
    expect(statsOf([...reordered, { dts: 28, pts: 20 }])).toMatchObject({
      outOfOrder: 0,
      sameTime: 1,
    });
  });

  it("is one of audio that states no duration and comes with the sample before", () => {
    const sameTime = [...every(4, 10), { dts: 36 }, { dts: 36 }, ...every(4, 10, 48)];
    expect(statsOf(sameTime, "audio")).toMatchObject({ outOfOrder: 0, sameTime: 2 });
    // Parts that overlap have frames of a known duration.
    const stated = sameTime.map((times) => ({ ...times, duration: 4 }));
    expect(statsOf(stated, "audio")).toMatchObject({ outOfOrder: 0, sameTime: 0 });
    expect(statsOf(every(1, 10), "audio")).toMatchObject({ outOfOrder: 0, sameTime: 0 });
  });

  it("is counted if it was guessed", () => {
    expect(statsOf(every(4, 10).map((times, i) => ({ ...times, isGuessed: i > 6 })))).toMatchObject({ guessed: 3 });
  });

  it("is one of a sample that does not come after the one before", () => {
    expect(statsOf([...every(4, 10), ...every(4, 10)])).toMatchObject({
      samples: 20,
      outOfOrder: 10,
    });
  });

  it("is allowed where a part is joined whose pictures are reordered, if they are shown after all before them", () => {
    const reordered = (from: number) =>
      [8, 24, 16, 12, 20, 40, 32, 28, 36].map((pts, i) => ({ dts: from + 4 * i, pts: from + pts }));
    const joined = (from: number) => joinedStats([every(4, 20), reordered(from)]);
    expect(joined(72)).toMatchObject({ outOfOrder: 0, sameTime: 0 });
    expect(joined(68)).toMatchObject({ outOfOrder: 1 });
    expect(statsOf([...every(4, 20), ...reordered(72)])).toMatchObject({ outOfOrder: 2 });
  });

  it("is not one of a hidden sample", () => {
    const hidden = every(4, 10, 20).map((times) => ({ ...times, isHidden: true }));
    const stats = statsOf([...every(4, 10), ...hidden, ...every(4, 10, 40)]);
    expect(stats).toMatchObject({ samples: 30, outOfOrder: 0, sameTime: 0, startS: 0, endS: 0.8 });
    const late = statsOf([...every(4, 10), ...hidden, ...every(4, 10, 240)]);
    expect(late?.gaps).toEqual({ count: 1, totalS: 2, first: [{ fromS: 0.4, toS: 2.4 }] });
  });

  it("is allowed where audio overlaps by less than two samples", () => {
    const joined = [...every(10, 10), ...every(10, 10, 75)];
    expect(statsOf(joined, "audio")).toMatchObject({ outOfOrder: 0 });
    expect(statsOf(joined, "video")).toMatchObject({ outOfOrder: 2 });
    expect(statsOf([...every(10, 10), { dts: 70 }], "audio")).toMatchObject({ outOfOrder: 1 });
    const short = [...every(10, 10), { dts: 100, duration: 3 }];
    expect(statsOf([...short, ...every(10, 10, 85)], "audio")).toMatchObject({ outOfOrder: 0 });
  });

  it("is allowed where lossless audio, which has no priming, overlaps by less than one sample", () => {
    const overlap = (from: number) => statsOf([...every(10, 10), ...every(10, 10, from)], "audio", undefined, "fLaC");
    expect(overlap(81)).toMatchObject({ outOfOrder: 0 });
    expect(overlap(80)).toMatchObject({ outOfOrder: 1 });
  });
});

describe("the first packet of Vorbis", () => {
  it("lasts no time: the second one may have the same", async () => {
    await using harness = await openEntry(
      () => engine,
      new Map([["a.ogg", resource("audio/ogg", readMedium("vorbis.ogg"))]]),
      "a.ogg",
    );
    const ranges = [{ startS: 0.2, endS: 0.6 }];
    expect((await harness.download({ ranges, isAudioFile: true })).warnings).toEqual([]);
  });
});

describe("the start and the end of a track", () => {
  const edit = (mediaTicks: number, durationTicks: number, emptyTicks = 0): Edit => ({
    mediaTicks,
    durationTicks,
    emptyTicks,
  });

  it("are those of its samples, or of what its edits present of them", () => {
    const samples = every(4, 100);
    expect(statsOf(samples)).toMatchObject({ startS: 0, endS: 4 });
    expect(statsOf(samples, "video", [edit(100, 250)])).toMatchObject({ startS: 1, endS: 3.5 });
    expect(statsOf(samples, "video", [edit(100, Infinity)])).toMatchObject({ startS: 1, endS: 4 });
    expect(statsOf(samples, "video", [edit(0, 100), edit(0, 300, 50)])).toMatchObject({ startS: 0, endS: 4.5 });
  });
});

describe("a packet of audio that states to last longer than it can hold", () => {
  const packets = (entryType: string, lastTicks = 2) => {
    const times = Array.from({ length: 20 }, (_, i) => ({
      dts: 2 * i + (i > 10 ? 200 : 0),
      duration: i === 10 ? 202 : 2,
    }));
    times.at(-1)!.duration = lastTicks;
    return statsOf(times, "audio", undefined, entryType);
  };

  for (const entryType of ["fLaC", "Opus", ".mp3", "ac-3"]) {
    it(`is followed by a gap: ${entryType}`, () => {
      expect(packets(entryType)?.gaps).toEqual({ count: 1, totalS: 2, first: [{ fromS: 0.22, toS: 2.22 }] });
    });
  }

  it("ends with what it holds", () => {
    expect(packets("Opus", 202)?.endS).toBeCloseTo(2.4);
  });

  it("is none of PCM, of which a sample has as much as its writer likes", () => {
    expect(packets("sowt")?.gaps.count).toBe(0);
  });
});
