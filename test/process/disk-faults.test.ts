import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "vitest";
import { readExhibits } from "../media/media-fixtures.ts";
import { layFiles, mediaPlaylist } from "../media/hls.ts";
import { readRendition } from "../media/rendition.ts";
import { hls, merge } from "../media/resources.ts";
import type { Code } from "./disk-faults.ts";
import { type DiskTrialMedium, openDiskTrial } from "./disk-trial.ts";

interface Disturbed {
  name: string;
  medium: DiskTrialMedium;
  /** Of the first call, the second … and around again. */
  codes: Code[];
  /** A download of it has more calls than these. */
  calls: number;
  /** Every which call fails; 1: each. */
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
const codes: Code[] = ["EIO", "ENOSPC", "EPIPE"];

const downloads: Disturbed[] = [
  { name: "tracks that are merged (all three)", medium: tracks, codes, calls: 100, step: 2 },
  ...codes.map((code) => ({
    name: `a stream (${code})`,
    medium: stream,
    codes: [code],
    calls: 50,
    step: 1,
  })),
  ...codes.map((code) => ({
    name: `a file (${code})`,
    medium: file,
    codes: [code],
    calls: 35,
    step: 1,
  })),
];

describe.concurrent("a disk that fails, in one call or in all from one on,", () => {
  it.for(downloads)(
    "costs a download of $name no task, no file and no handle",
    { timeout: 120_000 },
    async (disturbed, { expect, onTestFinished }) => {
      const dataDir = mkdtempSync(join(tmpdir(), "unreel-disk-faults-"));
      onTestFinished(() => rmSync(dataDir, { recursive: true }));
      await using trial = await openDiskTrial(dataDir, disturbed.medium);
      const faultAt = (n: number) => ({ n, code: disturbed.codes[n % disturbed.codes.length]! });
      const isEnough = () => trial.findings().length >= 5;
      let n = 1;
      while ((await trial.failOnce(faultAt(n))) && !isEnough()) n += disturbed.step;
      const tenth = Math.ceil(n / 10);
      for (let from = 1; from < n && !isEnough(); from += tenth)
        await trial.failFrom(faultAt(from));
      expect(trial.findings()).toEqual([]);
      expect(n).toBeGreaterThan(disturbed.calls);
    },
  );
});
