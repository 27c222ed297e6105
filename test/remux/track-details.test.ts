import { describe, expect, test } from "vitest";
import type { SampleSink, TrackFormat } from "../../src/remux/samples.ts";
import { box, u16, u32 } from "../../src/remux/mp4/boxes.ts";
import { describeAudio, withDetails, withOpusTimes } from "../../src/remux/track-details.ts";
import { audioFormat, createRecorder, videoFormat } from "./mp4-samples.ts";

function createFormatRecorder(): { sink: SampleSink; formats: TrackFormat[] } {
  const formats: TrackFormat[] = [];
  return { sink: { setFormat: (format) => formats.push(format) - 1, write: () => {} }, formats };
}

test("what a stream's format says of audio is said of its first audio track", () => {
  const { sink: recorder, formats } = createFormatRecorder();
  const sink = describeAudio(recorder, { language: "en", name: "Jokes" }, 1);
  const first = [videoFormat, audioFormat].map((format) => sink.setFormat({ ...format, language: null }));
  sink.setFormat({ ...audioFormat, language: null });
  sink.setFormat({ ...audioFormat, language: "de" }, first[1]);
  expect(formats.map(({ kind, language, name }) => [kind, language, name])).toEqual([
    ["video", null, undefined],
    ["audio", "en", "Jokes"],
    ["audio", null, undefined],
    ["audio", "de", "Jokes"],
  ]);
});

test("VP8 has eight bits, and colours only where they are stated", () => {
  const entryOf = (type: string, ...boxes: Uint8Array[]) => box(type, new Uint8Array(78), ...boxes);
  const config = (...fields: number[]) => box("vpcC", Uint8Array.of(1, 0, 0, 0, ...fields, 0, 0));
  const colours = box("colr", Buffer.from("nclx"), u16(6, 6, 6), Uint8Array.of(0));
  const written = (sampleEntry: Uint8Array) => {
    const { sink, formats } = createFormatRecorder();
    withDetails(sink, []).setFormat({ ...videoFormat, sampleEntry });
    return formats[0]!.sampleEntry;
  };
  const [unknown, stated] = [config(0, 0, 0x02, 1, 1, 1), config(0, 0, 0x02, 6, 6, 6)];
  expect(written(entryOf("vp08", unknown))).toEqual(entryOf("vp08", config(0, 0, 0x82, 2, 2, 2)));
  expect(written(entryOf("vp08", stated, colours))).toEqual(entryOf("vp08", config(0, 0, 0x82, 6, 6, 6), colours));
  for (const other of [entryOf("vp08", config(0, 0, 0x82, 1, 1, 1)), entryOf("vp09", unknown), entryOf("vp08")]) {
    expect(written(other)).toBe(other);
  }
});

describe("packets of Opus with one time", () => {
  const entryOf = (preSkip: number) => {
    const specific = box("dOps", Uint8Array.of(0, 2), u16(preSkip), u32(48_000), u16(0), Uint8Array.of(0));
    return box("Opus", new Uint8Array(6), u16(1), u32(0, 0), u16(2, 16, 0, 0), u32(48_000 << 16), specific);
  };
  const sampleEntry = entryOf(312);
  /** A frame of 20 ms (RFC 6716 §3.1). */
  const packet = Buffer.from([0x78, 1, 2]);
  /** Returns times and durations of packets that the file has with these. */
  const timesOf = (stated: readonly (readonly [number, number])[], entry: Uint8Array = sampleEntry) => {
    const { sink, tracks } = createRecorder();
    const timed = withOpusTimes(sink);
    const track = timed.setFormat({ ...audioFormat, sampleEntry: entry });
    for (const [dts, duration] of stated) {
      timed.write(track, { data: packet, dts, pts: dts, duration, isSync: true });
    }
    return tracks[0]!.map((sample) => [sample.dts, sample.duration]);
  };

  test("come one after the other, as in a lace at the end of a cluster of Matroska", () => {
    const lace = [
      [960, 0],
      [960, 0],
      [960, 2880],
      [3840, 960],
    ] as const;
    expect(timesOf([[0, 960], ...lace])).toEqual([0, 960, 1920, 2880, 3840].map((dts) => [dts, 960]));
  });

  test("come one after the other at the start too, if they are more than a decoder leaves out", () => {
    const lace: [number, number][] = [
      [0, 0],
      [0, 0],
      [0, 2880],
      [2880, 960],
    ];
    expect(timesOf(lace).map(([dts]) => dts)).toEqual([0, 960, 1920, 2880]);
    const short = timesOf(lace, entryOf(1300)).map(([dts]) => dts);
    expect(short).toEqual([0, 0, 1920, 2880]);
  });

  test("stay at the start, where a decoder may leave them out, and so do all others", () => {
    const start: [number, number][] = [
      [0, 0],
      [0, 648],
      [648, 960],
      [1608, 500],
    ];
    expect(timesOf(start, entryOf(1272))).toEqual(start);
    const others: [number, number][] = [
      [0, 960],
      [960, 0],
      [960, 960],
    ];
    expect(timesOf(others, audioFormat.sampleEntry)).toEqual(others);
  });
});
