import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { noAdditions } from "../../../src/remux/additions.ts";
import type { MediaRange } from "../../../src/remux/samples.ts";
import { longMedia, longS, makeLongMedia } from "../../media/long-media.ts";
import { hasFfmpeg } from "../../media/probe.ts";
import { hls, resource } from "../../media/resources.ts";
import { probeAll } from "../../remux/additions.ts";
import { audioFaults, expectedCut, presentAll, type Presented, randomRanges } from "../../remux/mp4-cuts.ts";
import { openMedia, type OpenEngine } from "./harness.ts";

const names = Object.keys(longMedia) as (keyof typeof longMedia)[];
const inSegments = new Set<string>([
  "HLS in MPEG-TS",
  "HLS in fMP4",
  "HLS with separate audio",
  "DASH",
  "DASH with a duration of all segments",
  "open GOPs in MPEG-TS",
]);
/** How many ranges each draw has. */
const counts = Array.from({ length: Number(process.env["RANGE_DRAWS"] ?? 2) }, (_, i) => [1, 10][i] ?? 1 + (i % 4));
/** Those of which the server is asked for parts; their indexes and what is fetched with them have this many bytes. */
const inParts = new Set<string>(["a progressive MP4", "a progressive MP4 with its index at the end", "WebM"]);
const indexBytes = 3 * 65_536;
/** Of all media, seconds. */
const groupS = 2;

/** Expects that a file presents the ranges of its source exactly; returns what they have. */
function expectCut({ frames, packets }: Presented, source: Presented, ranges: readonly MediaRange[]) {
  const note = JSON.stringify(ranges);
  const expected = expectedCut(source.frames, ranges, source.frames.at(-1)!.timeS + 0.04);
  const hashes = (all: readonly { hash: string }[]) => all.map(({ hash }) => hash);
  expect(hashes(frames), note).toEqual(hashes(expected.frames));
  const offS = frames.map(({ timeS }, i) => Math.abs(timeS - frames[0]!.timeS - expected.frames[i]!.timeS));
  expect(Math.max(...offS), note).toBeLessThan(0.002);
  expect(audioFaults(packets, source.packets, expected), note).toEqual([]);
  return expected;
}

/** Parts of the media in one file. */
export function describeRanges(open: OpenEngine): void {
  describe.skipIf(!hasFfmpeg)("makes a file of exact ranges", () => {
    it.each(names)("of %s", async (name) => {
      const media = await makeLongMedia(name);
      await using harness = await openMedia(open, media);
      const whole = await harness.download();
      const allBytes = harness.site.sent;
      const parts = [];
      for (const [seed, count] of counts.entries()) {
        const ranges = randomRanges(seed, count, longS);
        const [before, asked] = [harness.site.sent, harness.site.asked.length];
        const made = await harness.download({ ranges, folder: await harness.newFolder() });
        const paths = harness.site.asked.slice(asked).map(({ path }) => path);
        parts.push({ ranges, made, sent: harness.site.sent - before, paths });
      }
      const [source, ...presented] = await presentAll(whole.path, ...parts.map(({ made }) => made.path));
      for (const [i, { ranges, made, sent, paths }] of parts.entries()) {
        const note = JSON.stringify(ranges);
        const expected = expectCut(presented[i]!, source!, ranges);
        expect([made.ext, made.warnings], note).toEqual(["mp4", []]);
        expect(made.duration, note).toBeCloseTo(expected.durationS, 1);
        const neededS = expected.durationS + 2 * groupS * ranges.length + groupS;
        if (inParts.has(name)) {
          const fileBytes = media.resources.get(media.entry)!.body.length;
          const mediaBytes = Math.min(1, (1.25 * neededS) / longS) * fileBytes;
          expect(sent, note).toBeLessThan(mediaBytes + indexBytes);
        }
        if (!inSegments.has(name)) continue;
        expect(sent / allBytes, note).toBeLessThan((1.25 * neededS) / longS);
        const segments = paths.filter((path) => /\d\.(?:ts|m4s)$/.test(path) && !path.startsWith("init"));
        expect(new Set(segments).size, note).toBe(segments.length);
        // Of each track, the first one, and what the ranges last with two groups of pictures each.
        const mostOf = ranges.reduce(
          (sum, { startS, endS: stopS }) => sum + Math.ceil((stopS - startS) / groupS) + 2,
          1,
        );
        for (const [track, own] of Map.groupBy(segments, (path) => path.replace(/\d+\.\w+$/, ""))) {
          expect(own.length, `${track}: ${note}`).toBeLessThanOrEqual(mostOf);
        }
        const listed = paths.map((path) => harness.site.resources.get(path)?.body.length ?? 0);
        expect(sent, note).toBeLessThanOrEqual(listed.reduce((sum, size) => sum + size, 0));
      }
    });

    it("of HLS with a discontinuity, of which it fetches where a timeline ends and the next one starts", async () => {
      const { resources, entry } = await makeLongMedia("HLS in MPEG-TS");
      const list = resources.get(entry)!.body.toString();
      const segments = list.slice(list.indexOf("#EXTINF"), list.indexOf("#EXT-X-ENDLIST"));
      const parts = [...resources].filter(([path]) => path.endsWith(".ts"));
      for (const [path, media] of parts) resources.set(`again-${path}`, media);
      const again = segments.replaceAll(/^s/gm, "again-s");
      resources.set(entry, hls(list.replace("#EXT-X-ENDLIST", `#EXT-X-DISCONTINUITY\n${again}#EXT-X-ENDLIST`)));
      await using harness = await openMedia(open, { resources, entry });
      const whole = await harness.download();
      const cuts = [];
      for (const [ranges, asked] of [
        [[{ startS: 25.3, endS: 26.9 }], ["s000", "s009", "again-s000", "again-s002", "again-s003"]],
        [[{ startS: 5, endS: 5.5 }], ["s000", "s002"]],
      ] as const) {
        const before = harness.site.asked.length;
        const made = await harness.download({ ranges, folder: await harness.newFolder() });
        const paths = harness.site.asked.slice(before).map(({ path }) => path);
        expect(paths.filter((path) => path.endsWith(".ts")).toSorted()).toEqual(
          asked.map((path) => `${path}.ts`).toSorted(),
        );
        expect(made.warnings).toEqual([]);
        cuts.push({ ranges, path: made.path });
      }
      const [source, ...presented] = await presentAll(whole.path, ...cuts.map(({ path }) => path));
      for (const [i, { ranges }] of cuts.entries()) expectCut(presented[i]!, source!, ranges);
    });

    describe("of a progressive MP4 of which parts are fetched", () => {
      const ranges = [
        { startS: 6.2, endS: 7 },
        { startS: 12, endS: 13.5 },
      ];
      const name = "a progressive MP4 with its index at the end";

      it("goes on with them after it was interrupted", async () => {
        await using harness = await openMedia(open, await makeLongMedia(name));
        const { site } = harness;
        const whole = await harness.download({ ranges, folder: await harness.newFolder() });
        const before = site.asked.length;
        const stop = new AbortController();
        site.answer("index.mp4", (_response, serve) => (site.asked.length < before + 3 ? serve() : stop.abort()));
        await expect(harness.download({ ranges }, stop.signal)).rejects.toMatchObject({ name: "AbortError" });
        site.answer("index.mp4", (_response, serve) => serve());
        const made = await harness.download({ ranges });
        expect(made.sha256).toBe(whole.sha256);
        // Only what it did not get is asked for again.
        const asked = site.asked.slice(before).map(({ range }) => range);
        expect(new Set(asked).size).toBe(asked.length - 1);
      });

      it.each<[string, { sendsParts?: boolean; etag?: string; total?: number }]>([
        ["the server sends no parts", { sendsParts: false }],
        ["nothing shows that its parts belong together", {}],
        ["the server states a length that no file has", { etag: '"1"', total: 2 ** 50 }],
      ])("is right although %s: all is fetched", async (_why, { sendsParts = true, etag, total }) => {
        const media = await makeLongMedia(name);
        await using harness = await openMedia(open, media);
        const right = await harness.download({ ranges, folder: await harness.newFolder() });
        const { type, body } = media.resources.get("index.mp4")!;
        harness.site.answer("index.mp4", (response, _serve, { headers }) => {
          const [, first, last] = (sendsParts && /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? "")) || [];
          response.setHeader("content-type", type);
          if (etag !== undefined) response.setHeader("etag", etag);
          if (first === undefined) return response.writeHead(200, { "content-length": body.length }).end(body);
          const part = body.subarray(Number(first), Number(last) + 1);
          const range = `bytes ${first}-${last}/${total ?? body.length}`;
          return response.writeHead(206, { "content-range": range }).end(part);
        });
        const made = await harness.download({ ranges });
        expect([made.sha256, made.warnings]).toEqual([right.sha256, []]);
      });

      it("has nothing of a file that was there before the server changed it", async () => {
        const [before, after] = [await makeLongMedia(name), await makeLongMedia("a progressive MP4")];
        await using harness = await openMedia(open, before);
        const { site } = harness;
        const first = site.asked.length;
        site.answer("index.mp4", (_response, serve) => {
          if (site.asked.length === first + 2) site.resources.set("index.mp4", after.resources.get("index.mp4")!);
          return serve();
        });
        const made = await harness.download({ ranges, folder: await harness.newFolder() });
        const right = await harness.download({ ranges });
        expect(made.sha256).toBe(right.sha256);
      });
    });

    it("whose ends are those of the media", async () => {
      await using harness = await openMedia(open, await makeLongMedia("HLS in fMP4"));
      const whole = await harness.download();
      const made = await harness.download({
        ranges: [{ startS: 15.02, endS: Infinity }],
        folder: await harness.newFolder(),
      });
      expect(made.duration).toBeCloseTo(longS - 15, 1);
      const [all, part] = await presentAll(whole.path, made.path);
      expect(part!.frames.at(-1)?.hash).toBe(all!.frames.at(-1)?.hash);
      const late = await harness.download({
        ranges: [
          { startS: 19, endS: 500 },
          { startS: 600, endS: 700 },
        ],
        folder: await harness.newFolder(),
      });
      expect(late.duration).toBeCloseTo(1, 1);
      const beyond = harness.download({ ranges: [{ startS: 21, endS: 22 }], folder: await harness.newFolder() });
      await expect(beyond).rejects.toMatchObject({
        code: "format_unavailable",
        message: expect.stringMatching(/^the range is not within the media, which last 20\.0\d\d s$/),
      });
    });

    it("with audio alone", async () => {
      await using harness = await openMedia(open, await makeLongMedia("HLS with separate audio"));
      const { audio } = harness.job;
      const made = await harness.download({
        format: audio!,
        audio: null,
        ranges: [
          { startS: 3.3, endS: 4.4 },
          { startS: 10, endS: 11.5 },
        ],
      });
      expect([made.ext, made.warnings]).toEqual(["m4a", []]);
      expect(made.duration).toBeCloseTo(2.6, 2);
    });

    it("with chapters and subtitles that are cut and moved along", async () => {
      const media = await makeLongMedia("HLS in fMP4");
      media.resources.set(
        "de.vtt",
        resource("text/vtt", "WEBVTT\n\n00:01.000 --> 00:06.500\none\n\n00:09.000 --> 00:12.000\ntwo\n"),
      );
      await using harness = await openMedia(open, media);
      const chapters = [
        { startS: 0, endS: Infinity, title: "A" },
        { startS: 6, endS: Infinity, title: "B" },
        { startS: 10, endS: Infinity, title: "C" },
      ];
      const made = await harness.download({
        ranges: [
          { startS: 4, endS: 8 },
          { startS: 11, endS: 13 },
        ],
        description: { tags: { ...noAdditions.tags, title: "T" }, name: null, chapters, covers: [] },
        subtitles: [
          {
            language: "de",
            name: "Deutsch",
            role: "subtitles",
            automatic: false,
            listings: [{ url: harness.site.url("de.vtt"), ext: "vtt", name: null }],
          },
        ],
      });
      expect(made.warnings).toEqual([]);
      const shown = probeAll(made.path).chapters.map(({ start_time, end_time, tags }) => {
        return [tags.title, Number(start_time), Number(end_time)];
      });
      expect(shown).toEqual([
        ["A", 0, 2],
        ["B", 2, 4],
        ["C", 4, 6],
      ]);
      const vtt = made.others.find(({ ext }) => ext === "vtt")!;
      expect(await readFile(vtt.path, "utf8")).toBe(
        "WEBVTT\n\n00:00:00.000 --> 00:00:02.500\none\n\n00:00:04.000 --> 00:00:05.000\ntwo\n",
      );
    });
  });
}
