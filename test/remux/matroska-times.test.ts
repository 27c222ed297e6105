import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { noAdditions } from "../../src/remux/additions.ts";
import { chosenBlocks, readEnds, selectAll } from "../../src/remux/matroska/blocks.ts";
import { copyMatroska } from "../../src/remux/matroska/copy.ts";
import { ids } from "../../src/remux/matroska/elements.ts";
import { element, text, unsigned } from "../../src/remux/matroska/write-elements.ts";
import { MatroskaWriter } from "../../src/remux/matroska/writer.ts";
import { makeSharedFolder } from "../folder.ts";

const folder = makeSharedFolder();
const open: number[] = [];
afterAll(() => open.forEach(closeSync));

interface GivenBlock {
  ticks: number;
  duration?: number;
  discardNs?: number;
}

/** Opens a new file in the folder. */
function create(): number {
  const fd = openSync(join(folder, `${open.length}.mkv`), "w+");
  open.push(fd);
  return fd;
}

/** Returns a file with one audio track of these blocks. */
function audioFile(timestampScale: number, blocks: readonly GivenBlock[]) {
  const codec = element(ids.codecId, text("A_OPUS"));
  const type = element(ids.trackType, unsigned(2));
  const entry = element(ids.trackEntry, element(ids.trackNumber, unsigned(1)), type, codec);
  const fd = create();
  const writer = new MatroskaWriter({
    fd,
    docType: "matroska",
    timestampScale,
    entries: [entry],
    mainTrack: 1,
    title: null,
    others: () => [],
  });
  for (const { ticks, duration, discardNs } of blocks) {
    const others = [
      ...(duration === undefined ? [] : [element(ids.blockDuration, unsigned(duration))]),
      ...(discardNs === undefined ? [] : [element(ids.discardPadding, unsigned(discardNs))]),
    ];
    const payload = Buffer.from("frame");
    const times = { ticks, endTicks: ticks + (duration ?? 0) };
    writer.add({ track: 1, ...times, isKey: true, flags: 0, payload, others: Buffer.concat(others) });
  }
  writer.finish();
  return selectAll(fd)!;
}

describe("the end of a Matroska track", () => {
  const before = [0, 60].map((ticks) => ({ ticks, duration: 60 }));
  const endOf = (last: GivenBlock) => readEnds(audioFile(1e6, [...before, last])).get(1);

  for (const [name, last, isCounted] of [
    ["counts in the duration of its last block", { ticks: 120, duration: 60, discardNs: 43e6 }, true],
    ["is left out of the duration of its last block", { ticks: 120, duration: 17, discardNs: 43e6 }, false],
    ["is there without a duration", { ticks: 120, discardNs: 43e6 }, true],
  ] as const) {
    it(`has padding that ${name}`, () => {
      expect(endOf(last)).toEqual({ paddingNs: 43e6, isCounted });
    });
  }

  it("has padding that counts if the duration of its last block comes before that, where it is not read", () => {
    const { fd } = audioFile(1e6, [...before, { ticks: 120, duration: 17, discardNs: 43e6 }]);
    const bytes = readFileSync(join(folder, `${open.indexOf(fd)}.mkv`));
    const end = bytes.lastIndexOf("frame") + 5;
    const start = bytes.lastIndexOf(0xa1, end);
    const stated = [element(ids.blockDuration, unsigned(17)), element(ids.discardPadding, unsigned(43e6))];
    const length = Buffer.concat(stated).length;
    const moved = [bytes.subarray(end, end + length), bytes.subarray(start, end)];
    writeSync(fd, Buffer.concat(moved), 0, end + length - start, start);
    expect(readEnds(selectAll(fd)!).get(1)).toEqual({ paddingNs: 43e6, isCounted: true });
  });

  it("has no padding that is not stated for its last block", () => {
    expect(endOf({ ticks: 120, duration: 60 })).toMatchObject({ paddingNs: 0 });
    const early = audioFile(1e6, [{ ticks: 0, duration: 60, discardNs: 43e6 }, ...before.slice(1)]);
    expect(readEnds(early).get(1)).toMatchObject({ paddingNs: 0 });
  });
});

it("copies tracks whose files count other ticks with their times, in the longer ones", () => {
  const fine = audioFile(20_833, [
    { ticks: 0, duration: 960 },
    { ticks: 960, duration: 960, discardNs: 5e6 },
  ]);
  const coarse = audioFile(1e6, [
    { ticks: 0, duration: 40 },
    { ticks: 40, duration: 40 },
  ]);
  const fd = create();
  for (const _ of copyMatroska([fine, coarse], { fd, docType: "matroska", additions: noAdditions }));
  const copy = selectAll(fd)!;
  const blocks = [...chosenBlocks(copy)].map(({ track, ticks, duration, discardNs }) => [
    track,
    ticks,
    duration,
    discardNs,
  ]);
  expect(copy.header.timestampScale).toBe(1e6);
  expect(blocks).toEqual([
    [1, 0, 20, 0],
    [2, 0, 40, 0],
    [1, 20, 20, 5e6],
    [2, 40, 40, 0],
  ]);
});
