import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import type { Download, WantedSubtitles } from "../../../src/engines/engine.ts";
import type { Subtitle } from "../../../src/model/entry.ts";
import { hasFfmpeg } from "../../media/probe.ts";
import { hls, resource } from "../../media/resources.ts";
import { cuesOf, probeAll } from "../../remux/additions.ts";
import { readMediaSync } from "../../media/read-media.ts";
import { textInit, textSegment, vttSample } from "../../subtitles/mp4.ts";
import { type EngineHarness, type OpenEngine, openFixture } from "./harness.ts";

/** The media of the fixtures last 6 s. */
const expected = [
  "1\n00:00:01,000 --> 00:00:02,500\n<i>One</i> & two\n",
  "2\n00:00:03,000 --> 00:00:04,250\nThree\nfour\n",
].join("\n");

const cueTexts = [
  { fromMs: 1000, toMs: 2500, text: "<i>One</i> &amp; two" },
  { fromMs: 3000, toMs: 4250, text: "Three\nfour" },
];
const clock = (ms: number) =>
  `00:00:${String(Math.floor(ms / 1000)).padStart(2, "0")}.${String(ms % 1000).padStart(3, "0")}`;
const blocks = cueTexts.map(({ fromMs, toMs, text }) => `${clock(fromMs)} --> ${clock(toMs)}\n${text}\n`);
const webVtt = (header: string, cues: readonly string[]) => Buffer.from(`WEBVTT\n${header}\n${cues.join("\n")}`);

const srt = Buffer.from(expected.replace("& two", "& two"));
const ttml = Buffer.from(
  '<tt xmlns="http://www.w3.org/ns/ttml" xmlns:tts="http://www.w3.org/ns/ttml#styling"><body><div>' +
    '<p begin="1s" end="2.5s"><span tts:fontStyle="italic">One</span> &amp; two</p><p begin="3s" end="4.25s">Three<br/>four</p></div></body></tt>',
);

/** Subtitles of every kind, in the file and beside it. */
export function describeSubtitles(open: OpenEngine): void {
  const wanted = (...listings: Subtitle[]): WantedSubtitles => {
    return { language: "de", name: "Deutsch", role: "subtitles", automatic: false, listings };
  };
  const listing = (harness: EngineHarness, path: string, ext: string): Subtitle => {
    return { url: harness.site.url(path), ext, name: null };
  };

  async function expectCues(made: Download, isInFile = true): Promise<void> {
    const texts = made.others.filter(({ kind }) => kind === "subtitles");
    expect(texts.map(({ ext, language, role, automatic }) => [ext, language, role, automatic])).toEqual([
      ["vtt", "de", "subtitles", false],
      ["srt", "de", "subtitles", false],
    ]);
    const [vtt, subRip] = await Promise.all(texts.map(({ path }) => readFile(path, "utf8")));
    expect(subRip).toBe(expected);
    expect(vtt).toContain("00:00:01.000 --> 00:00:02.500\n<i>One</i> &amp; two\n");
    const inFile = probeAll(made.path).streams.filter(({ codec_type }) => codec_type === "subtitle");
    expect(inFile.map(({ tags }) => tags?.["language"])).toEqual(isInFile ? ["deu"] : []);
    if (isInFile) expect(cuesOf(made.path, 0).trim()).toBe(expected.trim());
    expect(made.warnings).toEqual([]);
  }

  describe.skipIf(!hasFfmpeg).concurrent("adds subtitles", () => {
    it("of WebVTT segments that name MPEG-2 timestamps, each cue once", async () => {
      await using harness = await openFixture(open, "HLS in MPEG-TS with B-frames");
      const { site } = harness;
      const first = [...site.resources.entries()].find(([path]) => path.endsWith("0.ts"))![1].body;
      const source = await harness.keep("first.ts", first);
      const startS = Number(
        readMediaSync("ffprobe", "-v", "error", "-show_entries", "format=start_time", "-of", "csv=p=0", source),
      );
      const map = (localS: number) =>
        `X-TIMESTAMP-MAP=LOCAL:${clock(localS * 1000)},MPEGTS:${Math.round((startS + localS) * 90_000)}\n`;
      site.resources.set("s/0.vtt", resource("text/vtt", webVtt(map(0), blocks)));
      site.resources.set("s/1.vtt", resource("text/vtt", webVtt(map(2), [blocks[1]!])));
      const lines = [
        "#EXTM3U",
        "#EXT-X-TARGETDURATION:3",
        "#EXTINF:3,",
        "0.vtt",
        "#EXTINF:3,",
        "1.vtt",
        "#EXT-X-ENDLIST",
      ];
      site.resources.set("s/index.m3u8", hls(lines.join("\n")));
      await expectCues(await harness.download({ subtitles: [wanted(listing(harness, "s/index.m3u8", "m3u8"))] }));
    });

    it("of WebVTT segments without timestamps, whose times count from the start", async () => {
      await using harness = await openFixture(open, "HLS in MPEG-TS with B-frames");
      harness.site.resources.set("s/0.vtt", resource("text/vtt", webVtt("", blocks)));
      const lines = ["#EXTM3U", "#EXT-X-TARGETDURATION:6", "#EXTINF:6,", "0.vtt", "#EXT-X-ENDLIST"];
      harness.site.resources.set("s/index.m3u8", hls(lines.join("\n")));
      await expectCues(await harness.download({ subtitles: [wanted(listing(harness, "s/index.m3u8", "m3u8"))] }));
    });

    it.each([
      ["srt", srt],
      ["ttml", ttml],
      ["vtt", Buffer.from(`\uFEFF${webVtt("", blocks).toString()}`, "utf16le")],
    ])("of a file: %s", async (ext, bytes) => {
      await using harness = await openFixture(open, "HLS in fMP4 with both tracks in one");
      harness.site.resources.set("words", resource("application/octet-stream", bytes));
      await expectCues(await harness.download({ subtitles: [wanted(listing(harness, "words", ext))] }));
    });

    it.each([
      [
        "vtt",
        Buffer.from(
          `${webVtt("", blocks).toString()}\n00:00:05.000 --> 01:00:00.000\nLast\n\n01:00:00.000 --> 01:00:01.000\nNever\n`,
        ),
      ],
      [
        "ttml",
        Buffer.from(ttml.toString().replace("</div>", '<p begin="5s">Last</p><p begin="3600s">Never</p></div>')),
      ],
    ])("whose cues end with the media at the latest, in the file and beside it: %s", async (ext, bytes) => {
      await using harness = await openFixture(open, "HLS in fMP4 with both tracks in one");
      harness.site.resources.set("words", resource("application/octet-stream", bytes));
      const made = await harness.download({ subtitles: [wanted(listing(harness, "words", ext))] });
      const subRip = await readFile(made.others.find((other) => other.ext === "srt")!.path, "utf8");
      expect(subRip.startsWith(expected)).toBe(true);
      const endMs = Math.round(made.duration! * 1000);
      expect(subRip.slice(expected.length)).toBe(`\n3\n00:00:05,000 --> ${clock(endMs).replace(".", ",")}\nLast\n`);
      expect(cuesOf(made.path, 0)).not.toContain("Never");
    });

    it.each(["wvtt", "stpp"] as const)("of segments of DASH: %s", async (codec) => {
      await using harness = await openFixture(open, "DASH with $Number$ and no timeline");
      const { site } = harness;
      const [path, found] = [...site.resources].find(([each]) => each.endsWith(".mpd"))!;
      const set =
        `<AdaptationSet mimeType="application/mp4" codecs="${codec}" lang="de"><Representation id="t" bandwidth="1">` +
        '<SegmentTemplate media="t-$Number$.m4s" initialization="t-init.mp4" timescale="1" duration="3"/></Representation></AdaptationSet>';
      site.resources.set(path, {
        ...found,
        body: Buffer.from(found.body.toString().replace("</Period>", `${set}</Period>`)),
      });
      site.resources.set("t-init.mp4", resource("video/mp4", textInit(codec)));
      const [one, three] = cueTexts.map(({ text }) => text) as [string, string];
      const segments =
        codec === "wvtt"
          ? [
              [
                { ms: 1000, data: vttSample() },
                { ms: 1500, data: vttSample(one) },
                { ms: 500, data: vttSample() },
              ],
              [
                { ms: 1250, data: vttSample(three) },
                { ms: 1750, data: vttSample() },
              ],
            ]
          : [[{ ms: 3000, data: ttml }], [{ ms: 3000, data: ttml }]];
      for (const [index, samples] of segments.entries()) {
        site.resources.set(`t-${index + 1}.m4s`, resource("video/mp4", textSegment(index * 3000, samples)));
      }
      const text = { ...listing(harness, path, "vtt"), manifest_url: site.url(path), format_id: "text-t" };
      await expectCues(await harness.download({ subtitles: [wanted(text)] }));
    });

    it("to a WebM, as a track of WebVTT", async () => {
      await using harness = await openFixture(open, "DASH in WebM");
      harness.site.resources.set("words.vtt", resource("text/vtt", webVtt("", blocks)));
      await expectCues(await harness.download({ subtitles: [wanted(listing(harness, "words.vtt", "vtt"))] }));
    });

    it("only beside a file that is kept as published, or if nothing is to be embedded", async () => {
      for (const [name, embed] of [
        ["an MP4 with its index in front", "made"],
        ["HLS in MPEG-TS with B-frames", "none"],
      ] as const) {
        await using harness = await openFixture(open, name);
        harness.site.resources.set("words.vtt", resource("text/vtt", webVtt("", blocks)));
        const subtitles = [wanted(listing(harness, "words.vtt", "vtt"))];
        await expectCues(await harness.download({ subtitles, embed }), false);
      }
    });

    it("from the next place if one cannot be read", async () => {
      await using harness = await openFixture(open, "HLS in fMP4 with both tracks in one");
      harness.site.resources.set("words.srt", resource("text/plain", srt));
      harness.site.resources.set("page.vtt", resource("text/html", Buffer.from("<!DOCTYPE html><p>no")));
      const places = ["missing.vtt", "page.vtt", "words.srt"].map((path) => listing(harness, path, "vtt"));
      await expectCues(await harness.download({ subtitles: [wanted(...places)] }));
    });
  });

  it.each([
    ["missing.vtt", "status 404"],
    ["page.vtt", "neither WebVTT nor TTML"],
    ["empty.vtt", "they have no text"],
    ["late.vtt", "their times are all before or after those of the media"],
    ["many.vtt", "more than 200000 cues"],
    ["live.m3u8", "live stream"],
    ["damaged.m3u8", 'the box "trex" ends in the middle of a field'],
  ])("keeps the video and says why if subtitles cannot be had: %s", async (path, reason) => {
    await using harness = await openFixture(open, "HLS in fMP4 with both tracks in one");
    const { resources } = harness.site;
    resources.set("page.vtt", resource("text/html", Buffer.from("<!DOCTYPE html><p>no")));
    resources.set("late.vtt", resource("text/vtt", Buffer.from("WEBVTT\n\n01:00:01.000 --> 01:00:02.000\nx\n")));
    resources.set("empty.vtt", resource("text/vtt", Buffer.from("WEBVTT\n")));
    resources.set(
      "many.vtt",
      resource("text/vtt", Buffer.from(`WEBVTT\n\n${"00:01.000 --> 00:02.000\nx\n\n".repeat(250_000)}`)),
    );
    resources.set("live.m3u8", hls("#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXTINF:3,\n0.vtt\n"));
    // Its last box is shorter than its fields.
    const init = textInit("wvtt").subarray(0, -16);
    for (const type of ["moov", "mvex", "trex"]) {
      const at = init.indexOf(type) - 4;
      init.writeUInt32BE(init.readUInt32BE(at) - 16, at);
    }
    resources.set("damaged.mp4", resource("video/mp4", init));
    const lines = [
      "#EXTM3U",
      "#EXT-X-TARGETDURATION:6",
      '#EXT-X-MAP:URI="damaged.mp4"',
      "#EXTINF:6,",
      "damaged.mp4",
      "#EXT-X-ENDLIST",
    ];
    resources.set("damaged.m3u8", hls(lines.join("\n")));
    const text = listing(harness, path, path.endsWith("m3u8") ? "m3u8" : "vtt");
    const { others, warnings, duration } = await harness.download({ subtitles: [wanted(text)] });
    expect(others).toEqual([]);
    expect(duration).toBeGreaterThan(5);
    expect(warnings).toMatchObject([{ code: "subtitles_missing", message: expect.stringContaining(reason) }]);
    expect(warnings[0]?.message).toContain("the subtitles in de are missing");
  });
}
