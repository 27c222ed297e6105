import { expect, test } from "vitest";
import { openMpd } from "../../src/manifests/dash/dash.ts";
import { failure } from "./failure.ts";

const url = new URL("https://media.example.com/main.mpd");

function read(template: string, timeline = "", durationS = "PT10S") {
  const mpd = openMpd(
    `<MPD mediaPresentationDuration="${durationS}"><Period><AdaptationSet mimeType="video/mp4">` +
      `<SegmentTemplate ${template}>${timeline && `<SegmentTimeline>${timeline}</SegmentTimeline>`}</SegmentTemplate>` +
      '<Representation id="v$1" bandwidth="64000"/></AdaptationSet></Period></MPD>',
    url,
  );
  const { segments, beyondEnd } = mpd.segments("dash-v$1");
  const names = segments.map((segment) => segment.url.slice(url.origin.length + 1));
  return { names, segments, beyondEnd };
}

test.each([
  ["$Number$.m4s", "9.m4s"],
  ["$Number%05d$.m4s", "00009.m4s"],
  ["$Time$", "1000"],
  ["$Time%08d$", "00001000"],
  ["$RepresentationID$/$Bandwidth$", "v$1/64000"],
  ["$Bandwidth%07d$", "0064000"],
  ["$$$Number$$$", "$9$"],
  ["plain.m4s", "plain.m4s"],
])("the template %s expands to %s", (media, name) => {
  const template = `media="${media}" startNumber="9" timescale="10" duration="100" presentationTimeOffset="1000"`;
  expect(read(template).names).toEqual([name]);
});

test.each(["$Numbr$", "$Number", "a$b", "$SubNumber$", "$Number%5x$", "$Number%099999d$", "$number$"])(
  "the template %s is refused",
  (media) => {
    expect(() => read(`media="${media}" duration="4"`)).toThrow(failure("upstream_invalid", /template may only name/));
  },
);

test("a sequence of one segment (S@k) is that segment", () => {
  const { names } = read('media="$Time$"', '<S t="0" d="4" k="1"/><S d="6" k=" 1 "/>');
  expect(names).toEqual(["0", "4"]);
});

test("the init section's URL is a template too", () => {
  const { segments } = read('media="$Number$" initialization="$RepresentationID$-$Bandwidth$" duration="9"');
  expect(segments[0]?.init?.url).toBe("https://media.example.com/v$1-64000");
});

test.each([
  ["PT10S", 'duration="4"', [4, 4, 2]],
  ["PT8S", 'duration="4"', [4, 4]],
  ["PT76.877S", 'timescale="10000" duration="32032"', 24],
  ["PT10S", 'duration="4" endNumber="2"', [4, 4]],
  ["PT10S", 'duration="4" startNumber="0" endNumber="99"', [4, 4, 2]],
  ["PT1S", 'duration="5000"', [1]],
  ["", 'duration="4" startNumber="5" endNumber="6"', [4, 4]],
])("a Period of %s has, with %s, segments of %j s", (period, attributes, expected) => {
  const durations = read(`media="$Number$" ${attributes}`, "", period).segments.map(({ durationS }) => durationS);
  expect(typeof expected === "number" ? durations.length : durations).toEqual(expected);
});

test("a timeline states time and duration of each segment", () => {
  const { names, segments } = read(
    'media="$Number$-$Time$" timescale="100" startNumber="3"',
    '<S t="50" d="200" r="1"/><S d="100"/><S t="700" d="50"/>',
  );
  expect(names).toEqual(["3-50", "4-250", "5-450", "6-700"]);
  expect(segments.map(({ durationS }) => durationS)).toEqual([2, 2, 1, 0.5]);
});

test("a timeline without times begins at 0", () => {
  expect(read('media="$Time$"', '<S d="5"/><S d="4"/>').names).toEqual(["0", "5"]);
});

test.each([
  ["PT6S", "", 3, undefined],
  ["PT4S", "", 3, undefined],
  ["PT4.0S", "", 3, undefined],
  ["PT3.9S", "", 3, undefined],
  ["PT3.7S", "", 2, 1],
  ["PT3S", "", 2, 1],
  ["PT2.9S", "", 2, 1],
  ["PT0.5S", "", 1, 2],
  ["PT0S", "", 3, undefined],
  ["", "", 3, undefined],
  // The list starts after the end that is stated: its offset is wrong.
  ["PT6S", "1000000", 3, undefined],
  ["PT2.5S", "1000000", 2, 1],
])(
  "of a timeline of 6 s in a presentation of %s from time %s, %d segments are presented",
  (period, t, count, beyond) => {
    const entry = `<S ${t && `t="${t}"`} d="20" r="2"/>`;
    const { names, beyondEnd } = read('media="$Number$" timescale="10"', entry, period);
    expect(names).toEqual(["1", "2", "3"].slice(0, count));
    expect(beyondEnd).toBe(beyond);
  },
);

test("a SegmentList with a timeline ends where its presentation does, one of nominal durations has all its segments", () => {
  const urls = ["a", "b", "c"].map((media) => `<SegmentURL media="${media}"/>`).join("");
  const list = (attributes: string, timeline: string) =>
    openMpd(
      `<MPD mediaPresentationDuration="PT2.5S"><Period><AdaptationSet mimeType="video/mp4"><Representation id="v">` +
        `<SegmentList ${attributes}>${timeline}${urls}</SegmentList></Representation></AdaptationSet></Period></MPD>`,
      url,
    ).segments("dash-v");
  const exact = list("", '<SegmentTimeline><S d="2" r="2"/></SegmentTimeline>');
  expect([exact.segments.length, exact.beyondEnd]).toEqual([2, 1]);
  const nominal = list('duration="2"', "");
  expect([nominal.segments.length, nominal.beyondEnd]).toEqual([3, undefined]);
});

test("a negative repeat ends at the next entry or the end of the Period", () => {
  const { names, segments } = read(
    'media="$Time$" presentationTimeOffset="100"',
    '<S t="100" d="2" r="-1"/><S t="105" d="2" r="-1"/>',
  );
  expect(names).toEqual(["100", "102", "104", "105", "107", "109"]);
  expect(segments.map(({ durationS }) => durationS)).toEqual([2, 2, 1, 2, 2, 1]);
  expect(() => read('media="$Time$"', '<S d="2" r="-1"/>', "")).toThrow(failure("upstream_invalid", /negative S@r/));
});

test("times beyond 2^53 stay exact", () => {
  const { names } = read('media="$Time$" timescale="10000000"', '<S t="17000000000000001" d="20000001" r="1"/>');
  expect(names).toEqual(["17000000000000001", "17000000020000002"]);
});

test("endNumber ends a timeline", () => {
  expect(read('media="$Number$" endNumber="2"', '<S d="1" r="8"/>').names).toEqual(["1", "2"]);
});

test.each([
  ['media="$Number$"', '<S d="1" r="2000000000"/>'],
  ['media="$Number$"', '<S d="1" r="99999999999999999999"/>'],
  ['media="$Number$"', '<S d="1" r="100000"/>'.repeat(2)],
  ['media="$Number$" timescale="1000000"', '<S d="1" r="-1"/>'],
  ['media="$Number$" timescale="1000000" duration="1"', ""],
  ['media="$Number$" duration="1" startNumber="1" endNumber="900000"', "", "PT99999999S"],
])("more than 200,000 segments are refused before any is created: %s %s", (template, timeline, period = "PT10S") => {
  expect(() => read(template, timeline, period)).toThrow(failure("upstream_invalid", /200000 segments/));
});

test.each([
  ['media="$Number$"', "", /must have a duration/],
  ['media="$Number$" duration="0"', "", /must have a duration/],
  ['media="$Number$" duration="x"', "", /duration must be a whole number/],
  ['media="$Number$" timescale="-1" duration="4"', "", /timescale must be a whole number/],
  ['media="$Number$"', "<S/>", /S@d must be/],
  ['media="$Number$"', '<S d="0" r="5"/>', /S@d must be/],
  ['media="$Number$"', '<S d="1" t="1.5"/>', /S@t must be a whole number/],
  ['media="$Number$"', '<S d="1" r="many"/>', /S@r must be a whole number/],
])("%s %s is refused as invalid", (template, timeline, message) => {
  expect(() => read(template, timeline)).toThrow(failure("upstream_invalid", message));
});

test("segments without endNumber need a Period of known duration", () => {
  expect(() => read('media="$Number$" duration="4"', "", "")).toThrow(failure("upstream_invalid", /known duration/));
});
