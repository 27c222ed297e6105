import { describe, expect, it } from "vitest";
import { createFlacNumbering } from "../../src/remux/audio-files/flac.ts";
import { frameChecksum, headerChecksum, readFrameHeader } from "../../src/remux/codecs/flac.ts";
import { flacFrame } from "../engines/flac-maker.ts";

/** Numbers the frames anew. */
function renumber(frames: readonly Buffer[]): Buffer[] {
  const number = createFlacNumbering();
  return frames.map((frame) => Buffer.from(number(frame, readFrameHeader(frame, 192)!)));
}
const from = (first: number, count: number) => Array.from({ length: count }, (_, i) => flacFrame(first + i));
/** The frame with this number, and the content of another one. */
const numberOf = (frame: Buffer) => readFrameHeader(frame, 192)?.number;
const contentOf = (frame: Buffer) => frame.subarray(readFrameHeader(frame, 192)?.length, -2);

describe("the frames of FLAC that is cut", () => {
  it.each([0, 100, 127, 2_000, 65_000])("are numbered from 0 on, whatever their numbers were: %i", (first) => {
    const frames = from(first, 2_200);
    const made = renumber(frames);
    expect(made.map(numberOf)).toEqual(frames.map((_, i) => i));
    expect(made.every((frame) => frameChecksum(frame) === 0)).toBe(true);
    expect(made.every((frame) => headerChecksum(frame.subarray(0, readFrameHeader(frame, 192)!.length)) === 0)).toBe(
      true,
    );
    expect(Buffer.concat(made.map(contentOf)).equals(Buffer.concat(frames.map(contentOf)))).toBe(true);
  });

  it("are as a program numbers them that makes such frames", () => {
    expect(renumber([flacFrame(0), flacFrame(1)])).toEqual([flacFrame(0), flacFrame(1)]);
    expect(renumber(from(0, 3_000))).toEqual(from(0, 3_000));
  });

  it("of several sizes are numbered by their samples, up to 36 bits", () => {
    const sizes = [192, 7, 65_536, 1];
    const made = renumber(sizes.map((samples, i) => flacFrame(900 + i, { samples, isVariable: true })));
    expect(made.map(numberOf)).toEqual([0, 192, 199, 65_735]);
    const number = createFlacNumbering();
    const frame = flacFrame(0, { isVariable: true });
    const header = readFrameHeader(frame, 192)!;
    number(frame, { ...header, samples: 2 ** 36 - 1 });
    const last = Buffer.from(number(frame, header));
    expect([numberOf(last), frameChecksum(last)]).toEqual([2 ** 36 - 1, 0]);
  });

  it("stay damaged if they are", () => {
    for (const at of [8, 60]) {
      const [frame] = from(500, 1);
      frame![at]! ^= 1;
      expect(frameChecksum(renumber([frame!])[0]!)).not.toBe(0);
    }
  });
});
