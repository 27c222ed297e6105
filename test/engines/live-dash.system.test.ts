import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { type EngineHarness, openEntry } from "../contracts/engine/harness.ts";
import { type Addressing, type LiveDash, liveResources, startLiveDash } from "../media/live-dash.ts";
import { probe } from "../media/probe.ts";

const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
afterAll(() => engine.close());

async function openLive(options: Partial<LiveDash>): Promise<EngineHarness> {
  const harness = await openEntry(() => engine, liveResources(), "live.mpd");
  startLiveDash(harness.site, { addressing: "$Number$", ...options });
  return harness;
}

const fourthPiece = /v[12]\/(?:4|3000)\.m4s$/;
const addressings: Addressing[] = ["$Number$", "$Number$ of a timeline", "$Time$ of a timeline"];
/** All pieces; one more of the audio, which no timeline lists and which may come late, has a single frame. */
const whole = {
  streams: [
    { kind: "video", frames: 150 },
    { kind: "audio", frames: expect.toBeOneOf([282, 283]) },
  ],
};

/** How often a path was requested. */
const countOf = ({ site }: EngineHarness, name: string) => site.asked.filter(({ path }) => path === name).length;

async function leaveOutOrigins({ job: { folder } }: EngineHarness): Promise<void> {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".live"));
  expect(names.length).toBeGreaterThan(0);
  for (const name of names) {
    const path = join(folder, name);
    await writeFile(path, (await readFile(path, "utf8")).replaceAll(/"originMs":\d+,/g, ""));
  }
}

async function expectWhole(harness: EngineHarness): Promise<void> {
  const { path, warnings } = await harness.download();
  expect(warnings).toEqual([]);
  expect(await probe(path)).toMatchObject(whole);
  expect(harness.progress.some(({ is_live }) => is_live === true)).toBe(true);
}

describe.concurrent.each(addressings)(
  "live DASH whose segments are addressed by %s is recorded whole",
  (addressing) => {
    it("until it ends", async () => {
      await using harness = await openLive({ addressing });
      await expectWhole(harness);
    });

    it("although its window slides", async () => {
      await using harness = await openLive({ addressing, windowS: 3 });
      await expectWhole(harness);
    });

    it("through a second Period with other Representations", async () => {
      await using harness = await openLive({ addressing, secondPeriod: 3, windowS: 3 });
      await expectWhole(harness);
    });

    it("through a second Period that is the only one in the end", async () => {
      await using harness = await openLive({ addressing, secondPeriod: 3, windowS: 3, isWindowed: true });
      await expectWhole(harness);
    });

    it("although it ends before an MPD has arrived", async () => {
      await using harness = await openLive({ addressing, startS: 4, slowS: 4.5 });
      await expectWhole(harness);
    });

    it("if segments come later than the MPD says", async () => {
      await using harness = await openLive({ addressing, lateS: 1.5 });
      await expectWhole(harness);
    });

    it.each([
      ["", { windowS: 4 }, fourthPiece, async () => {}],
      [" of an older version", { windowS: 4 }, fourthPiece, leaveOutOrigins],
      [" in a second Period", { secondPeriod: 3 }, fourthPiece, async () => {}],
      [" at the end of the stream", {}, /a1\/(?:6|5000)\.m4s$/, async () => {}],
    ])("by a run after one%s that was killed", async (_case, options, killedAt, change) => {
      await using harness = await openLive({ addressing, ...options });
      const controller = new AbortController();
      const killed = harness.download({}, controller.signal);
      killed.catch(() => {});
      await harness.site.until(() => harness.site.asked.some(({ path }) => killedAt.test(path)));
      controller.abort("killed");
      await expect(killed).rejects.toBe("killed");
      await change(harness);
      await expectWhole(harness);
    });
  },
);

describe.concurrent("live DASH is recorded whole by the clock of its site", () => {
  it.each([30, -30])("which is %d s ahead, by the Date of its responses", async (aheadS) => {
    await using harness = await openLive({ aheadS });
    await expectWhole(harness);
  });

  it.each([
    '<UTCTiming schemeIdUri="urn:mpeg:dash:utc:http-xsdate:2014" value="/time"/>',
    '<UTCTiming schemeIdUri="urn:mpeg:dash:utc:ntp:2014" value="x"/><UTCTiming schemeIdUri="urn:mpeg:dash:utc:http-head:2014" value="/time"/>',
  ])("by %s", async (timing) => {
    await using harness = await openLive({ aheadS: 30, timing });
    await expectWhole(harness);
    expect(countOf(harness, "time")).toBe(1);
  });

  it("which is asked once, although it does not say", async () => {
    const timing = '<UTCTiming schemeIdUri="urn:mpeg:dash:utc:http-iso:2014" value="/missing"/>';
    await using harness = await openLive({ timing });
    await expectWhole(harness);
    expect(countOf(harness, "missing")).toBe(1);
  });
});

describe.concurrent("live DASH", () => {
  it("is read once for what all of its tracks begin with", async () => {
    await using harness = await openLive({});
    // Segments of a minute: the MPD is to be read again after one at the earliest, however slow the machine is.
    const sets = ["v", "a"].map((kind) => {
      const media = 'initialization="$RepresentationID$/init.m4s" media="$RepresentationID$/$Number$.m4s"';
      const codecs = kind === "v" ? "avc1.64000c" : "mp4a.40.2";
      const type = kind === "v" ? "video/mp4" : "audio/mp4";
      return `<AdaptationSet mimeType="${type}"><SegmentTemplate ${media} duration="60"/><Representation id="${kind}1" codecs="${codecs}"/></AdaptationSet>`;
    });
    const started = new Date(Date.now() - 150_000).toISOString();
    const head = `type="dynamic" minimumUpdatePeriod="PT60S" availabilityStartTime="${started}"`;
    harness.site.answer("live.mpd", (response) => {
      response.end(`<MPD ${head}><Period start="PT0S">${sets.join("")}</Period></MPD>`);
    });
    for (const path of ["v1/1.m4s", "a1/1.m4s"]) harness.site.answer(path, (_response, serve) => serve());
    const controller = new AbortController();
    const ended = harness.download({}, controller.signal);
    ended.catch(() => {});
    await harness.site.until(() => ["v1/1.m4s", "a1/1.m4s"].every((path) => countOf(harness, path) > 0));
    controller.abort("over");
    await expect(ended).rejects.toBe("over");
    expect(countOf(harness, "live.mpd")).toBe(1);
  });

  it("is read again where its MPD says", async () => {
    await using harness = await openLive({ location: "moved.mpd" });
    await expectWhole(harness);
    expect(countOf(harness, "live.mpd")).toBe(1);
    expect(countOf(harness, "moved.mpd")).toBeGreaterThan(0);
  });

  it("is read again where it was if it is not where its MPD says", async () => {
    await using harness = await openLive({ location: "moved.mpd" });
    harness.site.answer("moved.mpd", (response) => response.writeHead(404).end());
    await expectWhole(harness);
  });

  it("that is to finish is kept with what there is", async () => {
    await using harness = await openLive({ addressing: "$Number$ of a timeline", isEndless: true, startS: 4 });
    const finish = new AbortController();
    const downloading = harness.download({}, undefined, finish.signal);
    await harness.site.until(() => harness.site.asked.some(({ path }) => path.endsWith("v1/4.m4s")));
    finish.abort();
    const { path, warnings } = await downloading;
    expect(warnings).toEqual([]);
    expect((await probe(path)).streams[0]?.frames).toBeGreaterThanOrEqual(25);
  });

  it("is kept up to a Period that cannot be recorded, with a warning", async () => {
    await using harness = await openLive({
      addressing: "$Number$ of a timeline",
      secondPeriod: 4,
      inSecondPeriod: "<ContentProtection/>",
    });
    const { path, warnings } = await harness.download();
    expect(warnings).toEqual([{ code: "stream_lost", message: expect.stringMatching(/ContentProtection/) }]);
    expect((await probe(path)).streams[0]?.frames).toBeGreaterThanOrEqual(50);
  });

  it("whose only Period cannot be recorded is refused", async () => {
    await using harness = await openLive({ secondPeriod: 0, inSecondPeriod: "<ContentProtection/>" });
    await expect(harness.download()).rejects.toMatchObject({ code: "drm_protected" });
  });

  it("up to maxLiveS", async () => {
    await using harness = await openLive({ addressing: "$Number$ of a timeline", isEndless: true, startS: 4 });
    const { duration } = await harness.download({ maxLiveS: 3 });
    expect(Math.abs((duration ?? 0) - 3)).toBeLessThanOrEqual(0.1);
  });

  it("that has ended is no longer live, although its MPD is dynamic", async () => {
    await using harness = await openEntry(() => engine, liveResources(), "live.mpd");
    startLiveDash(harness.site, { addressing: "$Number$", startS: 60 });
    const { path } = await harness.download();
    expect(await probe(path)).toMatchObject(whole);
    expect(harness.progress.some(({ is_live }) => is_live === true)).toBe(false);
    // What may be there after the last segment is not waited for.
    expect(countOf(harness, "a1/7.m4s")).toBe(1);
  });

  it.each([3, 5])("whose encoder begins anew at 0, %d s after it began, goes on by the clock", async (laterS) => {
    await using harness = await openLive({});
    const originMs = Date.now() - 20_000;
    const mpdOf = (head: string, startMs: number) => {
      const media = 'initialization="v1/init.m4s" media="v1/$Number$.m4s" timescale="1000" presentationTimeOffset="80"';
      const timeline = '<SegmentTimeline><S t="0" d="1000" r="2"/></SegmentTimeline>';
      const set = `<SegmentTemplate ${media}>${timeline}</SegmentTemplate><Representation id="v1" codecs="avc1.64000c"/>`;
      const times = `availabilityStartTime="${new Date(startMs).toISOString()}" minimumUpdatePeriod="PT1S"`;
      return `<MPD ${head} ${times}><Period start="PT0S"><AdaptationSet mimeType="video/mp4">${set}</AdaptationSet></Period></MPD>`;
    };
    const mpds = [
      mpdOf('type="dynamic"', originMs),
      mpdOf('type="dynamic"', originMs + 1000 * laterS),
      mpdOf('type="static" mediaPresentationDuration="PT3S"', originMs + 1000 * laterS),
    ];
    let reading = 0;
    harness.site.answer("live.mpd", (response) => {
      response.end(mpds[Math.min(reading, 2)]);
      if (countOf(harness, "v1/3.m4s") > 0) reading += 1;
    });
    for (const number of [1, 2, 3]) harness.site.answer(`v1/${number}.m4s`, (_response, serve) => serve());
    const { path, warnings, duration } = await harness.download();
    expect((await probe(path)).streams[0]?.frames).toBe(150);
    expect(Math.abs((duration ?? 0) - laterS - 3)).toBeLessThanOrEqual(0.1);
    expect(warnings.map(({ code }) => code)).toEqual(laterS > 3 ? ["gap"] : []);
  });

  /** Serves an MPD whose list ends with so many segments from time 0 on, after the first list with the last two of them, each list for some readings after the first one was fetched; then it is static. */
  async function openLists(counts: readonly number[], names: string): Promise<EngineHarness> {
    const harness = await openLive({});
    const originMs = Date.now() - 60_000;
    const [before = 0] = counts;
    let readings = 0;
    harness.site.answer("live.mpd", (response) => {
      const at = Math.ceil(readings / readingsOfList);
      if (["v", "a"].every((kind) => countOf(harness, `${kind}1/${before}.m4s`) > 0)) readings += 1;
      const count = counts[at] ?? counts.at(-1)!;
      const from = at === 0 ? 0 : Math.max(0, count - 2);
      const sets = [
        ["v", "video/mp4", "avc1.64000c", 80],
        ["a", "audio/mp4", "mp4a.40.2", 0],
      ].map(([kind, type, codecs, offset]) => {
        const media = 'initialization="$RepresentationID$/init.m4s" media="$RepresentationID$/$Number$.m4s"';
        const timeline = `<SegmentTimeline><S t="${1000 * from}" d="1000" r="${count - from - 1}"/></SegmentTimeline>`;
        const times = `timescale="1000" presentationTimeOffset="${offset}" startNumber="${from + 1}"`;
        const id = `${kind}${at === 0 ? "1" : names}`;
        const representation = `<Representation id="${id}" codecs="${codecs}"/>`;
        return `<AdaptationSet mimeType="${type}"><SegmentTemplate ${media} ${times}>${timeline}</SegmentTemplate>${representation}</AdaptationSet>`;
      });
      const head = at < counts.length ? 'type="dynamic" minimumUpdatePeriod="PT1S"' : 'type="static"';
      const origin = `availabilityStartTime="${new Date(originMs).toISOString()}"`;
      response.end(`<MPD ${head} ${origin}><Period start="PT0S">${sets.join("")}</Period></MPD>`);
    });
    for (const path of harness.site.resources.keys()) {
      if (path.endsWith(".m4s")) harness.site.answer(path, (_response, serve) => serve());
    }
    return harness;
  }
  /** Two tracks take turns, more or less: so each of them reads each list. */
  const readingsOfList = 3;
  const gap = (afterS: number) => [
    {
      code: "gap",
      message: ["", " of the separate audio"]
        .map(
          (what) =>
            `the playlist${what} restarted its numbering after ${afterS}.0 s, and media before that may be missing`,
        )
        .join("; "),
    },
  ];

  it.each([
    ["other names", [5, 1, 2, 3, 4], "2", 9],
    ["the same names", [6, 1, 2, 3, 3], "1", 9],
  ])(
    "whose times fall back to 0 under one origin, with %s, goes on after what there was",
    async (_, counts, names, all) => {
      await using harness = await openLists(counts, names);
      const { path, warnings } = await harness.download();
      expect(warnings).toEqual(gap(counts[0]!));
      const { streams } = await probe(path);
      expect(streams).toMatchObject([{ frames: 25 * all }, { kind: "audio" }]);
      expect(Math.abs(streams[1]!.frames - 47 * all)).toBeLessThanOrEqual(1);
    },
  );

  it.each([
    [[4, 1, 2, 3, 4, 5, 6], 150],
    [[5, 1, 2, 3, 4], 125],
  ])("whose times may have fallen back, with lists of %j segments, has a warning", async (counts, frames) => {
    await using harness = await openLists(counts, "1");
    const { path, warnings } = await harness.download();
    expect(warnings).toEqual(gap(counts[0]!));
    expect((await probe(path)).streams[0]?.frames).toBe(frames);
  });

  it("of which a server is two segments late has no segment twice, and no warning", async () => {
    await using harness = await openLists([5, 3, 4, 5, 6], "1");
    await expectWhole(harness);
  });

  it("whose segments are in a list is refused", async () => {
    await using harness = await openLive({});
    harness.site.answer("live.mpd", (response) => {
      const set =
        '<AdaptationSet mimeType="video/mp4"><Representation id="v"><SegmentList duration="1"><SegmentURL media="1"/></SegmentList>';
      response.end(
        `<MPD type="dynamic" availabilityStartTime="2026-01-01T00:00:00Z"><Period start="PT0S">${set}</Representation></AdaptationSet></Period></MPD>`,
      );
    });
    await expect(harness.download()).rejects.toMatchObject({ code: "live_stream" });
  });
});
