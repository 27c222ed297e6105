import { expect, test } from "vitest";
import { box, firstBox, fullBox, u32, u32Table } from "../../src/remux/mp4/boxes.ts";
import { moveChunks, withWideOffsets } from "../../src/remux/mp4/positions.ts";

test("the offsets of a million chunks get 64 bits", () => {
  const offsets = Uint32Array.from({ length: 1_000_000 }, (_, n) => 4_000 * n);
  const table = fullBox("stco", 0, 0, u32(offsets.length), u32Table(offsets));
  const wide = withWideOffsets(table, firstBox(table));
  expect([wide.toString("latin1", 4, 8), wide.readUInt32BE(12)]).toEqual(["co64", offsets.length]);
  expect(offsets.findIndex((offset, n) => wide.readBigUInt64BE(16 + 8 * n) !== BigInt(offset))).toBe(-1);
});

test("a table of offsets that says it has more than there are gets no others", () => {
  const table = fullBox("stco", 0, 0, u32(0xffffffff, 7));
  expect(withWideOffsets(table, firstBox(table)).toString("hex", 12)).toBe("ffffffff0000000000000007");
});

test.each(["stco", "co64"])(
  "a table %s that says it has more than there are is damaged, and nothing is moved",
  (type) => {
    const offset = type === "co64" ? [0, 700] : [700];
    const tables = [fullBox(type, 0, 0, u32(2, ...offset)), fullBox("stss", 0, 0, u32(1, 999))];
    const track = Buffer.from(box("trak", box("mdia", box("minf", box("stbl", ...tables)))));
    const before = track.toString("hex");
    expect(() => moveChunks(track, 16, 500)).toThrow(`its ${type} box has fewer than 2 offsets`);
    expect(track.toString("hex")).toBe(before);
  },
);
