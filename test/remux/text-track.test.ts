import { describe, expect, it } from "vitest";
import type { Cue } from "../../src/remux/additions.ts";
import { writeSubtitles } from "../../src/remux/mp4/write/text-track.ts";

/** Writes a track; returns its samples as texts, with their durations in milliseconds. */
function write(cues: readonly Cue[]) {
  const chunks: Uint8Array[] = [];
  let size = 0;
  const append = (bytes: Uint8Array) => {
    chunks.push(bytes);
    size += bytes.length;
    return size - bytes.length;
  };
  const track = { language: "en", name: "", role: "subtitles", automatic: false, cues } as const;
  const index = writeSubtitles(track, false, { append, durationS: 10 });
  const media = Buffer.concat(chunks);
  let at = index.offset;
  const samples = Array.from(index.sizes, (length, i) => {
    const text = media.toString("utf8", at + 2, at + 2 + media.readUInt16BE(at));
    at += length;
    return [text, index.durations[2 * i + 1]];
  });
  return { samples, size, media };
}
const cue = (startS: number, endS: number, text: string): Cue => ({ startS, endS, text, settings: "" });

describe("a track of subtitles in MP4", () => {
  it("shows cues that overlap together, in any order that they are listed in", () => {
    const expected = [
      ["", 1000],
      ["a", 1000],
      ["a\nb", 1000],
      ["b", 1000],
      ["", 6000],
    ];
    expect(write([cue(1, 3, "a"), cue(2, 4, "b")]).samples).toEqual(expected);
    expect(write([cue(2, 4, "b"), cue(1, 3, "a")]).samples).toEqual(expected);
  });

  it("has the faces and colours of each cue, counted in characters", () => {
    const { media } = write([cue(1, 3, "<i>🎬</i>"), cue(1, 3, "b <c.colorff8000>cd</c>")]);
    const records = media.subarray(media.indexOf("styl") + 4);
    const [count, length] = [records.readUInt16BE(), 12];
    const read = Array.from({ length: count }, (_, i) => {
      const record = records.subarray(2 + i * length, 2 + (i + 1) * length);
      return [record.readUInt16BE(0), record.readUInt16BE(2), record[6], record.toString("hex", 8)];
    });
    expect(read).toEqual([
      [0, 1, 2, "ffffffff"],
      [4, 6, 0, "ff8000ff"],
    ]);
  });

  it("is not much longer than its text, however many cues overlap", () => {
    const cues = Array.from({ length: 9_980 }, (_, i) => cue(i / 1_000, i / 1_000 + 0.02, "x".repeat(1_000)));
    const { size, samples } = write(cues);
    expect(size).toBeGreaterThan(8 << 20);
    expect(size).toBeLessThan(10 << 20);
    expect(samples.reduce((sum, [, ms]) => sum + Number(ms), 0)).toBe(10_000);
  });

  it("has no samples without cues", () => {
    expect(write([])).toMatchObject({ samples: [], size: 0 });
    expect(write([cue(2, 2, "a")])).toMatchObject({ samples: [], size: 0 });
  });
});
