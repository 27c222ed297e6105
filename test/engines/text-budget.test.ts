import { describe, expect, it } from "vitest";
import { type ByteCount, TextBudget } from "../../src/engines/native/texts/text-budget.ts";
import type { TextPart } from "../../src/engines/native/texts/place-cues.ts";

const MiB = 1 << 20;
const cue = { startS: 1, endS: 2, text: "x", settings: "" };

/** Reads a track of so many bytes, which come in pieces of at most 1 MiB, and so many cues. */
const track = (bytes: number, cues = 1) => {
  return async (count: ByteCount): Promise<TextPart[]> => {
    for (let at = 0; at < bytes; at += MiB) {
      count.add(Math.min(MiB, bytes - at));
      await Promise.resolve();
    }
    return [{ cues: Array.from({ length: cues }, () => cue), map: null, place: null }];
  };
};
const refused = (message: string) =>
  expect.objectContaining({ code: "upstream_invalid", message: expect.stringContaining(message) });

describe("the subtitles of a download", () => {
  it("may have 16 MiB each and 24 MiB together", async () => {
    const budget = new TextBudget();
    await expect(budget.take(track(16 * MiB + 1))).rejects.toEqual(refused("more than 16777216 bytes"));
    await budget.take(track(16 * MiB));
    await expect(budget.take(track(8 * MiB + 1))).rejects.toEqual(refused("with the others of the video"));
    await budget.take(track(8 * MiB));
    await expect(budget.take(track(1))).rejects.toEqual(refused("25165824 bytes"));
  });

  it("may have 200,000 cues together", async () => {
    const budget = new TextBudget();
    await budget.take(track(1, 199_999));
    await expect(budget.take(track(1, 2))).rejects.toEqual(refused("more than 200000 cues"));
    await budget.take(track(1, 1));
  });

  it("are read one at a time if they are long, and do not take the place of others while they are read", async () => {
    const budget = new TextBudget();
    let reading = 0;
    const long = async (count: ByteCount) => {
      count.add(2 * MiB);
      reading += 1;
      expect(reading).toBe(1);
      const parts = await track(10 * MiB)(count);
      reading -= 1;
      return parts;
    };
    const all = [long, long, long, track(MiB), track(MiB)].map((read) => budget.take(read));
    const outcomes = (await Promise.allSettled(all)).map(({ status }) => status);
    expect(outcomes).toEqual(["fulfilled", "rejected", "rejected", "fulfilled", "fulfilled"]);
  });

  it("that cannot be read, or have no text, take nothing of it", async () => {
    const budget = new TextBudget();
    const broken = async (count: ByteCount) => {
      await track(16 * MiB)(count);
      throw new Error("broken");
    };
    await expect(budget.take(broken)).rejects.toThrow("broken");
    await budget.take(track(16 * MiB, 0));
    await budget.take(track(16 * MiB));
  });
});
