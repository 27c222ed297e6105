import { describe, expect, it } from "vitest";
import { type MediaPosition, placeCues, type TextPart } from "../../src/engines/native/texts/place-cues.ts";

const cue = (startS: number, endS: number, text = "x") => ({ startS, endS, text, settings: "" });
const place = (fromS: number, lastsS = 10, timeline = 0) => ({ timeline, offsetS: null, fromS, lastsS });
const wrapS = 2 ** 33 / 90_000;
const starts = (
  parts: readonly TextPart[],
  originS: number,
  offsetOf: (timeline: number) => number | undefined = () => 0,
) => placeCues(parts, { originS, offsetOf }).map(({ startS }) => Math.round(startS * 1000) / 1000);

describe("cues of HLS segments are put where their media are", () => {
  it("by the timestamp map, whatever the playlist says", () => {
    const map = { localS: 5, mpegTs: 900_000 };
    expect(starts([{ cues: [cue(6, 7)], map, place: place(0) }], 10)).toEqual([1]);
  });

  it("across the wrap of 33 bits, in the media and in the subtitles", () => {
    const originS = wrapS - 4;
    const early = { localS: 0, mpegTs: Math.round((wrapS - 4) * 90_000) };
    const late = { localS: 0, mpegTs: 6 * 90_000 };
    const parts = [
      { cues: [cue(1, 2, "a")], map: early, place: place(0) },
      { cues: [cue(1, 2, "b")], map: late, place: place(10) },
    ];
    expect(starts(parts, originS)).toEqual([1, 11]);
  });

  it("whose map is far from them, as one for all segments of a day, or the time of day", () => {
    const map = { localS: 0, mpegTs: 900_000 };
    const parts = [0, 60_000, 90_000].map((fromS) => ({ cues: [cue(fromS + 1, fromS + 2)], map, place: place(fromS) }));
    expect(starts(parts, 10)).toEqual([1, 60_001, 90_001]);
    const day = { localS: 72_000, mpegTs: 900_000 };
    expect(starts([{ cues: [cue(72_001, 72_002)], map: day, place: place(0) }], 10)).toEqual([1]);
    const start = { localS: 72_000, mpegTs: 72_000 * 90_000 };
    expect(starts([{ cues: [cue(1, 2)], map: start, place: place(0) }], 0)).toEqual([1]);
  });

  it("from the start if the map puts none of them into its segment, as one that is for other media", () => {
    const map = { localS: 0, mpegTs: 900_000 };
    const parts = [0, 4].map((fromS) => ({ cues: [cue(fromS + 1, fromS + 2)], map, place: place(fromS, 4) }));
    expect(starts(parts, 0)).toEqual([1, 5]);
    const near = parts.map((part) => ({ ...part, cues: [cue(1, 2)], map: { localS: 0, mpegTs: 6 * 90_000 } }));
    expect(starts(near.slice(1), 0)).toEqual([7]);
  });

  it("by the map if the times of the cues count from their segments, also if the list of these begins late", () => {
    const parts = [0, 4, 8].map((fromS) => ({
      cues: [cue(1, 2)],
      map: { localS: 0, mpegTs: (60 + fromS) * 90_000 },
      place: place(fromS, 4),
    }));
    expect(starts(parts, 0)).toEqual([61, 65, 69]);
  });

  it("after a discontinuity, where its timeline begins", () => {
    const map = { localS: 0, mpegTs: 90_000 };
    const parts = [
      { cues: [cue(0, 1, "a")], map, place: place(0) },
      { cues: [cue(0, 1, "b")], map, place: place(10, 10, 1) },
    ];
    expect(starts(parts, 1, (timeline) => timeline * 10)).toEqual([0, 10]);
  });

  describe("if their list lacks discontinuities of the media, or has others", () => {
    // 20 s with times from 10 s, after that 20 s with times from 10 s again.
    const offsetOf = (timeline: number) => [0, 20][timeline];
    const segment = (fromS: number, timeline: number, mpegTsS: number) => {
      return { cues: [cue(1, 2)], map: { localS: 0, mpegTs: mpegTsS * 90_000 }, place: place(fromS, 10, timeline) };
    };

    it("by the timeline whose times put all of them into their segment", () => {
      const parts = [segment(0, 0, 10), segment(10, 0, 20), segment(20, 0, 10), segment(30, 0, 20)];
      expect(starts(parts, 10, offsetOf)).toEqual([1, 11, 21, 31]);
      expect(starts([segment(0, 0, 10), segment(20, 1, 30)], 10, offsetOf)).toEqual([1, 21]);
    });

    it("as they are stated if that puts one of them into its segment, or no timeline does", () => {
      const late = { ...segment(20, 1, 10), cues: [cue(-9, -8, "a"), cue(1, 2, "b")] };
      expect(starts([late], 10, offsetOf)).toEqual([11, 21]);
      expect(starts([segment(0, 0, 10), segment(60, 1, 10)], 10, offsetOf)).toEqual([1, 21]);
    });
  });

  it("without a map by media time, if that puts them into their segments, else from the start", () => {
    const media = [{ cues: [cue(101, 102)], map: null, place: place(0) }];
    expect(starts(media, 100)).toEqual([1]);
    const fromStart = [{ cues: [cue(1, 2)], map: null, place: place(0) }];
    expect(starts(fromStart, 100)).toEqual([1]);
    const later = [{ cues: [cue(121, 122)], map: null, place: place(20) }];
    expect(starts(later, 100)).toEqual([21]);
  });

  it("by media time if they are MP4", () => {
    expect(starts([{ cues: [cue(101, 102)], map: null, place: place(0), isMp4: true }], 100)).toEqual([1]);
  });

  it("from the start if they are MP4 whose media times put none of them into their segments", () => {
    const parts = [0, 10].map((fromS) => {
      return { cues: [cue(fromS + 1, fromS + 2)], map: null, place: place(fromS), isMp4: true };
    });
    expect(starts(parts, 100)).toEqual([1, 11]);
  });
});

describe("other cues", () => {
  it("of a DASH Period are moved as its media are", () => {
    const period = { timeline: 1, offsetS: 60, fromS: 60, lastsS: 10 };
    expect(starts([{ cues: [cue(1, 2)], map: null, place: period }], 0.5)).toEqual([60.5]);
  });

  it("of a whole file count from the start", () => {
    expect(starts([{ cues: [cue(1, 2)], map: null, place: null }], 100)).toEqual([1]);
  });
});

describe("times within cues", () => {
  const sung = "One<01:11.500> two<01:00:00.000><c> three</c> <1:11.500> <i>";
  const text = (parts: readonly TextPart[], media: MediaPosition) => placeCues(parts, media).map((each) => each.text);

  it("are moved with their cues", () => {
    const segment = {
      cues: [cue(71, 72, sung)],
      map: null,
      place: { timeline: 0, offsetS: 10, fromS: 60, lastsS: 10 },
    };
    const moved = "One<00:01:21.500> two<01:00:10.000><c> three</c> <1:11.500> <i>";
    expect(text([segment], { originS: 0, offsetOf: () => 0 })).toEqual([moved]);
  });

  it("may be rounded otherwise in each segment that repeats the cue", () => {
    const repeated = (map: { localS: number; mpegTs: number }, fromS: number, times = sung) => ({
      cues: [cue(71, 72, times)],
      map,
      place: place(fromS),
    });
    const first = repeated({ localS: 60, mpegTs: 60 * 90_000 + 40 }, 62);
    const media = { originS: 0, offsetOf: () => 0 };
    const moved = sung.replace("01:11.500", "00:01:11.500");
    expect(text([first, repeated({ localS: 70, mpegTs: 70 * 90_000 + 50 }, 72)], media)).toEqual([moved]);
    const other = sung.replace("11.500", "11.600");
    const second = repeated({ localS: 70, mpegTs: 70 * 90_000 + 40 }, 72, other);
    expect(text([first, second], media).toSorted()).toEqual([moved, moved.replace("11.500", "11.600")]);
  });

  it("are cut with them: in each part they are as much later as it is", () => {
    const kept = [
      { startS: 71.5, endS: 72 },
      { startS: 10, endS: 20 },
      { startS: 71, endS: 73 },
    ];
    const whole = { cues: [cue(71, 72, sung), cue(10, 11, "<v Ann>Four")], map: null, place: null };
    expect(text([whole], { originS: 0, offsetOf: () => 0, cut: { kept, zeroS: 0 } })).toEqual([
      "One<00:00:00.000> two<00:58:48.500><c> three</c> <1:11.500> <i>",
      "<v Ann>Four",
      "One<00:00:11.000> two<00:58:59.500><c> three</c> <1:11.500> <i>",
    ]);
  });
});
