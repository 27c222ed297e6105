import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "vitest";
import { readMediaFixtures } from "../media/media-fixtures.ts";
import { layFiles, mediaPlaylist } from "../media/hls.ts";
import { readRendition } from "../media/rendition.ts";
import { hls, merge } from "../media/resources.ts";
import type { FaultCode, SingleFault } from "./disk-faults.ts";
import { openDiskHarness, type TestedMedium } from "./disk-harness.ts";

interface Walk {
  name: string;
  medium: TestedMedium;
  /** Lower bound of the calls of one download. */
  leastCalls: number;
}

const { init, pieces } = readRendition("high.m2t");
const { lines, resources } = layFiles("ts", { init, pieces: pieces.slice(0, 2) }, "ts");
const playlist = hls(mediaPlaylist(lines));
const stream = {
  entry: "index.m3u8",
  resources: merge(resources, new Map([["index.m3u8", playlist]])),
};
const fixtures = readMediaFixtures();
const file = fixtures.get("an MP4 with its index in front")!;
const tracks = fixtures.get("DASH in WebM")!;

const walks: Walk[] = [
  { name: "tracks that are merged", medium: tracks, leastCalls: 100 },
  { name: "a stream", medium: stream, leastCalls: 50 },
  { name: "a file", medium: file, leastCalls: 35 },
];

/** A full disk fails a task, all others are retried. */
const codes: FaultCode[] = ["ENOSPC", "EIO", "EPIPE"];

/** The kinds of calls that have failed in one of the walks. */
const failed = new Set<string>();

/** The first or the last call of each kind, in one of the walks that make such calls. With EVERY_DISK_CALL=1 all calls fail, in each walk. */
function faultsOf(calls: ReadonlyMap<string, number>): SingleFault[] {
  const isEvery = process.env["EVERY_DISK_CALL"] === "1";
  return [...calls].flatMap(([kind, count]) => {
    if (failed.has(kind) && !isEvery) return [];
    failed.add(kind);
    const numbers = isEvery ? Array.from({ length: count }, (_, i) => i + 1) : [kind.length % 2 === 0 ? 1 : count];
    return numbers.map((nth, i) => ({ kind, nth, code: codeOf(kind.length + i) }));
  });
}

const codeOf = (n: number): FaultCode => codes[n % codes.length]!;

describe.concurrent("a disk that fails in one call, or in all from one on,", () => {
  it.for(walks)(
    "loses no task, leaves no file and leaks no handle of a download of $name",
    { timeout: 1_800_000 },
    async (walk, { expect, onTestFinished }) => {
      const dataDir = mkdtempSync(join(tmpdir(), "unreel-disk-faults-"));
      onTestFinished(() => rmSync(dataDir, { recursive: true }));
      await using harness = await openDiskHarness(dataDir, walk.medium);
      const isEnough = () => harness.problems().length >= 5;
      const unreached: string[] = [];
      const faults = faultsOf(harness.calls);
      for (const fault of faults) {
        if (!isEnough() && !(await harness.failOnce(fault))) unreached.push(fault.kind);
      }
      const count = [...harness.calls.values()].reduce((sum, each) => sum + each, 0);
      const sixth = Math.ceil(count / 6);
      for (let from = 1; from < count && !isEnough(); from += sixth)
        await harness.failFrom({ from, code: codeOf(from) });
      expect(harness.problems()).toEqual([]);
      expect(count).toBeGreaterThan(walk.leastCalls);
      // What a download does after its end may come too late.
      expect(unreached.length, unreached.join(", ")).toBeLessThan(faults.length / 20);
    },
  );
});
