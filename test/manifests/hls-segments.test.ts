import { expect, test } from "vitest";
import { readVariables } from "../../src/manifests/hls/lines.ts";
import { readHlsSegments } from "../../src/manifests/hls/segments.ts";
import { failure } from "./failure.ts";

const url = new URL("https://media.example.com/films/42/main.m3u8?token=t1");
const at = (name: string) => `https://media.example.com/films/42/${name}`;
const target = "#EXT-X-TARGETDURATION:6";
const end = "#EXT-X-ENDLIST";

const text = (...lines: string[]) => ["#EXTM3U", ...lines].join("\n");
const read = (...lines: string[]) => readHlsSegments(text(target, ...lines), url);

test("segments are listed in order with URL, duration and number", () => {
  const list = read("#EXTINF:6.006,", "1.ts", "#EXTINF:3.5,A title, with commas", "/x/2.ts?a=1", end);
  const common = { range: null, init: null, key: null, timeline: 0, offsetS: null };
  expect(list).toEqual({
    segments: [
      { ...common, url: at("1.ts"), durationS: 6.006, sequence: 0 },
      { ...common, url: "https://media.example.com/x/2.ts?a=1", durationS: 3.5, sequence: 1 },
    ],
    hasEnded: true,
    refreshS: 6,
  });
});

test("a line without EXTINF is no segment if others have it: servers add comments and padding", () => {
  const lines = ["<!-- 1 -->", "#EXTINF:2,", "1.ts", "stray", "#EXTINF:none,", "2.ts?a=b.c", end, "<!-- 2 -->", "\0\0"];
  const { segments } = read(...lines);
  expect(segments.map(({ url: of, sequence }) => [of, sequence])).toEqual([
    [at("1.ts"), 0],
    [at("2.ts?a=b.c"), 1],
  ]);
  expect(read("1.ts", "2.ts", end).segments).toHaveLength(2);
});

test("a line without EXTINF is a segment if it has another tag or the extension of those with EXTINF: nothing is left out unseen", () => {
  const range = (n: number) => `#EXT-X-BYTERANGE:100@${n}`;
  const named = read("0.ts", "#EXTINF:2,", "1.ts", "2.ts?a=1", "#EXTINF:2,", "3.ts", "4.ts", end);
  expect(named.segments).toHaveLength(5);
  const ranged = read("#EXTINF:2,", range(0), "film", range(100), "film", "#EXTINF:2,", "end", end);
  expect(ranged.segments.map(({ url: of, range: part }) => [of, part?.offset])).toEqual([
    [at("film"), 0],
    [at("film"), 100],
    [at("end"), undefined],
  ]);
  const gap = read("#EXTINF:2,", "1", "#EXT-X-GAP", "2", "#EXTINF:2,", "3", end);
  expect(gap).toMatchObject({ segments: [{ sequence: 0 }, { sequence: 2 }], gapsS: [0] });
});

test("a line that is no segment does not make the last segment of a live stream doubtful", () => {
  const live = read("#EXTINF:2,", "1.ts", "stray");
  expect([live.segments.length, live.isLastDoubtful]).toEqual([1, undefined]);
});

test("the media sequence number is that of the first segment", () => {
  const { segments } = read("#EXT-X-MEDIA-SEQUENCE:7001", "1.ts", "#EXT-X-MEDIA-SEQUENCE:3", "2.ts");
  expect(segments.map(({ sequence }) => sequence)).toEqual([7001, 7002]);
});

test.each(["x", "-1", "1.5", "99999999999999999999"])("the media sequence number %s is refused", (n) => {
  expect(() => read(`#EXT-X-MEDIA-SEQUENCE:${n}`, "1.ts")).toThrow(
    failure("upstream_invalid", /EXT-X-MEDIA-SEQUENCE must be a whole number/),
  );
});

test("a list has ended with EXT-X-ENDLIST or as VOD, but not as EVENT", () => {
  expect(read("1.ts").hasEnded).toBe(false);
  expect(read("1.ts", "#EXT-X-PLAYLIST-TYPE:EVENT").hasEnded).toBe(false);
  expect(read("1.ts", "#EXT-X-PLAYLIST-TYPE:VOD", "").hasEnded).toBe(true);
  expect(read("1.ts", end).hasEnded).toBe(true);
});

test("only a list that has ended without EXT-X-ENDLIST does not state its end", () => {
  const vod = "#EXT-X-PLAYLIST-TYPE:VOD";
  expect(read("1.ts", vod, "").isEndUnstated).toBe(true);
  expect(read("1.ts", vod, end).isEndUnstated).toBeUndefined();
  expect(read("1.ts", "").isEndUnstated).toBeUndefined();
});

test("a text that may be cut off has not ended, and its last URL is doubtful", () => {
  const vod = "#EXT-X-PLAYLIST-TYPE:VOD";
  expect(read(vod, "#EXTINF:1,", "1.ts", "#EXTINF:1,", "2.t")).toMatchObject({ hasEnded: false, isLastDoubtful: true });
  expect(read(vod, "#EXTINF:1,", "1.ts", "#EXTINF:1,", "").hasEnded).toBe(false);
  expect(read(vod, "#EXTINF:1,", "1.ts", "#EXTIN").hasEnded).toBe(false);
  expect(read("1.ts", "2.ts").isLastDoubtful).toBe(true);
  expect(read("1.ts", "2.ts", "").isLastDoubtful).toBeUndefined();
  expect(read("1.ts", "2.ts", "#EXT-X-DISCONTINUITY").isLastDoubtful).toBeUndefined();
  expect(read("1.ts", end, "2.ts").isLastDoubtful).toBeUndefined();
});

test.each([
  ["#EXT-X-TARGETDURATION:4", 4],
  ["#EXT-X-TARGETDURATION:0", 1],
  ["#EXT-X-TARGETDURATION:900", 60],
  ["#EXT-X-VERSION:3", 9],
])("with %s a live list is reloaded every %d s", (line, seconds) => {
  const { refreshS } = readHlsSegments(text(line, "#EXTINF:9,", "1.ts"), url);
  expect(refreshS).toBe(seconds);
});

test("discontinuities begin new timelines from the discontinuity sequence number", () => {
  const { segments } = read(
    "#EXT-X-DISCONTINUITY-SEQUENCE:5",
    "1.ts\n#EXT-X-DISCONTINUITY\n2.ts\n3.ts\n#EXT-X-DISCONTINUITY\n4.ts",
  );
  expect(segments.map(({ timeline }) => timeline)).toEqual([5, 6, 6, 7]);
});

test("dates segments by the durations after a date, up to a discontinuity", () => {
  const segment = ["#EXTINF:2,", "a.ts"];
  const date = "#EXT-X-PROGRAM-DATE-TIME:2030-01-01T01:00:00.500+01:00";
  const { segments } = read(date, ...segment, ...segment, "#EXT-X-DISCONTINUITY", ...segment);
  const startMs = Date.parse("2030-01-01T00:00:00.500Z");
  expect(segments.map(({ dateMs }) => dateMs)).toEqual([startMs, startMs + 2_000, undefined]);
});

test("a byte range begins at its offset, else at the end of the one before", () => {
  const { segments } = read(
    "#EXT-X-BYTERANGE:1000@200\nall.ts\n#EXT-X-BYTERANGE:500\nall.ts",
    "#EXT-X-GAP\n#EXT-X-BYTERANGE:10\nall.ts\n#EXT-X-BYTERANGE:5\nall.ts\nwhole.ts",
  );
  expect(segments.map(({ range }) => range)).toEqual([
    { offset: 200, length: 1000 },
    { offset: 1200, length: 500 },
    { offset: 1710, length: 5 },
    null,
  ]);
});

test("the byte range of the first segment of a stream begins after its init section, else at 0", () => {
  const list = "#EXT-X-BYTERANGE:500\na.mp4\n#EXT-X-BYTERANGE:5\na.mp4";
  const starts = (...lines: string[]) => read(...lines, list).segments.map(({ range }) => range?.offset);
  expect(starts()).toEqual([0, 500]);
  expect(starts("#EXT-X-MEDIA-SEQUENCE:1")).toEqual([0, 500]);
  expect(starts('#EXT-X-MAP:URI="a.mp4",BYTERANGE="70@10"')).toEqual([80, 580]);
  expect(starts('#EXT-X-MAP:URI="b.mp4",BYTERANGE="70@10"')).toEqual([0, 500]);
  expect(starts('#EXT-X-MAP:URI="a.mp4"')).toEqual([0, 500]);
});

test.each([
  [["#EXT-X-MEDIA-SEQUENCE:2", "#EXT-X-BYTERANGE:500", "a.ts"]],
  [["a.ts", "#EXT-X-BYTERANGE:500", "a.ts"]],
  [["#EXT-X-BYTERANGE:500@0", "a.ts", "#EXT-X-BYTERANGE:500", "b.ts"]],
  [["#EXT-X-BYTERANGE:500@0", "a.ts", "a.ts", "#EXT-X-BYTERANGE:500", "a.ts"]],
])("a byte range without offset must follow one of its resource: %j", (lines) => {
  expect(() => read(...lines)).toThrow(failure("upstream_invalid", /must state an offset/));
});

test.each(["0@5", "-5@0", "5-9", "", "5@-1", "1e3@0", "9999999999999999@0"])(
  "the byte range %j is refused",
  (range) => {
    const rule = failure("upstream_invalid", /must be length\[@offset\]/);
    expect(() => read(`#EXT-X-BYTERANGE:${range}`, "a.ts")).toThrow(rule);
    expect(() => read(`#EXT-X-MAP:URI="i",BYTERANGE="${range}"`, "a.ts")).toThrow(rule);
  },
);

test("EXT-X-MAP states the init section of all segments up to the next", () => {
  const { segments } = read(
    '0.ts\n#EXT-X-MAP:URI="a.mp4",BYTERANGE="720@10"\n1.m4s\n2.m4s',
    '#EXT-X-MAP:URI="b.mp4",BYTERANGE="99"\n3.m4s\n#EXT-X-MAP:URI="c.mp4"\n4.m4s',
  );
  expect(segments.map(({ init }) => init)).toEqual([
    null,
    { url: at("a.mp4"), range: { offset: 10, length: 720 }, key: null },
    { url: at("a.mp4"), range: { offset: 10, length: 720 }, key: null },
    { url: at("b.mp4"), range: { offset: 0, length: 99 }, key: null },
    { url: at("c.mp4"), range: null, key: null },
  ]);
  expect(segments[1]?.init).toBe(segments[2]?.init);
  expect(() => read("#EXT-X-MAP:BYTERANGE=1@0", "1")).toThrow(failure("upstream_invalid", /URI/));
});

test("gaps are left out but keep their numbers, partial segments are ignored while the list may go on", () => {
  const { segments, gapsS } = read(
    "#EXTINF:4,\n1.m4s\n#EXT-X-GAP\n#EXTINF:4,\n2.m4s\n#EXTINF:4,\n3.m4s",
    '#EXT-X-PART:DURATION=0.5,URI="4.0.m4s"\n#EXT-X-PRELOAD-HINT:TYPE=PART,URI="4.1.m4s"',
    '#EXT-X-RENDITION-REPORT:URI="file:///x"',
  );
  expect(segments.map((segment) => [segment.url, segment.sequence])).toEqual([
    [at("1.m4s"), 0],
    [at("3.m4s"), 2],
  ]);
  expect(gapsS).toEqual([4]);
  expect(read("1.m4s")).not.toHaveProperty("gapsS");
  expect(read("1.m4s\n#EXT-X-GAP\n2.m4s\n3.m4s")).not.toHaveProperty("endGaps");
  expect(read("1.m4s\n#EXT-X-GAP\n2.m4s\n#EXT-X-GAP\n3.m4s").endGaps).toBe(2);
});

test("partial segments end a list that has ended without their segment", () => {
  const { segments, gapsS } = read(
    '#EXT-X-MAP:URI="i.mp4"\n#EXT-X-KEY:METHOD=AES-128,URI="k"',
    '#EXT-X-PART:DURATION=0.5,URI="0.mp4",BYTERANGE="10@0"\n#EXTINF:0.5,\n#EXT-X-BYTERANGE:10@0\n0.mp4',
    "#EXT-X-DISCONTINUITY\n#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:00Z",
    '#EXT-X-PART:DURATION=0.5,URI="0.mp4",BYTERANGE="20"\n#EXT-X-PART:DURATION=0.25,URI="1.mp4",INDEPENDENT=YES',
    `#EXT-X-PART:DURATION=0.75,URI="2.mp4",GAP=YES\n#EXT-X-PRELOAD-HINT:TYPE=PART,URI="3.mp4"\n${end}`,
  );
  const dateMs = Date.parse("2026-01-01T00:00:00Z");
  // Each is encrypted as the segment would be.
  const key = { url: at("k"), iv: `${"0".repeat(31)}1` };
  const init = { url: at("i.mp4"), range: null, key: null };
  expect(segments.slice(1)).toEqual(
    [
      { url: at("0.mp4"), range: { offset: 10, length: 20 }, durationS: 0.5, sequence: 1, dateMs },
      { url: at("1.mp4"), range: null, durationS: 0.25, sequence: 2, dateMs: dateMs + 500 },
    ].map((part) => ({ ...part, init, key, timeline: 1, offsetS: null })),
  );
  expect(gapsS).toEqual([0.75]);
});

test("partial segments of listed segments are not listed twice", () => {
  const parts = '#EXT-X-PART:DURATION=1,URI="1.0.ts"\n#EXT-X-PART:DURATION=1,URI="1.1.ts"';
  expect(read(`${parts}\n#EXTINF:2,\n1.ts\n${end}`).segments).toMatchObject([{ url: at("1.ts") }]);
  expect(read(`${parts}\n${end}`).segments).toMatchObject([{ url: at("1.0.ts") }, { url: at("1.1.ts") }]);
  expect(() => read(`#EXT-X-PART:DURATION=1\n${end}`)).toThrow(
    failure("upstream_invalid", /EXT-X-PART must have a URI/),
  );
});

test("variables are put in; one that is not defined is an error, not a part of the address", () => {
  const { segments } = read(
    '#EXT-X-DEFINE:NAME="host",VALUE="cdn.example.com"',
    '#EXT-X-DEFINE:QUERYPARAM="token"',
    '#EXT-X-KEY:METHOD=AES-128,IV=0x1,URI="https://{$host}/k"',
    '#EXT-X-MAP:URI="//{$host}/init.mp4"',
    "//{$host}/1.m4s?{$token}",
  );
  expect(segments[0]).toMatchObject({
    url: "https://cdn.example.com/1.m4s?t1",
    key: { url: "https://cdn.example.com/k" },
    init: { url: "https://cdn.example.com/init.mp4" },
  });
  const multivariant = '#EXTM3U\n#EXT-X-DEFINE:NAME="a",VALUE="x"\n#EXT-X-DEFINE:NAME="b",VALUE="{$a}y"\n';
  const importing = '#EXTM3U\n#EXT-X-DEFINE:IMPORT="b"\n#EXT-X-ENDLIST\n{$b}.ts';
  const imported = readHlsSegments(importing, url, readVariables(multivariant, url));
  expect(imported.segments.map((segment) => segment.url.slice(-5))).toEqual(["xy.ts"]);
  expect(() => read('#EXT-X-DEFINE:IMPORT="a"', "{$a}.ts")).toThrow(
    failure("upstream_invalid", /the variable \{\$a\} must be defined/),
  );
});

test.each([
  ["file:///etc/passwd", /scheme file:/],
  ["data:video/mp2t;base64,AA==", /scheme data:/],
  ["concat:a.ts|b.ts", /scheme concat:/],
])("a URL that is not http(s) is blocked everywhere: %s", (address, message) => {
  const rule = failure("address_blocked", message);
  expect(() => read("1.ts", address, "2.ts")).toThrow(rule);
  expect(() => read(`#EXT-X-MAP:URI="${address}"`, "1.ts")).toThrow(rule);
  expect(() => read(`#EXT-X-KEY:METHOD=AES-128,URI="${address}"`, "1.ts")).toThrow(rule);
});

test.each([
  "http://[::1",
  "https://u@example.com/1.ts",
  "https://:p@example.com/1.ts",
  `/${"a".repeat(9_000)}`,
  "日".repeat(1_000),
])("an unusable URL is refused, never left out: %#", (address) => {
  expect(() => read("1.ts", address, "2.ts")).toThrow(failure("upstream_invalid", /URL/));
});

test.each([
  ["a multivariant playlist", ["#EXT-X-STREAM-INF:BANDWIDTH=1", "v.m3u8"], /is a multivariant one/],
  ["a delta update", [target, "#EXT-X-SKIP:SKIPPED-SEGMENTS=3", "4.ts"], /delta update/],
  ["a complete list without segments", [target, end], /must list segments/],
  ["a complete list of gaps alone", [target, "#EXT-X-GAP", "1.ts", end], /must list segments/],
  ["no playlist of anything", ["#EXT-X-VERSION:3"], /must list segments/],
])("%s is refused", (_, lines, message) => {
  expect(() => readHlsSegments(text(...lines), url)).toThrow(failure("upstream_invalid", message));
});

test("a live list may still be empty", () => {
  expect(read()).toEqual({ segments: [], hasEnded: false, refreshS: 6 });
});

test("other text and a too long playlist are refused", () => {
  for (const body of ["", "<!doctype html>", `#EXTM3U\n${"a\n".repeat(2_200_000)}`]) {
    expect(() => readHlsSegments(body, url)).toThrow(failure("upstream_invalid", /manifest/));
  }
});

test("more than 200,000 segments or 64 Mi characters of URLs are refused", () => {
  expect(read("a\n".repeat(200_000)).segments).toHaveLength(200_000);
  expect(() => read("a\n".repeat(200_001))).toThrow(failure("upstream_invalid", /200000 segments/));
  const far = new URL(`https://media.example.com/${"x".repeat(8_000)}/main.m3u8`);
  expect(() => readHlsSegments(`#EXTM3U\n${"a\n".repeat(10_000)}`, far)).toThrow(/67108864/);
});

test("invalid durations count as 0", () => {
  const lines = ["x", "-4", "1e999", "NaN", ""].flatMap((value) => [`#EXTINF:${value},`, "1.ts"]);
  expect(read(...lines).segments.map(({ durationS }) => durationS)).toEqual([0, 0, 0, 0, 0]);
});
