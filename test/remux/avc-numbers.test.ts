import { expect, test } from "vitest";
import { makeVideoEntry } from "../../src/remux/mp4/sample-entry.ts";
import { createJoin, joinOf } from "../../src/remux/mp4/joins.ts";
import { type CodedPicture, createFieldMaker } from "./field-maker.ts";

const picture = createFieldMaker();
const startCode = Buffer.from([0, 0, 0, 1]);

/** Returns the NAL units of pictures, without delimiters. */
function unitsOf(...pictures: readonly CodedPicture[]): Buffer[] {
  return pictures.flatMap((each) => {
    const bytes = picture(each);
    const units: Buffer[] = [];
    for (let at = 4, end = 0; at <= bytes.length; at = end + 4) {
      end = bytes.indexOf(startCode, at);
      if (end < 0) end = bytes.length;
      units.push(bytes.subarray(at, end));
    }
    return units.slice(1);
  });
}

/** Returns the sample of an MP4 with them. */
function sampleOf(...pictures: readonly CodedPicture[]): Buffer {
  const parts = unitsOf(...pictures).flatMap((unit) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(unit.length);
    return [length, unit];
  });
  return Buffer.concat(parts);
}

const [sps, pps] = unitsOf({ kind: "idr", frameNum: 0, order: 0 });
const sets = [Buffer.from([1, 77, 0, 30, 0xff, 0xe1, 0, sps!.length]), sps!, Buffer.from([1, 0, pps!.length]), pps!];
const content = Buffer.concat(sets);
const configuration = Buffer.concat([Buffer.from([0, 0, 0, 8 + content.length]), Buffer.from("avcC"), content]);
const entry = makeVideoEntry({ type: "avc1", configuration, width: 32, height: 32, pixelAspect: [1, 1] });

const key: CodedPicture = { kind: "intra", frameNum: 14, order: 100 };
const other: CodedPicture = { kind: "skipped", frameNum: 15, order: 102 };

test.each([
  { slices: [key, key], join: "reset" },
  { slices: [key, { ...key, kind: "skipped" as const }], join: null },
  { slices: [{ ...key, kind: "skipped" as const }, key], join: null },
  { slices: [{ ...key, kind: "idr" as const }], join: "start" },
  {
    slices: [
      { ...key, structure: "top" as const },
      { ...key, kind: "skipped" as const, structure: "bottom" as const },
    ],
    join: "alone",
  },
])("decoding starts with a key frame of H.264 as all its slices let it: $join", ({ slices, join }) => {
  expect(joinOf(sampleOf(...slices), entry)).toBe(join);
});

const later = [1, 2, 3].map((frameNum): CodedPicture => ({ kind: "skipped", frameNum, order: 2 * frameNum }));

test.each<{ what: string; middle: CodedPicture[]; changed: boolean }>([
  { what: "goes on", middle: [{ kind: "skipped", frameNum: 0, order: 104 }], changed: true },
  {
    what: "starts again after a frame",
    middle: [{ kind: "skipped", frameNum: 0, order: 104, isReset: true }],
    changed: false,
  },
  {
    what: "starts again after a second field",
    middle: [
      { kind: "skipped", structure: "top", frameNum: 0, order: 104 },
      { kind: "skipped", structure: "bottom", frameNum: 0, order: 105, isReset: true },
    ],
    changed: false,
  },
  {
    what: "starts again after a first field",
    middle: [
      { kind: "skipped", structure: "top", frameNum: 15, order: 104, isReset: true },
      { kind: "skipped", structure: "bottom", frameNum: 0, order: 1 },
    ],
    changed: false,
  },
])("pictures after a key frame are numbered until their own numbering ends: $what", ({ middle, changed }) => {
  const change = createJoin("reset", entry);
  const samples = [sampleOf(key), sampleOf(other), sampleOf(...middle), ...later.map((each) => sampleOf(each))];
  const isChanged = samples.map((sample) => !sample.equals(Buffer.from(change(sample).data)));
  expect(isChanged).toEqual([true, true, true, changed, changed, changed]);
});
