import { readFileSync, truncateSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import { ascii, box, fullBox, u32, u64 } from "../../src/remux/mp4/boxes.ts";
import { createMp4Demuxer } from "../../src/remux/mp4/read/demuxer.ts";
import { isCompleteMp4 } from "../../src/remux/mp4/read/file-boxes.ts";
import { Mp4Writer } from "../../src/remux/mp4/write/writer.ts";
import { type Sample, type SampleSink, type TrackKind, trackKinds } from "../../src/remux/samples.ts";
import { Timelines } from "../../src/remux/timelines.ts";
import { createIntegers } from "../random.ts";
import { openFolder, start } from "./mp4-media.ts";
import {
  audioFormat,
  createRecorder,
  fillPattern,
  fragmentOf,
  indexOf,
  replaceTable,
  videoFormat,
} from "./mp4-samples.ts";

const folder = openFolder();
const path = folder.path("good.mp4");

/** Writes a small file of two tracks with B-frames; returns its index, and a fragment of its samples. */
function makeFile(): [index: Buffer, fragment: Buffer] {
  const writer = new Mp4Writer({ path, expectedS: 1 });
  const tracks = [writer.setFormat(videoFormat), writer.setFormat(audioFormat)];
  const samples: [Sample[], Sample[]] = [[], []];
  for (let i = 0; i < 40; i++) {
    const dts = Math.floor(i / 2) * 1000;
    const pts = dts + (i % 4) * 500;
    const sample = { data: fillPattern(20, i), dts, pts, duration: 1000, isSync: i % 8 < 2 };
    writer.write(tracks[i % 2]!, sample);
    samples[i % 2]!.push(sample);
  }
  writer.finish();
  return [indexOf(path), fragmentOf(samples)];
}

/** Returns the index of a file whose tracks have this timescale. */
function indexIn(timescale: number): Buffer {
  const file = folder.path("scaled.mp4");
  const writer = new Mp4Writer({ path: file, expectedS: 1 });
  for (const [number, format] of [videoFormat, audioFormat].entries()) {
    const [sample] = samplesAt(0, number);
    writer.write(writer.setFormat({ ...format, timescale }), sample!);
  }
  writer.finish();
  return indexOf(file);
}

const samplesAt = (startTicks: number, number: number): Sample[] =>
  [0, 1, 2].map((i) => {
    const dts = startTicks + i * 213_334;
    return { data: fillPattern(40, number + 10 * i), dts, pts: dts, duration: 213_334, isSync: true };
  });

function keep(name: string, bytes: Buffer): string {
  writeFileSync(folder.path(name), bytes);
  return folder.path(name);
}

interface Outcome {
  code: string;
  bytes: number;
  samples: number;
}

/** Reads segments, or the files at paths, and counts the samples; throws errors other than ServiceError. */
function outcome(segments: Iterable<Uint8Array | string>, kinds: readonly TrackKind[] = trackKinds): Outcome {
  const seen = { code: "none", bytes: 0, samples: 0 };
  const sink: SampleSink = {
    setFormat: (_format, track = 0) => track,
    write(_track, { data, dts, pts, duration }) {
      if (![dts, pts, duration].every(Number.isSafeInteger)) throw new Error("no whole ticks");
      seen.samples++;
      seen.bytes += data.length;
    },
  };
  const demuxer = createMp4Demuxer({ sink, timelines: new Timelines(), kinds });
  try {
    for (const segment of segments) {
      if (typeof segment !== "string") demuxer.read(segment, start);
      else for (const _ of demuxer.readFile({ path: segment }, start));
    }
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    seen.code = error.code;
  }
  return seen;
}

/** Returns a fragment of `count` samples, whose size is stated once for all of them. */
function fragment(count: number, size: number, data: Uint8Array, runs = 1): Uint8Array {
  const trun = fullBox("trun", 0, 0x1, u32(count, 8));
  const tfhd = fullBox("tfhd", 0, 0x20038, u32(1, 1000, size, 0));
  const traf = box("traf", tfhd, Buffer.concat(Array<Uint8Array>(runs).fill(trun)));
  return Buffer.concat([box("moof", traf), box("mdat", data)]);
}

describe("hostile MP4", () => {
  const [index, intact] = makeFile();
  const whole = readFileSync(path);

  it("is read if it is intact", () => {
    const all = { code: "none", bytes: 800, samples: 40 };
    expect([[index, intact], [whole], [path]].map((segments) => outcome(segments))).toEqual([all, all, all]);
  });

  it("is read if it has very many pictures that are not wanted", () => {
    const audio = { code: "none", bytes: 400, samples: 20 };
    expect(outcome([index, intact, fragment(500_000, 0, Buffer.alloc(1))], ["audio"])).toEqual(audio);
  });

  it.each([
    ["a fragment before its index", [intact]],
    ["four billion samples of no size", [index, fragment(2 ** 32 - 1, 0, Buffer.alloc(10))]],
    ["four billion samples of one byte", [index, fragment(2 ** 32 - 1, 1, Buffer.alloc(10))]],
    ["one sample of four gigabytes", [index, fragment(1, 2 ** 32 - 1, Buffer.alloc(10))]],
    ["the same bytes over and over", [index, fragment(10, 100, Buffer.alloc(1000), 2000)]],
    ["a box of no size inside another", [index, box("moof", u32(4), Buffer.from("traf"))]],
    ["a box longer than its parent", [index, box("moof", u32(1000), Buffer.from("traf"))]],
    ["a 64-bit size beyond all", [Buffer.concat([u32(1), Buffer.from("moov"), u64(2 ** 52)])]],
    ["a 64-bit size that is cut off", [Buffer.concat([u32(1), Buffer.from("moov")])]],
    ["the first bytes of a box", [index.subarray(0, 5)]],
    ["an index with nothing in it", [box("moov")]],
    ["text", [Buffer.from("<!doctype html><title>404</title>")]],
  ])("is refused: %s", (_name, segments) => {
    const seen = outcome(segments);
    expect(seen.code).toBe("upstream_invalid");
    expect(seen.bytes).toBeLessThan(100_000);
  });

  it("may have more runs than a call has arguments in a fragment after its media data", () => {
    const front = box("mdat", Buffer.alloc(10));
    const file = keep("runs.mp4", Buffer.concat([index, front, fragment(1, 1, Buffer.alloc(130_000), 130_000)]));
    expect(outcome([file]).code).toBe("none");
  });

  it("may end with a top-level box of size 0, which extends to the end", () => {
    const open = Buffer.from(intact);
    open.writeUInt32BE(0, intact.indexOf("mdat") - 4);
    expect(outcome([index, open])).toMatchObject({ code: "none", samples: 40 });
  });

  describe("decode times beyond 2^53, as since 1970 in units of 100 ns", () => {
    const epochS = 1_636_123_456;
    const timescale = 10_000_000;
    const fragments = fragmentOf([40, 41].map((id) => samplesAt(epochS * timescale, id)));
    const read = (offsetS: number | null) => {
      const { sink, tracks } = createRecorder();
      const demuxer = createMp4Demuxer({ sink, timelines: new Timelines(), kinds: ["video", "audio"] });
      for (const segment of [indexIn(timescale), fragments]) demuxer.read(segment, { timeline: 0, offsetS });
      return tracks.map((samples) => samples.map(({ shownS }) => shownS));
    };

    it.each([
      ["where the manifest says", -epochS],
      ["at the start if nothing says where", null],
    ])("are placed %s", (_what, offsetS) => {
      for (const [first, ...others] of read(offsetS)) {
        expect(first).toBeCloseTo(0, 5);
        for (const [i, shownS] of others.entries()) expect(shownS).toBeCloseTo((i + 1) * 0.0213334, 5);
      }
    });

    it("are refused if they stay so large", () => {
      expect(() => read(0)).toThrow(expect.objectContaining({ code: "upstream_invalid" }));
    });
  });

  it("has lost media if a segment has data that no fragment describes, or none and is not the last one", () => {
    const drops = (...segments: readonly Uint8Array[]) => {
      const dropped: string[] = [];
      const onDrop = (kind: string) => void dropped.push(kind);
      const { sink } = createRecorder();
      const demuxer = createMp4Demuxer({ sink, timelines: new Timelines(), kinds: ["video", "audio"], onDrop });
      for (const each of [index, ...segments]) demuxer.read(each, start);
      return dropped;
    };
    const type = box("styp", ascii("msdh"), u32(0), ascii("msdh"));
    expect(drops(intact, type, type)).toEqual([]);
    expect(drops(type, intact, type)).toEqual(["video", "audio"]);
    expect(drops(intact, type, intact)).toEqual(["video", "audio"]);
    expect(drops(intact, Buffer.concat([type, box("mdat", Buffer.alloc(100))]))).toEqual(["video", "audio"]);
    expect(drops(intact, Buffer.concat([type, box("wxyz", Buffer.alloc(100))]))).toEqual(["video", "audio"]);
  });

  it("does not descend into boxes that it does not know", () => {
    let nested = box("traf");
    for (let i = 0; i < 2000; i++) nested = box("moof", nested);
    expect(outcome([index, nested]).samples).toBe(0);
  });

  it("is drm_protected if it is encrypted", () => {
    const clear = Buffer.from(index);
    clear.write("encv", clear.indexOf("avc1", clear.indexOf("stsd")));
    expect(outcome([clear]).code).toBe("drm_protected");
  });

  it.each([
    ["an index and a fragment", 4000, [index, intact], (segments: Buffer[]) => segments],
    ["a file in memory", 2000, [whole], (segments: Buffer[]) => segments],
    ["a file on the disk", 500, [whole], ([changed]: Buffer[]) => [keep("changed.mp4", changed!)]],
  ])("results in samples or a typed error whatever changes in %s", (_name, rounds, parts, read) => {
    const random = createIntegers(1);
    const codes = new Set<string>();
    const size = Buffer.concat(parts).length;
    for (let round = 0; round < rounds; round++) {
      const changed = parts.map((part) => Buffer.from(part));
      for (let change = 0; change <= random(3); change++) {
        const target = changed[random(parts.length)]!;
        const at = random(target.length - 4);
        if (random(2) === 0) target[at] = random(256);
        else target.writeUInt32BE([0, 1, 0xffffffff, 0x7fffffff, 8][random(5)]!, at & ~3);
      }
      const seen = outcome(read(changed));
      codes.add(seen.code);
      expect(seen.bytes).toBeLessThanOrEqual(size);
    }
    expect([...codes].toSorted()).toEqual(["format_unavailable", "none", "upstream_invalid"]);
  });

  it.each([0x80000000, 0x001fffff])("is refused: a sample at the 64-bit offset %i << 32", (high) => {
    const wide = replaceTable(whole, fullBox("co64", 0, 0, u32(1, high, 0xffffffff)), "stco");
    for (const segment of [wide, keep("wide.mp4", wide)]) {
      expect(outcome([segment]).code).toBe("upstream_invalid");
    }
  });
});

describe("an MP4 file that was cut off", () => {
  makeFile();
  const whole = readFileSync(path);
  const cut = folder.path("cut.mp4");

  it("is never taken for a complete one, wherever it was cut", () => {
    expect(isCompleteMp4(path)).toBe(true);
    writeFileSync(cut, whole);
    for (let length = whole.length - 1; length >= 0; length--) {
      truncateSync(cut, length);
      expect(isCompleteMp4(cut), `cut at ${length}`).toBe(false);
    }
  });

  it("is refused when it is read", () => {
    writeFileSync(cut, whole);
    for (let length = whole.length - 1; length >= 0; length -= 7) {
      truncateSync(cut, length);
      expect(outcome([cut]), `${length}`).toMatchObject({ code: "upstream_invalid", samples: 0 });
    }
  });

  it("may have sizes of 64 bits and a last box of size 0", () => {
    const tail = Buffer.concat([u32(1), Buffer.from("mdat"), u64(20), u32(0)]);
    writeFileSync(cut, Buffer.concat([whole, tail, u32(0), Buffer.from("mdat"), whole]));
    expect(isCompleteMp4(cut)).toBe(true);
    writeFileSync(cut, Buffer.concat([whole, tail.subarray(0, 19)]));
    expect(isCompleteMp4(cut)).toBe(false);
  });

  it("is not complete without an index", () => {
    writeFileSync(cut, box("mdat", whole));
    expect(isCompleteMp4(cut)).toBe(false);
    expect(outcome([cut])).toMatchObject({ code: "upstream_invalid", samples: 0 });
  });
});

describe("data offsets of fragments that do not say what they count from", () => {
  const [index, whole] = makeFile();
  const flags = Buffer.from("tfhd\0\u0002\0\0", "latin1");
  const second = whole.lastIndexOf("trun") + 12;

  const first = whole.indexOf("trun") + 12;
  const written = Array.from({ length: 40 }, (_, i) => Buffer.from(fillPattern(20, i)).toString("hex")).toSorted();

  /** Returns the media of a fragment without the flags that its offsets count from its start. */
  function read(secondOffset: number): string[] {
    const bytes = Buffer.from(whole);
    for (let at = bytes.indexOf(flags); at >= 0; at = bytes.indexOf(flags)) bytes[at + 5] = 0;
    bytes.writeInt32BE(secondOffset, second);
    return readMedia(bytes);
  }

  function readMedia(bytes: Buffer): string[] {
    const media: string[] = [];
    const sink = { setFormat: (_format: unknown, track = media.length) => track, write: note };
    function note(_track: number, { data }: Sample): void {
      media.push(Buffer.from(data).toString("hex"));
    }
    const demuxer = createMp4Demuxer({ sink, timelines: new Timelines(), kinds: ["video", "audio"] });
    for (const segment of [index, bytes]) demuxer.read(segment, start);
    return media.toSorted();
  }

  it("count from the end of the data before, or from the start if they cannot", () => {
    expect(read(0)).toEqual(written);
    expect(read(whole.readInt32BE(second))).toEqual(written);
  });

  it("count from the same place in all runs of a track", () => {
    const samples = Array.from({ length: 12 }, (_, i) => fillPattern(1000, i));
    const hex = samples.map((data) => Buffer.from(data).toString("hex")).toSorted();
    /** Two tracks of six samples, each in a run of its own; those of the second count from the end of the first one's data, or from the start. */
    const inRuns = (isOfMoof: boolean, dataStart = 0): Buffer => {
      const trafs = [0, 6].map((from) => {
        const base = isOfMoof || from === 0 ? dataStart : 0;
        const runs = [0, 1, 2, 3, 4, 5].map((i) => {
          const offset = base + 1000 * (base === 0 ? i : from + i);
          return fullBox("trun", 0, 0x301, u32(1, offset, 1000, 1000));
        });
        return box("traf", fullBox("tfhd", 0, 0, u32(from === 0 ? 1 : 2)), fullBox("tfdt", 0, 0, u32(0)), ...runs);
      });
      const moof = box("moof", fullBox("mfhd", 0, 0, u32(0)), ...trafs);
      return dataStart === 0 ? inRuns(isOfMoof, moof.length + 8) : Buffer.concat([moof, box("mdat", ...samples)]);
    };
    expect(readMedia(inRuns(true))).toEqual(hex);
    expect(readMedia(inRuns(false))).toEqual(hex);
  });

  it("are taken for the start of the media data, or the end of those before, if they lead into the boxes of the fragment", () => {
    const bytes = Buffer.from(whole);
    for (const at of [first, second]) bytes.writeInt32BE(0, at);
    expect(readMedia(bytes)).toEqual(written);
    expect(readMedia(Buffer.concat([box("free", Buffer.alloc(5000)), bytes]))).toEqual(written);
  });
});
