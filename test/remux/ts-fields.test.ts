import { describe, expect, it } from "vitest";
import type { Sample } from "../../src/remux/samples.ts";
import { eightFields, field, frameTicks, type Packing, type SentPicture, transport } from "./field-stream.ts";
import { videoPid } from "./ts-packet-maker.ts";
import { demux } from "./ts-recorder.ts";

const videoOf = (stream: Uint8Array): Sample[] => demux([stream]).track("video").samples;

/** Returns how many coded slices a sample has. */
function countSlices({ data }: Sample): number {
  const bytes = Buffer.from(data);
  let slices = 0;
  for (let at = 0; at < bytes.length; at += 4 + bytes.readUInt32BE(at)) {
    const unitType = (bytes[at + 4] ?? 0) & 0x1f;
    if (unitType === 1 || unitType === 5) slices++;
  }
  return slices;
}

const fieldsOf = (stream: Uint8Array): number[] => videoOf(stream).map(countSlices);
const distances = (samples: readonly Sample[]): number[] =>
  samples.slice(1).map(({ dts }, i) => dts - (samples[i]?.dts ?? 0));

const seconds = (packing: Packing): SentPicture[] =>
  eightFields.map((picture, i) => (i % 2 === 1 ? { ...picture, packing } : picture));

describe("an MPEG-TS demuxer of field-coded H.264", () => {
  for (const [what, pictures] of Object.entries({
    "each with a time": eightFields,
    "the second ones without a time": seconds("untimed"),
    "both in one PES packet": seconds("joined"),
  })) {
    it(`makes one sample of the two fields of a frame: ${what}`, () => {
      const samples = videoOf(transport(pictures));
      expect(samples.map(countSlices)).toEqual([2, 2, 2, 2]);
      expect(distances(samples)).toEqual([frameTicks, frameTicks, frameTicks]);
      expect(samples.at(-1)?.duration).toBe(frameTicks);
    });
  }

  it("starts to decode at an I field whose second field is a P field", () => {
    const pictures = eightFields.map((picture, i) =>
      i % 2 === 1 ? { ...picture, kind: "skipped" as const } : picture,
    );
    const samples = videoOf(transport(pictures));
    expect(samples.map(countSlices)).toEqual([2, 2, 2, 2]);
    expect(samples.map(({ isSync }) => isSync)).toEqual([true, false, false, false]);
  });

  it("pairs two fields of an IDR picture, but not the fields of two of them", () => {
    const idr = (at: number, idrPictureId: number) => field(at, { kind: "idr", frameNum: 0, idrPictureId });
    expect(fieldsOf(transport([idr(0, 0), idr(1, 0), idr(2, 1), idr(3, 1)]))).toEqual([2, 2]);
    expect(fieldsOf(transport([idr(0, 0), idr(1, 1), field(2)]))).toEqual([1, 1, 1]);
  });

  it("takes the bottom field first if it comes first", () => {
    const flipped = eightFields.map((picture, i) => ({
      ...picture,
      structure: i % 2 ? ("top" as const) : ("bottom" as const),
    }));
    expect(fieldsOf(transport(flipped))).toEqual([2, 2, 2, 2]);
  });

  it("pairs fields that no others refer to", () => {
    const free = { isReference: false, frameNum: 1 };
    expect(
      fieldsOf(transport([field(0), field(1), field(2, free), field(3, free), field(4, free), field(5, free)])),
    ).toEqual([2, 2, 2]);
  });

  for (const [what, pictures, expected] of [
    ["the second one is missing", [0, 1, 2, 4, 5].map((at) => field(at)), [2, 1, 2]],
    ["the first one is missing", [0, 1, 3, 4, 5].map((at) => field(at)), [2, 1, 2]],
    ["neighbours are of two frames", [0, 1, 2, 5, 6, 7].map((at) => field(at)), [2, 1, 1, 2]],
    ["both are top fields", [field(0), field(1), field(2), field(3, { structure: "top" })], [2, 1, 1]],
    ["others refer to the first one only", [field(0), field(1), field(2), field(3, { isReference: false })], [2, 1, 1]],
    ["a third one follows", [field(0), field(1), field(2, { frameNum: 0 }), field(4)], [2, 1, 1]],
    [
      "a frame follows",
      [field(0), field(1), field(2), field(3, { structure: "frame" }), field(4), field(5)],
      [2, 1, 1, 2],
    ],
  ] as const) {
    it(`keeps a field as a sample of its own if it has no second one: ${what}`, () => {
      const samples = videoOf(transport(pictures));
      expect(samples.map(countSlices)).toEqual(expected);
      expect(samples.map(({ dts }) => dts).every((dts, i, all) => i === 0 || dts > all[i - 1]!)).toBe(true);
    });
  }

  it("does not pair fields across packets that are missing", () => {
    const free = { isReference: false, frameNum: 1 };
    const pictures = [0, 1, 2, 3, 4, 5, 6, 7].map((at) =>
      field(at, at > 1 && at < 6 ? free : { frameNum: at > 5 ? 1 : 0 }),
    );
    const whole = transport(pictures);
    // Each field begins with a packet that starts a payload unit: the fields 3 and 4 are cut out.
    const starts = unitStarts(whole);
    const damaged = Buffer.concat([whole.subarray(0, starts[3]), whole.subarray(starts[5])]);
    const dropped: string[] = [];
    const samples = demux([damaged], ["video"], (kind) => dropped.push(kind)).track("video").samples;
    expect(samples.map(countSlices)).toEqual([2, 1, 1, 2]);
    expect(dropped).not.toEqual([]);
  });

  it("leaves frames alone that are coded of fields together, or of no fields", () => {
    const frames = [0, 1, 2].map((i) => field(2 * i, { structure: "frame", frameNum: i }));
    for (const coding of [{ isMbaff: true }, {}, { isFrameOnly: true }]) {
      const samples = videoOf(transport(frames, coding));
      expect(samples.map(countSlices)).toEqual([1, 1, 1]);
      expect(distances(samples)).toEqual([frameTicks, frameTicks]);
    }
  });

  it("pairs fields whose bytes come in pieces of any size", () => {
    const whole = transport(eightFields);
    const pieces = Array.from({ length: Math.ceil(whole.length / 188) }, (_, i) =>
      whole.subarray(i * 188, (i + 1) * 188),
    );
    expect(demux(pieces).track("video").samples.map(countSlices)).toEqual([2, 2, 2, 2]);
  });
});

/** Returns where the packets are that start a PES packet of the video. */
function unitStarts(stream: Buffer): number[] {
  const offsets = Array.from({ length: stream.length / 188 }, (_, i) => i * 188);
  return offsets.filter((at) => stream.readUInt16BE(at + 1) === (0x4000 | videoPid));
}

describe("frames of H.264 that state only when they are shown", () => {
  const frame = (at: number, packing: Packing = "timed"): SentPicture => {
    return field(at, { structure: "frame", frameNum: 0, packing });
  };

  it.each([
    [0, 6, 2, 4, 12, 8, 10, 18],
    [0, 16, 8, 4, 2, 6, 12, 10, 14, 32],
    [0, 2, 4, 6, 20, 22],
  ])("keep these times, and are decoded at rising ones, soon after them at the latest: %j", (...shown) => {
    const samples = videoOf(
      transport(
        shown.map((at) => frame(at)),
        { isFrameOnly: true },
      ),
    );
    const [first] = samples;
    expect(samples.map(({ pts }) => (pts - first!.pts) / 1800)).toEqual(shown);
    expect(Math.min(...distances(samples))).toBeGreaterThan(0);
    expect(Math.min(...samples.map(({ pts, dts }) => pts - dts))).toBeGreaterThan(-32 * 1800);
  });

  it.each([-40, -7])("keep decode times that fall where parts overlap: by %i", (by) => {
    const shown = Array.from({ length: 30 }, (_, i) => 2 * i);
    const samples = videoOf(
      transport(
        [...shown, ...shown.map((at) => 60 + at + by)].map((at) => frame(at)),
        { isFrameOnly: true },
      ),
    );
    expect(Math.min(...distances(samples))).toBeLessThan(0);
  });

  it("share the time until the next one with those after them that state none", () => {
    const pictures = Array.from({ length: 12 }, (_, i) => frame(i, i % 3 === 0 ? "timed" : "joined"));
    const samples = videoOf(transport(pictures, { isFrameOnly: true }));
    expect(distances(samples.slice(3))).toEqual(Array.from({ length: 8 }, () => frameTicks / 2));
  });

  const guessed = (...pictures: SentPicture[]) =>
    videoOf(transport(pictures, { isFrameOnly: true })).map(({ isGuessed = false }) => isGuessed);

  it("are shown where their order says if they state no time, also after an IDR picture", () => {
    const idr = (at: number, packing: Packing): SentPicture => ({ ...frame(at, packing), kind: "idr", order: 0 });
    const after = ([8, 4, 6, 10] as const).map((order) => ({ ...frame(14 + order, "untimed"), order }));
    const pictures = [frame(0), frame(6), frame(2, "untimed"), frame(4, "joined"), frame(12, "untimed"), frame(8)];
    pictures.push(frame(10, "untimed"), idr(14, "untimed"), { ...frame(16, "untimed"), order: 2 }, ...after);
    const samples = videoOf(transport(pictures, { isFrameOnly: true }));
    expect(samples.map(({ pts }) => (pts - samples[0]!.pts) / 1800)).toEqual(pictures.map(({ at }) => at));
    expect(guessed(...pictures)).not.toContain(true);
  });

  it.each([
    ["fields", 2],
    ["frames", 1],
  ])("are shown in equal steps if only IDR pictures state a time and their numbers count %s", (_, step) => {
    const pictures = Array.from({ length: 12 }, (__, i): SentPicture => {
      const picture = { ...frame(2 * i, i % 4 === 0 ? "timed" : "joined"), order: (i % 4) * step };
      return i % 4 === 0 ? { ...picture, kind: "idr" } : picture;
    });
    const samples = videoOf(transport(pictures, { isFrameOnly: true, isTimed: true }));
    expect(samples.map(({ pts }) => (pts - samples[0]!.pts) / 1800)).toEqual(pictures.map(({ at }) => at));
  });

  it("tell that times are guessed once their numbers turn out to count frames", () => {
    const pictures = [0, 4, 2, 1, 3].map((order) => ({ ...frame(2 * order, order ? "joined" : "timed"), order }));
    const samples = videoOf(transport(pictures, { isFrameOnly: true, isTimed: true }));
    expect(samples.map(({ isGuessed = false }) => isGuessed)).toEqual([false, false, false, true, true]);
  });

  it("tell which times are guessed if others are not in the order of decoding, and its numbers are not those of times, or start unknown", () => {
    const irregular = [frame(0), { ...frame(20), order: 6 }, frame(2), frame(4, "untimed"), frame(24)];
    expect(guessed(...irregular)).toEqual([false, false, false, true, false]);
    const later = [frame(0), frame(6), frame(2), frame(4, "untimed"), frame(12)].map((picture) => {
      return { ...picture, kind: "intra" as const, at: picture.at! + 5_000 };
    });
    expect(guessed(frame(0), ...later).filter((isGuessed) => isGuessed)).toEqual([true]);
    expect(guessed(frame(0), frame(2), frame(4, "joined"), frame(6, "untimed"), frame(8))).not.toContain(true);
  });
});
