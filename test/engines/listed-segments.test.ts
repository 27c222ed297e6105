import { expect, it } from "vitest";
import { CountingSink } from "../../src/engines/native/output/counting-sink.ts";
import { WebmSegments } from "../../src/engines/native/output/webm-segments.ts";
import { ids } from "../../src/remux/matroska/elements.ts";
import { element } from "../../src/remux/matroska/write-elements.ts";
import type { SampleSink } from "../../src/remux/samples.ts";
import { readWebmRendition } from "../media/rendition.ts";

const ignore: SampleSink = { setFormat: (_format, track) => track ?? 0, write: () => {} };
const framesPerSecond = 25;
const ticks = 40;
const shape = { sampleEntry: new Uint8Array(), width: 0, height: 0, language: null };

/**
 * Counts the frames of segments, which have the times of the source: of each its listed duration, and which of its frames
 * there are: from one on, to another, or every second, third and so on.
 */
function count(
  segments: readonly {
    durationS: number;
    from?: number;
    to?: number;
    every?: number;
    timeline?: number;
    before?: (sink: CountingSink) => void;
  }[],
): CountingSink {
  const sink = new CountingSink(ignore);
  let track: number | undefined;
  let start = 0;
  for (const { durationS, from = 0, to = Infinity, every = 1, timeline = 0, before } of segments) {
    before?.(sink);
    sink.startSegment({ timeline, offsetS: null, durationS });
    track ??= sink.setFormat({ kind: "video", timescale: 1000, ...shape });
    const frames = Math.ceil(durationS * framesPerSecond);
    for (let i = from; i < Math.min(frames, to); i += every) {
      const dts = (start + i) * ticks;
      sink.write(track, { data: new Uint8Array(), dts, pts: dts, duration: ticks * every, isSync: i === 0 });
    }
    start += frames;
  }
  return sink;
}

const gapsOf = (sink: CountingSink) => sink.tracks()[0]?.gaps.first;

it("a short segment that is missing is a gap", () => {
  const sink = count([{ durationS: 0.48 }, { durationS: 0.48 }, { durationS: 0.48, from: 12 }, { durationS: 0.48 }]);
  expect(gapsOf(sink)).toEqual([{ fromS: 0.96, toS: 1.44 }]);
});

it("a few missing frames of many that come at equal distances are a gap", () => {
  expect(gapsOf(count([{ durationS: 2.04 }, { durationS: 2.04, to: 45 }, { durationS: 2.04 }]))).toHaveLength(1);
});

it("missing frames near the start are a gap if those after them come at the distance of those before", () => {
  const start = { durationS: 1, to: 8 };
  expect(gapsOf(count([start, { durationS: 1 }]))).toEqual([{ fromS: 0.32, toS: 1 }]);
  expect(gapsOf(count([start, { durationS: 1, every: 2 }, { durationS: 1 }]))).toEqual([]);
});

it("so much less than a segment is no gap where it is already known that media are left out", () => {
  const drop = (sink: CountingSink) => sink.drop("video");
  const parts = [{ durationS: 2.04 }, { durationS: 2.04, to: 45 }, { durationS: 2.04, before: drop }];
  expect(gapsOf(count(parts))).toEqual([]);
});

it("so much less than a segment is no gap where parts are joined", () => {
  const parts = [{ durationS: 2.04 }, { durationS: 2.04, to: 45 }, { durationS: 2.04, timeline: 1 }];
  expect(gapsOf(count(parts))).toEqual([]);
});

it.each([
  ["no gap", "another timeline", 1, []],
  ["a gap", "another segment", 0, [{ fromS: 0.32, toS: 0.72 }]],
])("missing frames are %s in a track whose samples were held back until %s began", (_, __, timeline, gaps) => {
  const sink = new CountingSink(ignore);
  for (const each of [0, timeline]) sink.startSegment({ timeline: each, offsetS: null, durationS: 0.72 });
  const track = sink.setFormat({ ...shape, kind: "video", timescale: 1000 });
  for (let i = 0; i < 40; i++) {
    const dts = (i < 8 ? i : i + 10) * ticks;
    sink.write(track, { data: new Uint8Array(), dts, pts: dts, duration: ticks, isSync: i === 0 });
  }
  expect(gapsOf(sink)).toEqual(gaps);
});

it("the end of the last segment is missing if the others last as long as listed", () => {
  expect(count([{ durationS: 2.04 }, { durationS: 2.04 }, { durationS: 2.04, to: 40 }]).missingEndS()).toBeCloseTo(
    0.44,
  );
  expect(count([{ durationS: 2.04 }, { durationS: 2.04 }, { durationS: 2.04 }]).missingEndS()).toBe(0);
  expect(
    count([
      { durationS: 2.04, to: 40 },
      { durationS: 2.04, to: 40 },
    ]).missingEndS(),
  ).toBe(0);
});

it("the end of a segment before another timeline is missing if another segment of its own lasts as long as listed", () => {
  const [whole, cut] = [{ durationS: 2.04 }, { durationS: 2.04, to: 40 }];
  const missing = (...parts: Parameters<typeof count>[0]) =>
    count(parts)
      .missingBeforeS()
      .map((missingS) => Number(missingS.toFixed(2)));
  const [next, third] = [1, 2].map((timeline) => ({ ...whole, timeline }));
  expect(missing(whole, cut, next!, third!)).toEqual([0.44]);
  expect(missing(whole, whole, next!, third!)).toEqual([]);
  expect(missing(whole, whole, next!, { ...cut, timeline: 1 }, third!)).toEqual([]);
  expect(missing(whole, whole, next!, next!, { ...cut, timeline: 1 }, third!)).toEqual([0.44]);
  expect(missing(cut, next!, next!)).toEqual([]);
});

it("whole seconds may be rounded", () => {
  expect(count([{ durationS: 2 }, { durationS: 2 }, { durationS: 2, to: 40 }]).missingEndS()).toBe(0);
  expect(count([{ durationS: 2 }, { durationS: 2 }, { durationS: 2, to: 25 }]).missingEndS()).toBeCloseTo(1);
});

it("a segment of WebM that is cut off is damaged, and a missing one is a gap", () => {
  const { init, pieces } = readWebmRendition("video.webm");
  const read = (segments: readonly Buffer[]) => {
    const counts = new WebmSegments("main");
    for (const data of [init!, ...segments]) counts.add(data, { timeline: 0, offsetS: 0, durationS: 1 });
    return counts;
  };
  const all = pieces.map(({ data }) => data);
  expect(read(all).damaged).toBe(0);
  expect(read(all).tracks()[0]?.gaps.count).toBe(0);
  expect(read(all.with(2, all[2]!.subarray(0, -10))).damaged).toBe(1);
  expect(read(all.toSpliced(2, 1)).tracks()[0]?.gaps.count).toBe(1);
});

it("an init section of WebM may state the size of the file that it was cut from, which makes no segment damaged", () => {
  const { init, pieces } = readWebmRendition("video.webm");
  const all = pieces.map(({ data }) => data);
  const sized = Buffer.from(init!);
  const size = sized.indexOf("18538067", "hex") + 4;
  expect(sized.readUInt8(size)).toBe(1);
  sized.writeUIntBE(Buffer.concat([init!, ...all]).length - size - 8, size + 2, 6);
  sized.writeUInt8(0, size + 1);
  const damaged = (segments: readonly Buffer[]) => {
    const counts = new WebmSegments("main");
    for (const data of [sized, ...segments]) counts.add(data, { timeline: 0, offsetS: 0, durationS: 1 });
    return counts.damaged;
  };
  expect(damaged(all)).toBe(0);
  expect(damaged(all.with(2, all[2]!.subarray(0, -10)))).toBe(1);
});

it("a segment of WebM is damaged if the sizes of a lace do not fit, but not if they do", () => {
  const { init, pieces } = readWebmRendition("video.webm");
  const lace = (lacing: number, ...payload: number[]) =>
    Buffer.from(element(ids.simpleBlock, Uint8Array.of(0x81, 0x7f, 0xff, 0x80 | (lacing << 1), ...payload)));
  const damaged = (block: Buffer) => {
    const counts = new WebmSegments("main");
    for (const each of [init!, ...pieces.map(({ data }) => data), block]) {
      counts.add(each, { timeline: 0, offsetS: 0, durationS: 1 });
    }
    return counts.damaged;
  };
  const [xiph, fixed, ebml] = [1, 2, 3];
  for (const block of [lace(xiph, 1, 2, 7, 7, 7), lace(fixed, 1, 7, 7), lace(ebml, 1, 0x81, 7, 7)]) {
    expect(damaged(block)).toBe(0);
  }
  for (const block of [lace(xiph, 1, 9, 7, 7, 7), lace(fixed, 1, 7, 7, 7), lace(ebml, 0, 7, 7)]) {
    expect(damaged(block)).toBe(1);
  }
});

it("media of WebM that are twice in a segment, or in another order, do not come after those before", () => {
  const { init, pieces } = readWebmRendition("video.webm");
  const all = pieces.map(({ data }) => data);
  const outOfOrder = (segments: readonly Buffer[]) => {
    const counts = new WebmSegments("main");
    for (const data of [init!, ...segments]) counts.add(data, { timeline: 0, offsetS: 0, durationS: 1 });
    return counts.outOfOrder;
  };
  expect(outOfOrder(all)).toBe(0);
  expect(outOfOrder(all.toSpliced(1, 1))).toBe(0);
  expect(outOfOrder(all.with(1, Buffer.concat([all[1]!, all[1]!])))).toBe(1);
  expect(outOfOrder(all.with(1, all[2]!).with(2, all[1]!))).toBe(1);
  // Of a track that the init section does not list.
  const others = Buffer.concat(
    [9, 0].map((time) => Buffer.from(element(ids.simpleBlock, Uint8Array.of(0x85, 0, time, 0x80, 0)))),
  );
  expect(outOfOrder(all.with(1, Buffer.concat([all[1]!, others])))).toBe(0);
});
