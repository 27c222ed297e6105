import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { noAdditions } from "../../src/remux/additions.ts";
import { type ChosenTracks, growingBlocks, selectAll } from "../../src/remux/matroska/blocks.ts";
import { readCues } from "../../src/remux/matroska/clusters.ts";
import { copyMatroska } from "../../src/remux/matroska/copy.ts";
import {
  childrenOf,
  elementAt,
  elementsIn,
  findElement,
  findUnsigned,
  ids,
} from "../../src/remux/matroska/elements.ts";
import { element, text, unsigned } from "../../src/remux/matroska/write-elements.ts";
import { MatroskaWriter } from "../../src/remux/matroska/writer.ts";
import { makeSharedFolder } from "../folder.ts";

const folder = makeSharedFolder();
const open: number[] = [];
afterAll(() => open.forEach(closeSync));

function create(): number {
  const fd = openSync(join(folder, `${open.length}.mkv`), "w+");
  open.push(fd);
  return fd;
}

const [video, audio] = [1, 2];

interface GivenBlock {
  track: number;
  ticks: number;
  isKey?: boolean;
  bytes?: number;
}

/** Returns a file with tracks of these types and these blocks. */
function fileOf(types: readonly number[], blocks: readonly GivenBlock[]): ChosenTracks {
  const entries = types.map((type, index) => {
    const number = element(ids.trackNumber, unsigned(index + 1));
    return element(ids.trackEntry, number, element(ids.trackType, unsigned(type)), element(ids.codecId, text("X")));
  });
  const fd = create();
  const options = { docType: "matroska", timestampScale: 1e6, entries, mainTrack: 1, title: null } as const;
  const writer = new MatroskaWriter({ fd, ...options, others: () => [] });
  for (const { track, ticks, isKey = true, bytes = 5 } of blocks) {
    const flags = isKey ? 0x80 : 0;
    writer.add({ track, ticks, endTicks: ticks, isKey, flags, payload: Buffer.alloc(bytes), others: null });
  }
  writer.finish();
  return selectAll(fd)!;
}

function copyOf(file: ChosenTracks): ChosenTracks {
  const fd = create();
  for (const _ of copyMatroska([file], { fd, docType: "matroska", additions: noAdditions }));
  return selectAll(fd)!;
}

/** Returns the times and tracks of what the index of a file lists. */
function listedIn({ source, header: { segment } }: ChosenTracks): (readonly [number, number])[] {
  return readCues(source, findElement(source, segment, ids.cues)!, segment.body).map(
    ({ ticks, track }) => [ticks, track] as const,
  );
}

it("a copy lists key frames of its video, and no pictures between them that a long cluster begins with", () => {
  const seconds = Array.from({ length: 121 }, (_, second) => second);
  const pictures = seconds.map((second) => ({ track: 2, ticks: second * 1000, isKey: second % 60 === 0 }));
  const sounds = seconds.map((second) => ({ track: 1, ticks: second * 1000 }));
  const blocks = [...sounds, ...pictures].toSorted((a, b) => a.ticks - b.ticks || a.track - b.track);
  expect(listedIn(copyOf(fileOf([audio, video], blocks)))).toEqual([0, 60_000, 120_000].map((ticks) => [ticks, 2]));
});

it("a copy lists a key frame soon after a long cluster was continued in another one", () => {
  const ticks = [0, 20_000, 40_000, 40_500];
  const pictures = ticks.map((at) => ({ track: 1, ticks: at, isKey: at === 0 || at === 40_500 }));
  expect(listedIn(copyOf(fileOf([video], pictures)))).toEqual([0, 40_500].map((at) => [at, 1]));
});

it("a copy of audio alone lists a block of it each second", () => {
  const sounds = Array.from({ length: 30 }, (_, index) => ({ track: 1, ticks: index * 100 }));
  expect(listedIn(copyOf(fileOf([audio], sounds)))).toEqual([0, 1000, 2000].map((ticks) => [ticks, 1]));
});

it("the blocks of a file that grows are looked for in bounded parts", () => {
  const mebibytes = Array.from({ length: 40 }, (_, second) => ({ track: 1, ticks: second * 1000, bytes: 1 << 20 }));
  const blocks = growingBlocks({ ...fileOf([video], mebibytes), isComplete: () => false });
  const found = Array.from({ length: 40 + 4 }, () => blocks.next().value);
  const pauses = found.flatMap((each, at) => (each !== undefined && "file" in each ? [at] : []));
  expect(pauses).toEqual([8, 17, 26, 35]);
});

it("a file whose blocks go back far before its first ones is refused as damaged", () => {
  const file = fileOf(
    [audio],
    [100_000, 0].map((ticks) => ({ track: 1, ticks })),
  );
  expect(() => copyOf(file)).toThrow(expect.objectContaining({ code: "upstream_invalid" }));
});

it.each([
  ["before its media if there is room", 2_000],
  ["after them if there is none", 100],
])("a file has what is said of it at the end %s, and its SeekHead says where", (_place, roomBytes) => {
  const fd = create();
  const entries = [element(ids.trackEntry, element(ids.trackNumber, unsigned(1)))];
  const options = { docType: "webm", timestampScale: 1e6, entries, mainTrack: 1, title: null } as const;
  const writer = new MatroskaWriter({ fd, ...options, others: () => [], roomBytes });
  const block = {
    track: 1,
    ticks: 0,
    endTicks: 10,
    isKey: true,
    flags: 0x80,
    payload: Buffer.from("frame"),
    others: null,
  };
  writer.add(block);
  writer.finish({ title: "Title", others: () => [element(ids.tags, new Uint8Array(1_000))] });
  const { source, header } = selectAll(fd)!;
  const { segment } = header;
  const order = [...elementsIn(source, segment)].map(({ id }) => id).filter((id) => id !== ids.void);
  const isBefore = order.indexOf(ids.tags) < order.indexOf(ids.cluster);
  expect(isBefore).toBe(roomBytes > 1_000);
  const sought = [...childrenOf(source, findElement(source, segment, ids.seekHead)!, ids.seek)].map((seek) => {
    const at = segment.body + findUnsigned(source, seek, ids.seekPosition)!;
    return [findUnsigned(source, seek, ids.seekId), elementAt(source, at, source.size).id];
  });
  expect(new Set(sought.map(([id]) => id))).toEqual(new Set([ids.info, ids.tracks, ids.tags, ids.cues]));
  for (const [id, found] of sought) expect(found).toBe(id);
});

it("the index of a file of 36 hours lists all its seconds", () => {
  const blocks = Array.from({ length: 36 * 3_600 }, (_, second) => ({ track: 1, ticks: second * 1_000, bytes: 1 }));
  expect(listedIn(fileOf([audio], blocks))).toHaveLength(blocks.length);
});
