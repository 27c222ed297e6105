import { expect, test } from "vitest";
import { ReadPlaylists, withoutDirectives } from "../../src/manifests/hls/delta.ts";
import { readHlsSegments } from "../../src/manifests/hls/segments.ts";

const url = new URL("https://a.test/live.m3u8");
const head = (sequence: number) => ["#EXTM3U", "#EXT-X-TARGETDURATION:2", `#EXT-X-MEDIA-SEQUENCE:${sequence}`];
const segment = (number: number) => ["#EXTINF:2,", `${number}.m4s`];
const key = (name: string) => `#EXT-X-KEY:METHOD=AES-128,URI="${name}",IV=0x${"0".repeat(32)}`;
const map = (name: string) => `#EXT-X-MAP:URI="${name}"`;
const skip = (count: number) => `#EXT-X-SKIP:SKIPPED-SEGMENTS=${count}`;
const text = (...lines: string[]) => `${lines.join("\n")}\n`;

/** Reads one playlist after the other; returns the last one. */
function read(...texts: string[]) {
  const playlists = new ReadPlaylists();
  const [last = ""] = texts.map((each) => playlists.complete(url, each)).slice(-1);
  return readHlsSegments(last, url);
}

const before = text(
  ...head(10),
  map("a.mp4"),
  key("a.key"),
  ...segment(10),
  ...segment(11),
  "#EXT-X-DISCONTINUITY",
  map("b.mp4"),
  ...segment(12),
  key("b.key"),
  ...segment(13),
  '#EXT-X-PART:URI="14.0.m4s",DURATION=1',
);

test("a delta update has the segments that it skips, with the keys and init sections of those before", () => {
  const first = text(...head(11), skip(3), ...segment(14));
  const { segments } = read(before, first, text(...head(11), skip(3), ...segment(14), ...segment(15)));
  const name = (href: string | undefined) => href?.slice("https://a.test/".length);
  expect(
    segments.map(({ init, key: own, sequence, timeline, ...each }) => {
      return [sequence, name(each.url), name(init?.url), name(init?.key?.url), name(own?.url), timeline];
    }),
  ).toEqual([
    [11, "11.m4s", "a.mp4", undefined, "a.key", 0],
    [12, "12.m4s", "b.mp4", "a.key", "a.key", 1],
    [13, "13.m4s", "b.mp4", "a.key", "b.key", 1],
    [14, "14.m4s", "b.mp4", "a.key", "b.key", 1],
    [15, "15.m4s", "b.mp4", "a.key", "b.key", 1],
  ]);
});

test("a delta update has the dates that follow from a segment which is no longer listed", () => {
  const dated = text(
    ...head(10),
    "#EXT-X-PROGRAM-DATE-TIME:2026-01-02T03:04:05.678Z",
    ...[10, 11, 12].flatMap(segment),
  );
  const dates = (...texts: string[]) => read(dated, ...texts).segments.map(({ dateMs }) => dateMs);
  const startMs = Date.parse("2026-01-02T03:04:05.678Z");
  const delta = text(...head(11), skip(2), ...segment(13));
  expect(dates(delta)).toEqual([2, 4, 6].map((s) => startMs + 1000 * s));
  expect(dates(delta, text(...head(12), skip(2), ...segment(14)))).toEqual([4, 6, 8].map((s) => startMs + 1000 * s));
  const broken = text(...head(10), "#EXT-X-PROGRAM-DATE-TIME:2026-01-02T03:04:05Z", ...segment(10));
  const apart = text(broken.trimEnd(), "#EXT-X-DISCONTINUITY", ...segment(11), ...segment(12));
  expect(dates(apart, text(...head(11), skip(2), ...segment(13)))).toEqual([undefined, undefined, undefined]);
  const endless = text(broken.trimEnd().replace("INF:2,", "INF:9e300,"), ...segment(11), ...segment(12));
  expect(dates(endless, text(...head(11), skip(2), ...segment(13)))).toEqual([undefined, undefined, undefined]);
});

test.each([
  ["?_HLS_msn=2&token=exp=9~acl=/*~x%20y&_HLS_skip=YES", "?token=exp=9~acl=/*~x%20y"],
  ["?a+b&_HLS_part=1", "?a+b"],
  ["?_HLS_skip=v2", ""],
  ["?x=_HLS_skip", "?x=_HLS_skip"],
])("a playlist is asked for without directives, and its other parameters stay as they are: %s", (query, plain) => {
  expect(withoutDirectives(new URL(query, url)).href).toBe(url.href + plain);
});

test("a delta update has the byte ranges that follow from one which is no longer listed", () => {
  const part = (length: string) => ["#EXTINF:2,", `#EXT-X-BYTERANGE:${length}`, "all.m4s"];
  const ranged = text(...head(10), ...part("100@1000"), ...part("200"), ...part(" 300 "), ...segment(13));
  const { segments } = read(ranged, text(...head(11), skip(3), ...part("50@7"), ...part("60")));
  expect(segments.map(({ range }) => range && [range.offset, range.length])).toEqual([
    [1100, 200],
    [1300, 300],
    null,
    [7, 50],
    [57, 60],
  ]);
});

test("a delta update that skips segments that were not listed before cannot be completed", () => {
  for (const [sequence, count] of [
    [9, 3],
    [12, 3],
    [20, 1],
  ] as const) {
    const delta = text(...head(sequence), skip(count), ...segment(15));
    expect(() => read(before, delta)).toThrow(/it must be complete, but is a delta update/);
    expect(() => read(delta)).toThrow(/it must be complete, but is a delta update/);
  }
});

test("a delta update has the segments that it skips, though lines that are none stand between them", () => {
  const stray = ["<!-- cached by a proxy -->", "stray text"];
  const listed = text(...head(10), ...stray, ...[10, 11, 12].flatMap((number) => [...segment(number), ...stray]));
  const { segments } = read(listed, text(...head(11), skip(2), ...segment(13)));
  expect(segments.map(({ sequence, url: at }) => [sequence, at.slice("https://a.test/".length)])).toEqual(
    [11, 12, 13].map((number) => [number, `${number}.m4s`]),
  );
});
