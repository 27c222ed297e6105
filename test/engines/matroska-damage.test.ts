import { afterAll, describe, expect, it } from "vitest";
import type { DownloadJob } from "../../src/engines/engine.ts";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { ids } from "../../src/remux/matroska/elements.ts";
import { readBlocks } from "../../src/remux/matroska/blocks.ts";
import { readHeader } from "../../src/remux/matroska/tracks.ts";
import { numbersIn } from "../../src/remux/mp4/read/number-source.ts";
import { element, text, unsigned } from "../../src/remux/matroska/write-elements.ts";
import { openEntry } from "../contracts/engine/harness.ts";
import { readMedium, readWebmRendition } from "../media/rendition.ts";
import { resource } from "../media/resources.ts";

const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
afterAll(() => engine.close());

/** Its clusters have checksums; the index follows the last one. */
const film = readMedium("h264-aac.mkv");
const rendition = readWebmRendition("h264-aac.mkv");
const clusters = rendition.pieces.map(({ data }) => data);
const last = clusters.pop()!;
const index = last.subarray(last.indexOf(Buffer.from(ids.cues.toString(16), "hex")));
clusters.push(last.subarray(0, last.length - index.length));
const segmentSizeAt = 44;
const segmentStart = 52;

/** Returns a file of these parts, which states its size, or not. */
function fileOf(parts: readonly Uint8Array[], isSizeStated: boolean): Buffer {
  const bytes = Buffer.concat([rendition.init!, ...parts]);
  bytes.fill(0xff, segmentSizeAt + 1, segmentStart);
  if (isSizeStated) bytes.writeUIntBE(bytes.length - segmentStart, segmentStart - 6, 6);
  if (isSizeStated) bytes.writeUInt16BE(0x0100, segmentSizeAt);
  return bytes;
}

/** Returns a cluster that does not state its size, and has no checksum. */
function sizeless(cluster: Buffer): Buffer {
  const head = Buffer.from("1f43b675ff", "hex");
  const checksum = cluster.indexOf(Buffer.from("bf84", "hex"));
  return Buffer.concat([head, cluster.subarray(checksum + 6)]);
}

/** The film with a cluster for each block. */
const tiny = [...readBlocks(numbersIn(film), readHeader(numbersIn(film))!)].map(
  ({ track, ticks, flags, body, end }) => {
    const block = Buffer.concat([Buffer.from([0x80 | track, 0, 0, flags]), film.subarray(body, end)]);
    return {
      ticks,
      bytes: element(ids.cluster, element(ids.timestamp, unsigned(ticks)), element(ids.simpleBlock, block)),
    };
  },
);
const startsOf = (some: typeof tiny) => some.map(({ ticks }) => ticks);

async function warningsOf(bytes: Buffer, change: Partial<DownloadJob> = {}): Promise<string[]> {
  await using harness = await openEntry(
    () => engine,
    new Map([["film.mkv", resource("video/x-matroska", bytes)]]),
    "film.mkv",
  );
  const { warnings } = await harness.download(change);
  return warnings.map(({ code, message }) => `${code}: ${message}`);
}

const damaged = (places: string) => [`frames_missing: the file is damaged or cut off at ${places}`];
const zeros = Buffer.alloc(500);
const junk = Buffer.alloc(500, "no element begins like this");

describe("a Matroska file that is kept as published", () => {
  const [first, second, ...rest] = clusters as [Buffer, Buffer, ...Buffer[]];

  for (const isSizeStated of [true, false]) {
    const name = isSizeStated ? "states its size" : "does not state its size";
    const warnings = (...parts: Uint8Array[]) => warningsOf(fileOf(parts, isSizeStated));

    it(`has no warning for what is allowed if it ${name}`, async () => {
      const unknown = element(0x1a2b3c4d, text("for programs of another time"));
      const around = [element(ids.void, new Uint8Array(300)), element(ids.tags, new Uint8Array()), unknown];
      expect(await warnings(...clusters, index)).toEqual([]);
      expect(await warnings(...clusters)).toEqual([]);
      expect(await warnings(...around, first, ...around, second, ...rest, index, ...around)).toEqual([]);
      expect(await warnings(...clusters.map(sizeless), index)).toEqual([]);
    });

    it(`has a warning if it ${name} and bytes are within it that are no element`, async () => {
      for (const bytes of [zeros, junk, zeros.subarray(0, 1), junk.subarray(0, 9)]) {
        expect(await warnings(first, bytes, second, ...rest, index)).toEqual(damaged("1 place"));
        expect(await warnings(first, bytes, second, bytes, ...rest, bytes)).toEqual(damaged("3 places"));
        expect(await warnings(...clusters.map(sizeless), bytes)).toEqual(damaged("1 place"));
      }
    });

    it(`has a warning if it ${name} and a part of its clusters is missing, or overwritten`, async () => {
      const short = second.subarray(0, -100);
      expect(await warnings(first, short, ...rest, index)).toEqual(damaged("1 place"));
      expect(await warnings(...clusters.slice(0, -1), clusters.at(-1)!.subarray(0, -100))).toEqual(damaged("1 place"));
      expect(await warnings(...clusters.map(sizeless), sizeless(second).subarray(0, -100))).toEqual(damaged("1 place"));
      const blank = Buffer.from(second).fill(0, 1000, 3000);
      expect(await warnings(first, blank, ...rest, index)).toEqual(damaged("1 place"));
      expect(await warnings(first, sizeless(blank), ...rest, index)).toEqual(damaged("1 place"));
    });

    it(`has a warning if it ${name} and clusters are out of order, or one does not say its time`, async () => {
      expect(await warnings(second, first, ...rest, index)).toEqual(damaged("1 place"));
      expect(await warnings(...[...rest, first, second].map(sizeless))).toEqual(damaged("1 place"));
      const timeless = sizeless(second);
      timeless[timeless.indexOf(ids.timestamp, 5)] = ids.void;
      expect(await warnings(first, timeless, ...rest)).toEqual(damaged("1 place"));
    });

    it(`has no warning if it ${name} and short clusters begin earlier than the ones before, as pictures are reordered`, async () => {
      expect(startsOf(tiny).some((start, i) => start < (startsOf(tiny)[i - 1] ?? 0))).toBe(true);
      expect(await warnings(...tiny.map(({ bytes }) => bytes))).toEqual([]);
      const [moved] = tiny;
      expect(await warnings(...[...tiny.slice(1), moved!].map(({ bytes }) => bytes))).toEqual(damaged("1 place"));
    });

    it(`has a warning if it ${name} and a cluster has other bytes than its checksum`, async () => {
      const changed = Buffer.from(second);
      changed[changed.length - 1]! ^= 1;
      expect(await warnings(first, changed, ...rest, index)).toEqual(damaged("1 place"));
    });
  }

  it("has no warning for what comes after the end that it states, unless media are among it", async () => {
    for (const bytes of [zeros, junk]) {
      expect(await warningsOf(Buffer.concat([film, bytes]))).toEqual([]);
      expect(await warningsOf(Buffer.concat([film, bytes, film]))).toEqual(damaged("1 place"));
    }
  });

  it("has no warning if several Segments follow each other", async () => {
    const sizelessFilm = fileOf(clusters.map(sizeless), false);
    expect(await warningsOf(Buffer.concat([film, film]))).toEqual([]);
    expect(await warningsOf(Buffer.concat([sizelessFilm, sizelessFilm]))).toEqual([]);
  });
});

describe("a Matroska file of several Segments", () => {
  const films = [film, fileOf(clusters.map(sizeless), false)].map((each) => Buffer.concat([each, each]));

  it("has a warning if audio is taken from it: only the first Segment is read", async () => {
    for (const both of films) {
      expect(await warningsOf(both, { audioOnly: true })).toContainEqual(
        "frames_missing: the file has 2 Segments with media, of which only the first is read",
      );
    }
  });

  it("stays as published if tags are to be written into it, with a warning", async () => {
    for (const both of films) {
      expect(await warningsOf(both, { embed: "all" })).toEqual([expect.stringMatching(/^not_embedded/)]);
    }
  });
});

describe("audio that is taken from a damaged Matroska file", () => {
  const audioWarnings = (bytes: Buffer) => warningsOf(bytes, { audioOnly: true });

  it("has a warning, whatever the damage leaves, also at its end", async () => {
    expect(await audioWarnings(film)).toEqual([]);
    for (const isSizeStated of [true, false]) {
      for (const bytes of [zeros, junk, junk.subarray(0, 9)]) {
        const found = await audioWarnings(fileOf([...clusters, bytes], isSizeStated));
        expect(found).toEqual(damaged("1 place"));
        const cut = [...clusters.slice(0, -1), Buffer.concat([clusters.at(-1)!.subarray(0, -100), bytes])];
        expect(await audioWarnings(fileOf(cut, isSizeStated))).toContainEqual(damaged("1 place")[0]);
      }
    }
  });

  it("has what comes after a damaged place", async () => {
    const [first, second, ...rest] = clusters as [Buffer, Buffer, ...Buffer[]];
    const blank = Buffer.from(second).fill(0, 20);
    const bytes = fileOf([first, blank, zeros, ...rest, index], true);
    await using harness = await openEntry(
      () => engine,
      new Map([["film.mkv", resource("video/x-matroska", bytes)]]),
      "film.mkv",
    );
    const { duration, warnings } = await harness.download({ audioOnly: true });
    expect(warnings.map(({ code }) => code)).toContain("frames_missing");
    expect(duration).toBeGreaterThan(5.5);
  });
});
