import { describe, expect, it } from "vitest";
import { type RecordedSegment, Restarts } from "../../src/engines/native/sources/live-dates.ts";
import { LiveNumbering } from "../../src/engines/native/sources/live-numbering.ts";
import type { SegmentList } from "../../src/manifests/segments.ts";

const originMs = Date.parse("2026-01-01T00:00:00Z");
const segmentS = 2;

/** A live list of the segments `from` … up to `until` of a timeline, each named by its time. */
function list(from: number, until: number, laterMs = 0): SegmentList {
  const segments = Array.from({ length: until - from }, (_, sequence) => {
    const at = from + sequence;
    const dates = { dateMs: originMs + laterMs + 1000 * segmentS * at, originMs: originMs + laterMs };
    const media = { url: `https://a.example/${at}`, range: null, init: null, key: null };
    return { ...media, ...dates, durationS: segmentS, sequence, timeline: 0, offsetS: 0 };
  });
  return { segments, hasEnded: false, refreshS: 1, isDated: true };
}

/** A recording; `read` returns the new segments of a list as their name, their number, and what is added to their times. */
function record(journal: RecordedSegment[] = [], restarts = new Restarts()) {
  const numbering = new LiveNumbering(restarts);
  for (const segment of journal.slice()) numbering.add(segment);
  const read = (listed: SegmentList) => {
    const found = numbering.newIn(listed);
    for (const segment of found) numbering.add(segment);
    journal.push(...found);
    return found.map(({ url, sequence, offsetS }) => [Number(url.split("/").at(-1)), sequence, offsetS]);
  };
  return { read, journal };
}

/** Records up to 210 s; then the timeline falls back to 0. */
function recordRestart(recording = record()) {
  recording.read(list(100, 105));
  for (const until of [1, 2]) expect(recording.read(list(0, until))).toEqual([]);
  expect(recording.read(list(0, 3))).toEqual([
    [0, 6, 210],
    [1, 7, 210],
    [2, 8, 210],
  ]);
  return recording;
}

describe("a live timeline that falls back to 0 under the same origin", () => {
  it("goes on after what was recorded, and one number is free", () => {
    const { read } = recordRestart();
    expect(read(list(0, 4))).toEqual([[3, 9, 210]]);
  });

  it("is followed by a later run", () => {
    const { journal } = recordRestart();
    const { read } = record(JSON.parse(JSON.stringify(journal)) as RecordedSegment[]);
    expect(read(list(0, 3))).toEqual([]);
    expect(read(list(1, 5))).toEqual([
      [3, 9, 210],
      [4, 10, 210],
    ]);
  });

  it("may fall back again", () => {
    const { read } = recordRestart();
    read(list(0, 7));
    for (const until of [1, 2]) expect(read(list(0, until))).toEqual([]);
    expect(read(list(0, 3))).toEqual([
      [0, 14, 224],
      [1, 15, 224],
      [2, 16, 224],
    ]);
  });

  it("is followed although the origin is stated a little differently each time", () => {
    const { read } = recordRestart();
    expect(read(list(0, 4, 9))).toEqual([[3, 9, 210]]);
    expect(read(list(0, 5, -9))).toEqual([[4, 10, 210]]);
  });

  it("goes on by the clock once the origin is another one", () => {
    const { read } = recordRestart();
    expect(read(list(0, 1, 600_000))).toEqual([[0, expect.any(Number), 600]]);
  });

  it("goes on in a track for which it may be an old list, once it has in another one", () => {
    const restarts = new Restarts();
    const audio = record([], restarts);
    audio.read(list(0, 4));
    const video = record([], restarts);
    video.read(list(0, 7));
    for (const until of [1, 2, 3]) {
      expect(audio.read(list(0, until))).toEqual([]);
      video.read(list(0, until));
    }
    expect(audio.read(list(0, 4)).map(([, , offsetS]) => offsetS)).toEqual([14, 14, 14, 14]);
  });

  it("goes on at the same times in all tracks", () => {
    const restarts = new Restarts();
    const audio = record([], restarts);
    audio.read(list(100, 104));
    recordRestart(record([], restarts));
    const found = [1, 2, 3].flatMap((until) => audio.read(list(0, until)));
    expect(found.map(([, , offsetS]) => offsetS)).toEqual([210, 210, 210]);
  });
});

it("old lists of a live timeline have nothing new", () => {
  const { read } = record();
  read(list(100, 105));
  for (const until of [103, 103, 103, 103, 104, 105]) expect(read(list(98, until))).toEqual([]);
  expect(read(list(100, 106))).toEqual([[105, 5, 0]]);
});
