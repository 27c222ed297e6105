import { expect, test } from "vitest";
import { setsOf } from "../../src/remux/mp4/own-sets.ts";

const unit = (type: number, ...content: number[]) => Buffer.from([0x60 | type, ...content]);
const lengthed = (units: readonly Buffer[], lengthBytes: number) =>
  Buffer.concat(
    units.flatMap((each) => {
      const length = Buffer.alloc(lengthBytes);
      length.writeUIntBE(each.length, 0, lengthBytes);
      return [length, each];
    }),
  );
const sampleOf = (...units: Buffer[]) => lengthed(units, 4);

const [sps, pps, otherPps] = [unit(7, 1, 2, 3), unit(8, 4), unit(8, 5)];
const [delimiter, key, inner] = [unit(9, 0x10), unit(5, 6, 7), unit(1, 8)];

/** Returns what adds the sets of a sample entry of H.264 that has these. */
function addSetsOf() {
  const sets = [[0xe1], lengthed([sps], 2), [1], lengthed([pps], 2)].flatMap((bytes) => [...bytes]);
  const entry = Buffer.concat([Buffer.alloc(90), Buffer.from("avcC"), Buffer.from([1, 0x42, 0, 30, 0xff, ...sets])]);
  return setsOf(entry)!;
}

test("the sets of a sample entry come before the first unit of a sample that is not a delimiter", () => {
  const add = addSetsOf();
  expect(add(sampleOf(key))).toEqual(sampleOf(sps, pps, key));
  expect(add(sampleOf(delimiter, key, inner))).toEqual(sampleOf(delimiter, sps, pps, key, inner));
});

test("samples that have the same sets stay as they are, and those after them get them", () => {
  const add = addSetsOf();
  expect(add(sampleOf(delimiter, sps, pps, key))).toEqual(sampleOf(delimiter, sps, pps, key));
  expect(add(sampleOf(key))).toEqual(sampleOf(sps, pps, key));
});

test("once a sample has sets that the entry has not, the entry's would replace them: none are added", () => {
  const add = addSetsOf();
  expect(add(sampleOf(sps, otherPps, key))).toEqual(sampleOf(sps, otherPps, key));
  expect(add(sampleOf(key))).toEqual(sampleOf(key));
});
