import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "vitest";
import { readExhibits } from "../media/media-fixtures.ts";
import { layFiles, mediaPlaylist } from "../media/hls.ts";
import { readRendition } from "../media/rendition.ts";
import { hls, merge } from "../media/resources.ts";
import type { FaultCode } from "./disk-faults.ts";
import { openDiskHarness, type TestedMedium } from "./disk-harness.ts";

interface Walk {
  name: string;
  medium: TestedMedium;
  /** Error codes that the failing calls have in turn. */
  codes: FaultCode[];
  /** Lower bound of the calls of one download. */
  calls: number;
  /** The call that fails first, and how many later the next one does. */
  first: number;
  step: number;
}

const { init, pieces } = readRendition("high.m2t");
const { lines, resources } = layFiles("ts", { init, pieces: pieces.slice(0, 2) }, "ts");
const playlist = hls(mediaPlaylist(lines));
const stream = {
  entry: "index.m3u8",
  resources: merge(resources, new Map([["index.m3u8", playlist]])),
};
const exhibits = readExhibits();
const file = exhibits.get("an MP4 with its index in front")!;
const tracks = exhibits.get("DASH in WebM")!;
const all: FaultCode[] = ["EIO", "ENOSPC", "EPIPE"];
/** A full disk fails a task, all others are retried: neighbouring calls, mostly of one kind, have them in turn. */
const kinds: FaultCode[][] = [["ENOSPC"], ["EIO", "EPIPE"]];

const walks: Walk[] = [
  // Every second call, in two walks at a time.
  ...[1, 3].map((first) => ({
    name: `tracks that are merged (${all.join(", ")}, from ${first})`,
    medium: tracks,
    codes: all,
    calls: 100,
    first,
    step: 4,
  })),
  ...kinds.map((codes) => ({
    name: `a stream (${codes.join(", ")})`,
    medium: stream,
    codes,
    calls: 50,
    first: 1,
    step: 1,
  })),
  ...kinds.map((codes) => ({
    name: `a file (${codes.join(", ")})`,
    medium: file,
    codes,
    calls: 35,
    first: 1,
    step: 1,
  })),
];

describe.concurrent("a disk that fails in one call, or in all from one on,", () => {
  it.for(walks)(
    "loses no task, leaves no file and leaks no handle of a download of $name",
    { timeout: 600_000 },
    async (walk, { expect, onTestFinished }) => {
      const dataDir = mkdtempSync(join(tmpdir(), "unreel-disk-faults-"));
      onTestFinished(() => rmSync(dataDir, { recursive: true }));
      await using harness = await openDiskHarness(dataDir, walk.medium);
      const faultAt = (n: number) => ({ n, code: walk.codes[n % walk.codes.length]! });
      const isEnough = () => harness.problems().length >= 5;
      let n = walk.first;
      while ((await harness.failOnce(faultAt(n))) && !isEnough()) n += walk.step;
      const tenth = Math.ceil(n / 10);
      for (let from = walk.first; from < n && !isEnough(); from += tenth)
        await harness.failFrom(faultAt(from));
      expect(harness.problems()).toEqual([]);
      expect(n).toBeGreaterThan(walk.calls);
    },
  );
});
