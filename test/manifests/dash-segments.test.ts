import { describe, expect, test } from "vitest";
import { openMpd } from "../../src/manifests/dash/dash.ts";
import { failure } from "./failure.ts";

const url = new URL("https://media.example.com/films/42/main.mpd");
const at = (name: string) => `https://media.example.com/films/42/${name}`;

const mpd = (body: string, attributes = 'mediaPresentationDuration="PT8S"') =>
  `<?xml version="1.0"?>\n<MPD type="static" ${attributes}>${body}</MPD>`;
const video = (body: string, attributes = "") =>
  `<AdaptationSet mimeType="video/mp4" ${attributes}>${body}</AdaptationSet>`;
const read = (text: string, id = "dash-v") => openMpd(text, url).segments(id);
const template = '<SegmentTemplate media="$RepresentationID$-$Number$.m4s" duration="4"/>';
const representation = '<Representation id="v" bandwidth="1000"/>';

test("a Representation inherits addressing from its ancestors", () => {
  const { segments, hasEnded } = read(
    mpd(
      "<BaseURL>https://cdn.example.com/a/</BaseURL><Period><BaseURL>b/</BaseURL>" +
        '<SegmentTemplate timescale="1000" duration="1" media="period-$Number$.m4s"/>' +
        video(
          "<BaseURL>c/</BaseURL>" +
            '<SegmentTemplate duration="4000" initialization="$RepresentationID$.mp4"/>' +
            '<Representation id="v" bandwidth="1000"><BaseURL>d/</BaseURL>' +
            '<SegmentTemplate startNumber="7"/></Representation>',
        ) +
        "</Period>",
    ),
  );
  const base = "https://cdn.example.com/a/b/c/d/";
  const init = { url: `${base}v.mp4`, range: null, key: null };
  const common = { range: null, init, key: null, durationS: 4, timeline: 0, offsetS: 0 };
  expect(hasEnded).toBe(true);
  expect(segments).toEqual([
    { ...common, url: `${base}period-7.m4s`, sequence: 0 },
    { ...common, url: `${base}period-8.m4s`, sequence: 1, computed: { periodEndS: 8, segmentS: 4 } },
  ]);
  expect(segments[0]?.init).toBe(segments[1]?.init);
});

test("only the innermost kind of addressing counts; within one element SegmentBase counts last", () => {
  const { segments } = read(
    mpd(
      '<Period><SegmentList timescale="9" startNumber="5"/>' +
        video(
          '<SegmentTemplate media="$Number$" duration="4"/>' +
            '<Representation id="v"><SegmentBase/><SegmentTemplate startNumber="2"/><SegmentBase/></Representation>',
        ) +
        "</Period>",
    ),
  );
  expect(segments.map((each) => [each.url, each.durationS])).toEqual([
    [at("2"), 4],
    [at("3"), 4],
  ]);
});

test("a format continues through all Periods, each with its own time offset", () => {
  const period = (attributes: string, offset: number) =>
    `<Period ${attributes}>${video(
      `<SegmentTemplate media="$Number$.m4s" timescale="10" duration="40" presentationTimeOffset="${offset}"/>${representation}`,
    )}</Period>`;
  const text = mpd(
    period('start="PT0S" duration="PT8S"', 0) + period('duration="PT4S"', 600) + period('start="PT13S"', 5),
    'mediaPresentationDuration="PT19S"',
  );
  const { segments } = read(text);
  const places = segments.map((each) => [each.timeline, each.sequence, each.offsetS, each.durationS]);
  expect(places).toEqual([
    [0, 0, 0, 4],
    [0, 1, 0, 4],
    [1, 2, 8 - 60, 4],
    [2, 3, 12.5, 4],
    [2, 4, 12.5, 2],
  ]);
});

test("a total duration may leave out the time before the first Period", () => {
  const text = mpd(`<Period start="PT12M34S">${video(template + representation)}</Period>`);
  expect(read(text).segments.map(({ offsetS, durationS }) => [offsetS, durationS])).toEqual([
    [754, 4],
    [754, 4],
  ]);
});

test("a SegmentBase whose init section is elsewhere is one segment with that init section", () => {
  const file = (initialization: string) =>
    mpd(
      `<Period>${video(`<Representation id="v"><BaseURL>v.mp4</BaseURL><SegmentBase indexRange="9-99">${initialization}</SegmentBase></Representation>`)}</Period>`,
    );
  const apart = file('<Initialization sourceURL="i/init.mp4" range="0-99"/>');
  const init = { url: at("i/init.mp4"), range: { offset: 0, length: 100 }, key: null };
  expect(read(apart).segments).toMatchObject([{ url: at("v.mp4"), range: null, init, durationS: 8 }]);
  const protocol = (text: string) => openMpd(text, url).listing.formats.map((format) => format.protocol);
  expect(protocol(apart)).toEqual(["dash"]);
  expect(protocol(file('<Initialization range="0-8"/>'))).toEqual(["https"]);
  expect(protocol(file('<Initialization sourceURL="v.mp4" range="0-8"/>'))).toEqual(["https"]);
});

test("a SegmentBase with a presentationTimeOffset is one segment, whose media are that much earlier", () => {
  const file = (offset: string, ofSet = "") =>
    mpd(
      `<Period>${video(`${ofSet}<Representation id="v"><BaseURL>v.mp4</BaseURL><SegmentBase timescale="1000" ${offset}/></Representation>`)}</Period>`,
    );
  const own = file('presentationTimeOffset="1500"');
  const inherited = file("", '<SegmentBase presentationTimeOffset="1500"/>');
  for (const text of [own, inherited]) {
    expect(read(text).segments).toMatchObject([{ url: at("v.mp4"), range: null, init: null, offsetS: -1.5 }]);
  }
  const protocol = (text: string) => openMpd(text, url).listing.formats.map((format) => format.protocol);
  expect([own, inherited, file('presentationTimeOffset="0"'), file("")].map(protocol)).toEqual([
    ["dash"],
    ["dash"],
    ["https"],
    ["https"],
  ]);
});

test("a file beside media with a presentationTimeOffset is one segment too, whose times count from the start of their Period", () => {
  const set = (id: string, offset: string) => {
    const attributes = `timescale="1000" presentationTimeOffset="${offset}"`;
    const addressing = `<BaseURL>${id}.mp4</BaseURL><SegmentBase ${attributes}/>`;
    return `<AdaptationSet mimeType="video/mp4"><Representation id="${id}" codecs="avc1.64001f">${addressing}</Representation></AdaptationSet>`;
  };
  const listed = (other: string) => {
    const text = mpd(`<Period start="PT2S">${set("v", "0")}${set("w", other)}</Period>`);
    const { listing } = openMpd(text, url);
    const format = listing.formats.find(({ format_id }) => format_id === "dash-v");
    return format?.protocol === "dash" ? read(text).segments : format?.protocol;
  };
  expect(listed("500")).toMatchObject([{ url: at("v.mp4"), range: null, init: null, offsetS: 2 }]);
  expect(listed("0")).toBe("https");
});

test("Periods are read in the order of their starts, or as they are listed if one is unknown", () => {
  const set = (name: string) =>
    video(`<SegmentTemplate media="${name}$Number$" duration="4" endNumber="1"/>${representation}`);
  const names = (periods: string) => read(mpd(periods, "")).segments.map((segment) => segment.url);
  const later = `<Period start="PT4S" duration="PT4S">${set("b")}</Period>`;
  const [a, b, c] = [at("a1"), at("b1"), at("c1")];
  expect(names(`${later}<Period start="PT0S">${set("a")}</Period>`)).toEqual([a, b]);
  expect(names(`<Period start="PT0S">${set("a")}</Period>${later}`)).toEqual([a, b]);
  const unknown = `<Period start="PT9S">${set("c")}</Period><Period>${set("a")}</Period>`;
  expect(names(unknown)).toEqual([c, a]);
});

test("the offset of a Period is null if its start is unknown", () => {
  const set = video(`<SegmentTemplate media="$Number$.m4s" duration="4" endNumber="1"/>${representation}`);
  const { segments } = read(mpd(`<Period>${set}</Period><Period>${set}</Period>`, ""));
  expect(segments.map(({ offsetS }) => offsetS)).toEqual([0, null]);
});

test("identical Representations are distinguished by their format ids", () => {
  const twins =
    '<Representation id="a" bandwidth="1"/><Representation id="b" bandwidth="1"/><Representation id="a" bandwidth="2"/>';
  const text = mpd(
    `<Period>${video(template + twins)}</Period><Period start="PT4S">${video(template + twins)}</Period>`,
  );
  const addresses = openMpd(text, url).listing.formats.map(({ format_id }) => [
    format_id,
    read(text, format_id).segments.map((segment) => segment.url),
  ]);
  expect(addresses).toEqual([
    ["dash-a", [at("a-1.m4s"), at("a-1.m4s")]],
    ["dash-b", [at("b-1.m4s"), at("b-1.m4s")]],
    ["dash-a-1", [at("a-1.m4s"), at("a-1.m4s")]],
  ]);
});

describe("in each Period a format continues with its best counterpart", () => {
  const offer = (attributes: string, body = "") =>
    `<AdaptationSet mimeType="video/mp4">${template}<Representation ${attributes}>${body}</Representation></AdaptationSet>`;
  const wanted = 'id="v" height="720" bandwidth="5000" codecs="avc1.64001f" lang="en"';
  const counterparts: readonly (readonly [string, string, string])[] = [
    ["no protection", offer('id="x" height="360"'), offer(wanted, "<ContentProtection/>")],
    ["the same language", offer('id="x" lang="en-GB"'), offer('id="v" height="720" lang="de"')],
    ["the nearest height", offer('id="x" height="700" lang="en"'), offer('id="v" height="360" lang="en"')],
    ["the same id", offer('id="v" bandwidth="1" lang="en"'), offer('id="x" bandwidth="5000" lang="en"')],
    ["the nearest bit rate", offer('id="x" bandwidth="4000" lang="en"'), offer('id="y" bandwidth="1" lang="en"')],
    ["the same codec", offer('id="x" codecs="avc3.42e01e"'), offer('id="v" codecs="hvc1.1"')],
  ];
  for (const [rule, best, other] of counterparts) {
    test(`which has ${rule}`, () => {
      const id = /id="(.)"/.exec(best)?.[1] ?? "";
      for (const offers of [best + other, other + best]) {
        const main = offer(wanted) + offer('id="w"') + offer('id="z"');
        const text = mpd(`<Period duration="PT4S">${main}</Period><Period>${offers}</Period>`);
        expect(read(text).segments.map((segment) => segment.url)).toEqual([at("v-1.m4s"), at(`${id}-1.m4s`)]);
      }
    });
  }

  test("without one, nothing is downloaded", () => {
    const [avc, hevc] = [offer('id="v" codecs="avc1.64001f"'), offer('id="v" codecs="hvc1.1"')];
    const text = mpd(`<Period duration="PT4S">${avc}</Period><Period>${hevc}</Period>`);
    expect(() => read(text)).toThrow(failure("format_unavailable", /Period 2 has nothing/));
  });

  test("MP3 continues with MP3, whatever its name, and not with AAC", () => {
    const audio = (codecs: string) => offer(`id="v" codecs="${codecs}"`).replace("video/mp4", "audio/mp4");
    const periods = (...codecs: string[]) =>
      mpd(codecs.map((each) => `<Period duration="PT4S">${audio(each)}</Period>`).join(""), "");
    expect(read(periods("mp4a.40.34", "mp4a.6B", "mp3", "mp4a.69")).segments).toHaveLength(8);
    expect(() => read(periods("mp4a.40.34", "mp4a.40.2"))).toThrow(
      failure("format_unavailable", /Period 2 has nothing/),
    );
  });

  test("a Period without the kind is a gap", () => {
    const text = mpd(
      `<Period duration="PT4S">${offer(wanted)}</Period><Period duration="PT4S"/><Period duration="PT4S">${offer(wanted)}</Period>`,
      "",
    );
    expect(read(text).segments.map(({ timeline, offsetS }) => [timeline, offsetS])).toEqual([
      [0, 0],
      [2, 8],
    ]);
  });
});

test("media of a Period end where the next Period begins", () => {
  const set = video(template + representation);
  const text = mpd(
    `<Period duration="PT4S">${set}</Period><Period duration="PT4S">${set}</Period><Period start="PT7S">${set}</Period>`,
    'mediaPresentationDuration="PT11S"',
  );
  expect(read(text).segments.map(({ span }) => span)).toEqual([
    { startS: -Infinity, endS: 4 },
    { startS: 4, endS: 7 },
    { startS: 7, endS: Infinity },
  ]);
});

test("only the last segments that are computed from a duration may be missing", () => {
  const places = (attributes: string, durationS: number) => {
    const addressing = `<SegmentTemplate media="$Number$" timescale="10" duration="40" ${attributes}/>`;
    const text = mpd(
      `<Period>${video(addressing + representation)}</Period>`,
      `mediaPresentationDuration="PT${durationS}S"`,
    );
    return read(text).segments.map(({ computed }) => computed);
  };
  const computed = { periodEndS: 8.5, segmentS: 4 };
  expect(places("", 8.5)).toEqual([undefined, undefined, computed]);
  expect(places('endNumber="3"', 8.5)).toEqual([undefined, undefined, undefined]);
  expect(places("", 4000).filter((place) => place !== undefined)).toHaveLength(10);
});

test("of audio whose endNumber lists more than its Period has, one more segment may have the end of the Period", () => {
  const segmentsUpTo = (set: string, endNumber: number) => {
    const addressing = `<SegmentTemplate media="$Number$" duration="4" endNumber="${endNumber}"/><Representation id="v" bandwidth="1"/>`;
    const { segments } = read(
      mpd(`<Period duration="PT10S">${set.replace("/>", `>${addressing}</AdaptationSet>`)}</Period>`),
    );
    return segments.map((each) => [each.url.replace(/.*\//, ""), each.isOptional ?? false]);
  };
  const whole = [1, 2, 3].map((number) => [`${number}`, false]);
  const audio = '<AdaptationSet mimeType="audio/mp4"/>';
  expect(segmentsUpTo(audio, 3)).toEqual(whole);
  expect(segmentsUpTo(audio, 4)).toEqual([...whole, ["4", true]]);
  expect(segmentsUpTo(audio, 900)).toEqual([...whole, ["4", true]]);
  expect(segmentsUpTo('<AdaptationSet mimeType="video/mp4"/>', 4)).toEqual(whole);
});

test.each(["", 'endNumber="4"'])(
  "segments of several Periods last as long as these, optional ones included: %s",
  (end) => {
    const audio = `<AdaptationSet mimeType="audio/mp4"><SegmentTemplate media="$Number$" duration="4" ${end}/>${representation}</AdaptationSet>`;
    const { segments } = read(mpd(`<Period duration="PT10S">${audio}</Period>`.repeat(2), ""));
    expect(segments.map(({ durationS }) => durationS)).toEqual([4, 4, 2, 0, 4, 4, 2, 0]);
  },
);

test("segments that a timeline repeats may be missing at the end of the Period only, and not if something else says where they end", () => {
  const computedOf = (timeline: string, attributes = "") => {
    const addressing = `<SegmentTemplate media="$Time$" timescale="10" ${attributes}><SegmentTimeline>${timeline}</SegmentTimeline></SegmentTemplate>`;
    return read(mpd(`<Period>${video(addressing + representation)}</Period>`)).segments.map((each) => each.computed);
  };
  const computed = { periodEndS: 8, segmentS: 3 };
  expect(computedOf('<S t="0" d="30" r="-1"/>')).toEqual([undefined, undefined, computed]);
  expect(computedOf('<S t="0" d="20" r="-1"/><S t="50" d="30" r="-1"/>')).toEqual([...Array(3), computed]);
  expect(computedOf('<S t="0" d="30" r="2"/>')).toEqual([undefined, undefined, undefined]);
  expect(computedOf('<S t="0" d="30" r="-1"/>', 'endNumber="3"')).toEqual([undefined, undefined, undefined]);
});

test("an id made unique among manifests finds the same Representation", () => {
  const text = mpd(`<Period>${video(template + representation)}</Period>`);
  expect(read(text, "dash-v~2")).toEqual(read(text, "dash-v"));
  expect(() => read(text, "dash-v-2")).toThrow(failure("format_unavailable", /"dash-v-2"/));
});

test("a SegmentList lists files or byte ranges", () => {
  const list = (urls: string, init = "") =>
    mpd(
      `<Period>${video(
        `<Representation id="v" bandwidth="1"><BaseURL>v.mp4</BaseURL><SegmentList timescale="2" duration="10">${init}${urls}</SegmentList></Representation>`,
      )}</Period>`,
    );
  const ranges = '<SegmentURL mediaRange="100-199"/><SegmentURL mediaRange="200-250"/>';
  const own = read(list(ranges, '<Initialization range="0-99"/>')).segments;
  const init = { url: at("v.mp4"), range: { offset: 0, length: 100 }, key: null };
  expect(own).toMatchObject([
    { url: at("v.mp4"), range: { offset: 100, length: 100 }, init, durationS: 5 },
    { url: at("v.mp4"), range: { offset: 200, length: 51 }, init, durationS: 3 },
  ]);
  const files = read(
    list('<SegmentURL media="1.m4s"/><SegmentURL media="x/2.m4s"/>', '<Initialization sourceURL="i.mp4"/>'),
  ).segments;
  expect(files.map((segment) => segment.url)).toEqual([at("1.m4s"), at("x/2.m4s")]);
  expect(files[0]?.init).toEqual({ url: at("i.mp4"), range: null, key: null });
});

test("a Representation that is one file is one segment without an init section", () => {
  const one = (body: string) =>
    read(mpd(`<Period>${video(`<Representation id="v">${body}</Representation>`)}</Period>`)).segments;
  const whole = { url: at("v.mp4"), range: null, init: null, durationS: 8 };
  const base = '<SegmentBase indexRange="800-900"><Initialization range="0-799"/></SegmentBase>';
  expect(one(`<BaseURL>v.mp4</BaseURL>${base}`)).toMatchObject([whole]);
  expect(one("<BaseURL>v.mp4</BaseURL>")).toMatchObject([whole]);
  expect(() => one("")).toThrow(failure("upstream_invalid", /must have a BaseURL/));
});

test("a live MPD must say since when it is available", () => {
  const text = `<MPD type="dynamic"><Period>${video(template + representation)}</Period></MPD>`;
  expect(() => read(text)).toThrow(failure("upstream_invalid", /must have an availabilityStartTime/));
  expect(() => read(text)).toThrow(expect.objectContaining({ retryable: false }));
});

test("only protected formats are refused", () => {
  const text = mpd(
    `<Period>${video(`${template}<Representation id="v"><ContentProtection/></Representation><Representation id="w"/>`)}</Period>`,
  );
  expect(() => read(text)).toThrow(failure("drm_protected", /ContentProtection/));
  expect(read(text, "dash-w").segments).toHaveLength(2);
});

test.each([
  ["<BaseURL>file:///etc/</BaseURL>", "", /scheme file:/],
  ["", '<SegmentTemplate media="data:video/mp4,$Number$" duration="4"/>', /scheme data:/],
  ["", '<SegmentTemplate initialization="ftp://x/i" media="$Number$" duration="4"/>', /scheme ftp:/],
  ["", '<SegmentList duration="4"><SegmentURL media="file:///etc/passwd"/></SegmentList>', /file:/],
])("a URL that is not http(s) is blocked: %s%s", (base, addressing, message) => {
  const text = mpd(`<Period>${video(base + (addressing || template) + representation)}</Period>`);
  expect(() => read(text)).toThrow(failure("address_blocked", message));
});

test.each([
  ["no MPD", "<html/>", /must be an MPD/],
  ["no media", mpd(`<Period>${video(`<SegmentTemplate duration="4"/>${representation}`)}</Period>`), /must have media/],
  [
    "an empty list",
    mpd(`<Period>${video(`<SegmentList duration="4"/>${representation}`)}</Period>`),
    /must have segments/,
  ],
  [
    "a bad range",
    mpd(
      `<Period>${video(`<SegmentList><SegmentURL media="a" mediaRange="9-3"/></SegmentList>${representation}`)}</Period>`,
    ),
    /first-last/,
  ],
  [
    "a remote Period",
    mpd(`<Period>${video(template + representation)}</Period><Period xlink:href="p.xml"/>`),
    /xlink:href/,
  ],
  [
    "more Representations than are read",
    mpd(`<Period>${video(template + representation.repeat(11_000))}</Period>`),
    /more Representations/,
  ],
])("%s is refused as invalid", (_, text, message) => {
  expect(() => read(text)).toThrow(failure("upstream_invalid", message));
});

test("a live list that is read again also has what servers keep for as long as a segment lasts", () => {
  const origin = Date.parse("2026-01-01T00:00:00Z");
  const head = 'type="dynamic" availabilityStartTime="2026-01-01T00:00:00Z" timeShiftBufferDepth="PT1S"';
  const times = '<SegmentTemplate media="$Number$" duration="2" startNumber="0"/>';
  const live = `<MPD ${head}><Period start="PT0S">${video(times + representation)}</Period></MPD>`;
  const names = (isReload: boolean) =>
    openMpd(live, url)
      .segments("dash-v", { nowMs: origin + 21_000, isReload })
      .segments.map((segment) => segment.url);
  expect(names(false)).toEqual([]);
  expect(names(true)).toEqual([at("9")]);
});

test("Periods of a live MPD may be counted from 1970, in seconds of ten digits", () => {
  const head = 'type="dynamic" availabilityStartTime="1970-01-01T00:00:00Z" minimumUpdatePeriod="PT2S"';
  const period = (startS: number) => {
    const numbers = `startNumber="${startS / 2}" presentationTimeOffset="${startS}"`;
    const numbered = `<SegmentTemplate media="$Number$" duration="2" ${numbers}/>`;
    return `<Period start="PT${startS}S">${video(numbered + representation)}</Period>`;
  };
  const live = `<MPD ${head}>${period(1_767_225_600)}${period(1_767_225_604)}</MPD>`;
  const { segments } = openMpd(live, url).segments("dash-v", { nowMs: 1_767_225_606_500 });
  expect(segments.map((segment) => segment.url)).toEqual([800, 801, 802].map((number) => at(`883612${number}`)));
});

test("a Period has no duration if what it states is only the highest number", () => {
  const body = `${template}${representation}`;
  const period = '<Period duration="PT4294967295S">';
  expect(read(mpd(`${period}${video(body)}</Period>`)).segments).toHaveLength(2);
});

describe("of a live MPD", () => {
  const origin = Date.parse("2026-01-01T00:00:00Z");
  const readLive = (periods: string, type = "dynamic", nowS = 11) =>
    openMpd(
      `<MPD type="${type}" availabilityStartTime="2026-01-01T00:00:00Z" minimumUpdatePeriod="PT2S">${periods}</MPD>`,
      url,
    ).segments("dash-v", { nowMs: origin + 1000 * nowS });
  const timed = (entries: string) =>
    video(`<SegmentTemplate media="$Time$"><SegmentTimeline>${entries}</SegmentTimeline></SegmentTemplate>`).replace(
      "</A",
      `${representation}</A`,
    );

  test.each([
    ["repeats until now, only those that are whole are listed", '<S t="0" d="4" r="-1"/>', [4, 4]],
    ["repeats until the next one, the last may be shorter", '<S t="0" d="4" r="-1"/><S t="6" d="3"/>', [4, 2, 3]],
  ])("if a segment of a timeline %s", (_, entries, durations) => {
    const { segments } = readLive(`<Period start="PT0S">${timed(entries)}</Period>`);
    expect(segments.map(({ durationS }) => durationS)).toEqual(durations);
  });

  test("what is not available yet is left out: a Period that has not begun, a segment that is not whole", () => {
    const numbered = video(template + representation);
    expect(readLive(`<Period start="PT12S">${timed('<S t="0" d="4"/>')}</Period>`).segments).toEqual([]);
    expect(readLive(`<Period start="PT8S">${numbered}</Period>`).segments).toEqual([]);
    expect(readLive(`<Period start="PT6S">${numbered}</Period>`).segments).toHaveLength(1);
  });

  test("a list of segments is refused", () => {
    const list = '<SegmentList duration="4"><SegmentURL media="1"/></SegmentList>';
    const period = `<Period start="PT0S">${video(list + representation)}</Period>`;
    expect(() => readLive(period)).toThrow(failure("live_stream", /SegmentTemplate only/));
  });

  test("a Period whose start is not known yet is left out", () => {
    const first = `<Period start="PT0S">${timed('<S t="0" d="4"/>')}</Period>`;
    const early = `<Period><AdaptationSet mimeType="video/mp4">${representation}</AdaptationSet></Period>`;
    const later = `<Period start="PT4S">${timed('<S t="0" d="4"/>')}</Period>`;
    expect(readLive(first + early).segments).toHaveLength(1);
    expect(readLive(first + later).segments).toHaveLength(2);
    expect(() => readLive(first + early, "static")).toThrow(failure("upstream_invalid", /must have a BaseURL/));
  });
});
