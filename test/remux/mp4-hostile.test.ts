import { readFileSync, truncateSync, writeFileSync } from "node:fs";
import { afterAll, describe, expect, it } from "vitest";
import { ServiceError } from "../../src/errors.ts";
import { box, fullBox, u32, u64 } from "../../src/remux/mp4/boxes.ts";
import { createFmp4Demuxer } from "../../src/remux/mp4/read/demuxer.ts";
import { fragmentsOf } from "../../src/remux/mp4/read/file.ts";
import { isCompleteMp4 } from "../../src/remux/mp4/read/complete.ts";
import { openMp4Writer } from "../../src/remux/mp4/write/writer.ts";
import type { SampleSink } from "../../src/remux/samples.ts";
import { createTimelines } from "../../src/remux/timelines.ts";
import { openFolder } from "./mp4-media.ts";
import { audioFormat, fillPattern, videoFormat } from "./mp4-samples.ts";

const folder = openFolder();
afterAll(folder.remove);
const path = folder.path("good.mp4");

/** A small file of two tracks with B-frames, and its index and fragments. */
function makeFile(): Buffer[] {
  const writer = openMp4Writer({ path, expectedS: 1 });
  const tracks = [writer.setFormat(videoFormat), writer.setFormat(audioFormat)];
  for (let i = 0; i < 40; i++) {
    const ticks = Math.floor(i / 2) * 1000;
    const pts = ticks + (i % 4) * 500;
    const sample = { data: fillPattern(20, i), dts: ticks, pts, duration: 0, isSync: i % 8 < 2 };
    writer.write(tracks[i % 2]!, sample);
  }
  writer.finish();
  return [...fragmentsOf(path)].map((piece) => Buffer.from(piece));
}

/** Reads the pieces and counts what comes out; any other error than a ServiceError is thrown. */
function outcome(pieces: Iterable<Uint8Array>): { code: string; bytes: number; samples: number } {
  const seen = { code: "none", bytes: 0, samples: 0 };
  const sink: SampleSink = {
    setFormat: (_format, track = 0) => track,
    write(_track, { data, dts, pts, duration }) {
      if (![dts, pts, duration].every(Number.isSafeInteger)) throw new Error("no whole ticks");
      seen.samples++;
      seen.bytes += data.length;
    },
  };
  const kinds = ["video", "audio"] as const;
  const demuxer = createFmp4Demuxer({ sink, timelines: createTimelines(), kinds });
  try {
    for (const piece of pieces) demuxer.read(piece, { timeline: 0, offsetS: null });
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    seen.code = error.code;
  }
  return seen;
}

/** A fragment of `count` samples whose sizes are not in the run but once for all. */
function fragment(count: number, size: number, data: Uint8Array, runs = 1): Uint8Array {
  const trun = fullBox("trun", 0, 0x1, u32(count, 8));
  const tfhd = fullBox("tfhd", 0, 0x20038, u32(1, 1000, size, 0));
  const traf = box("traf", tfhd, ...Array.from({ length: runs }, () => trun));
  return Buffer.concat([box("moof", traf), box("mdat", data)]);
}

describe("hostile MP4", () => {
  const [index, piece] = makeFile() as [Buffer, Buffer];

  it("is read where it is whole", () => {
    expect(outcome([index, piece])).toEqual({ code: "none", bytes: 800, samples: 40 });
  });

  it.each([
    ["a fragment before its index", [piece]],
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
  ])("is refused: %s", (_name, pieces) => {
    const seen = outcome(pieces);
    expect(seen.code).toBe("upstream_invalid");
    expect(seen.bytes).toBeLessThan(100_000);
  });

  it("ends at a box of no size on the top level, and takes it to the end", () => {
    const open = Buffer.from(piece);
    open.writeUInt32BE(0, piece.indexOf("mdat") - 4);
    expect(outcome([index, open])).toMatchObject({ code: "none", samples: 40 });
  });

  it("does not go deeper than the boxes it knows", () => {
    let nested = box("traf");
    for (let i = 0; i < 2000; i++) nested = box("moof", nested);
    expect(outcome([index, nested]).samples).toBe(0);
  });

  it("says what is encrypted", () => {
    const clear = Buffer.from(index);
    clear.write("encv", clear.indexOf("avc1", clear.indexOf("stsd")));
    expect(outcome([clear]).code).toBe("drm_protected");
  });

  it("gives samples or a typed error whatever bytes are changed", () => {
    let seed = 1;
    const random = (below: number) => (seed = (seed * 48_271) % 2_147_483_647) % below;
    const codes = new Set<string>();
    for (let round = 0; round < 4000; round++) {
      const pieces = [Buffer.from(index), Buffer.from(piece)];
      for (let change = 0; change <= random(3); change++) {
        const target = pieces[random(2)]!;
        const at = random(target.length - 4);
        if (random(2) === 0) target[at] = random(256);
        else target.writeUInt32BE([0, 1, 0xffffffff, 0x7fffffff, 8][random(5)]!, at & ~3);
      }
      const seen = outcome(pieces);
      codes.add(seen.code);
      expect(seen.bytes).toBeLessThanOrEqual(index.length + piece.length);
    }
    expect([...codes].toSorted()).toEqual(["none", "upstream_invalid"]);
  });
});

describe("an MP4 file that was cut off", () => {
  makeFile();
  const whole = readFileSync(path);
  const cut = folder.path("cut.mp4");

  it("is never taken for a whole one, wherever it was cut", () => {
    expect(isCompleteMp4(path)).toBe(true);
    writeFileSync(cut, whole);
    for (let length = whole.length - 1; length >= 0; length--) {
      truncateSync(cut, length);
      expect(isCompleteMp4(cut), `cut at ${length}`).toBe(false);
    }
  });

  it("is refused when it is split into fragments", () => {
    writeFileSync(cut, whole);
    for (let length = whole.length - 1; length >= 0; length -= 7) {
      truncateSync(cut, length);
      const code = "upstream_invalid";
      expect(() => [...fragmentsOf(cut)], `${length}`).toThrow(expect.objectContaining({ code }));
    }
  });

  it("knows sizes of 64 bits and boxes that go to the end", () => {
    const tail = Buffer.concat([u32(1), Buffer.from("mdat"), u64(20), u32(0)]);
    writeFileSync(cut, Buffer.concat([whole, tail, u32(0), Buffer.from("mdat"), whole]));
    expect(isCompleteMp4(cut)).toBe(true);
    writeFileSync(cut, Buffer.concat([whole, tail.subarray(0, 19)]));
    expect(isCompleteMp4(cut)).toBe(false);
  });

  it("is no MP4 without an index", () => {
    writeFileSync(cut, box("mdat", whole));
    expect(isCompleteMp4(cut)).toBe(false);
    expect(() => [...fragmentsOf(cut)]).toThrow(
      expect.objectContaining({ code: "upstream_invalid" }),
    );
  });
});
