import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { makeSharedFolder } from "../folder.ts";
import { openMpd } from "../../src/manifests/dash/dash.ts";
import { readHlsSegments } from "../../src/manifests/hls/segments.ts";
import type { InitSection, Segment, SegmentList } from "../../src/manifests/segments.ts";

const isThere = spawnSync("ffmpeg", ["-version"]).status === 0;
const base = "https://media.example.com/films/42/";
const durationS = 9.5;

/** Listed ranges by file. */
type Ranges = Map<string, Set<string>>;

describe.skipIf(!isThere)("manifests by ffmpeg (if installed) list every byte", () => {
  const root = makeSharedFolder();
  beforeAll(() => {
    const lavfi = (source: string) => ["-f", "lavfi", "-i", `${source}:duration=${durationS}`];
    const codecs = ["-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-c:a", "aac"];
    run([...lavfi("testsrc=size=160x90:rate=25"), ...lavfi("sine=frequency=440"), ...codecs, "source.mp4"]);
  });

  function run(options: string[], folder = root) {
    execFileSync("ffmpeg", ["-v", "error", "-y", ...options], { cwd: folder });
  }

  /** Copies the source by `options` into `name` in a new folder. */
  function write(name: string, options: string[]) {
    const folder = mkdtempSync(join(root, "out-"));
    writeFileSync(join(folder, "key.bin"), "0123456789abcdef");
    writeFileSync(join(folder, "key.txt"), "key.bin\nkey.bin\n");
    run(["-i", "../source.mp4", "-c", "copy", ...options, name], folder);
    return { folder, text: readFileSync(join(folder, name), "utf8"), url: new URL(base + name) };
  }

  const hls = ["-f", "hls", "-hls_time", "2", "-hls_playlist_type", "vod"];
  test.each([
    ["MPEG-TS", []],
    ["MPEG-TS in one file", ["-hls_flags", "single_file"]],
    ["fMP4", ["-hls_segment_type", "fmp4"]],
    ["fMP4 in one file", ["-hls_segment_type", "fmp4", "-hls_flags", "single_file"]],
    ["encrypted MPEG-TS", ["-hls_key_info_file", "key.txt"]],
  ])("HLS, %s", (name, options) => {
    const { folder, text, url } = write("main.m3u8", [...hls, ...options]);
    const list = readHlsSegments(text, url);
    expectCovered(folder, [list]);
    expectDuration(list);
    const keys = new Set(list.segments.map(({ key }) => key?.url));
    expect([...keys]).toEqual([name.startsWith("encrypted") ? `${base}key.bin` : undefined]);
  });

  const dash = ["-f", "dash", "-seg_duration", "2"];
  test.each([
    ["SegmentTimeline", []],
    ["$Number$", ["-use_timeline", "0"]],
    [
      "$Number$ with format tags",
      ["-use_timeline", "0", "-media_seg_name", "$Bandwidth$-$RepresentationID$-$Number%07d$.m4s"],
    ],
    ["$Time$", ["-an", "-media_seg_name", "$RepresentationID$-$Time$.m4s"]],
    ["SegmentList", ["-use_template", "0", "-use_timeline", "0"]],
    ["SegmentList with a SegmentTimeline", ["-use_template", "0"]],
    ["SegmentList of byte ranges", ["-single_file", "1"]],
    ["SegmentBase", ["-single_file", "1", "-global_sidx", "1"]],
  ])("DASH, %s", (_, options) => {
    const { folder, text, url } = write("main.mpd", [...dash, ...options]);
    const { listing, segments } = openMpd(text, url);
    const lists = listing.formats.map(({ format_id }) => segments(format_id));
    expect(lists.length).toBeGreaterThan(0);
    expectCovered(folder, lists);
    for (const list of lists) expectDuration(list);
  });
});

/** Every byte of every media file in `folder` is listed once; what need not exist does not count. */
function expectCovered(folder: string, lists: readonly SegmentList[]): void {
  const ranges: Ranges = new Map();
  for (const { segments, hasEnded } of lists) {
    expect(hasEnded).toBe(true);
    for (const segment of segments) {
      if (segment.isOptional) continue;
      addRange(ranges, folder, segment);
      if (segment.init !== null) addRange(ranges, folder, segment.init);
    }
  }
  const media = readdirSync(folder).filter((name) => !/\.(?:m3u8|mpd|bin|txt)$/.test(name));
  expect([...ranges.keys()].toSorted()).toEqual(media.toSorted());
  for (const [name, listed] of ranges) {
    let end = 0;
    const inOrder = [...listed].map((each) => each.split("+").map(Number) as [number, number]);
    for (const [offset, length] of inOrder.toSorted(([a], [b]) => a - b)) {
      expect(offset, `${name}, after byte ${end}`).toBe(end);
      end = offset + length;
    }
    expect(end, name).toBe(statSync(join(folder, name)).size);
  }
}

function addRange(ranges: Ranges, folder: string, { url, range }: Segment | InitSection): void {
  expect(url.startsWith(base), url).toBe(true);
  const name = url.slice(base.length);
  const { offset, length } = range ?? { offset: 0, length: statSync(join(folder, name)).size };
  ranges.set(name, (ranges.get(name) ?? new Set()).add(`${offset}+${length}`));
}

function expectDuration({ segments }: SegmentList): void {
  const total = segments.reduce((sum, segment) => sum + segment.durationS, 0);
  expect(Math.abs(total - durationS)).toBeLessThan(0.1);
}
