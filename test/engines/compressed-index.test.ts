import { readFileSync } from "node:fs";
import { deflateSync } from "node:zlib";
import { afterAll, describe, expect, it } from "vitest";
import type { DownloadJob } from "../../src/engines/engine.ts";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { ascii, box, boxesIn, u32 } from "../../src/remux/mp4/boxes.ts";
import { noAdditions } from "../../src/remux/additions.ts";
import { openEntry } from "../contracts/engine/harness.ts";
import { readMedium } from "../media/rendition.ts";
import { resource } from "../media/resources.ts";
import { samplesIn } from "../remux/mp4-samples.ts";

const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
afterAll(() => engine.close());

const plain = readMedium("index-last.mp4");
const index = plain.subarray(plain.lastIndexOf("moov") - 4);

/** The index of the film as QuickTime compresses it, or another index, or made by another method. */
function compressedIndex(of: Uint8Array = index, method = "zlib", data: Uint8Array = deflateSync(of)): Uint8Array {
  return box("moov", box("cmov", box("dcom", ascii(method)), box("cmvd", u32(of.length), data)));
}

const filmWith = (moov: Uint8Array): Buffer => Buffer.concat([plain.subarray(0, -index.length), moov]);

/** The same with its index in front of its media, which stay where they are. */
function withIndexInFront(): Buffer {
  const film = readMedium("index-first.mp4");
  const moov = boxesIn(film).find(({ type }) => type === "moov")!;
  const compressed = compressedIndex(film.subarray(moov.start, moov.end));
  const free = box("free", new Uint8Array(moov.end - moov.start - compressed.length - 8));
  return Buffer.concat([film.subarray(0, moov.start), compressed, free, film.subarray(moov.end)]);
}

const open = (film: Buffer) =>
  openEntry(() => engine, new Map([["film.mp4", resource("video/mp4", film)]]), "film.mp4");

async function download(film: Buffer) {
  await using harness = await open(film);
  const { path, duration, width, height, warnings } = await harness.download();
  return { bytes: readFileSync(path), duration, width, height, warnings };
}

/** Returns the samples of what is made of a film. */
async function samplesOf(film: Buffer, job: Partial<DownloadJob>) {
  await using harness = await open(film);
  return samplesIn((await harness.download(job)).path);
}

const description = { ...noAdditions, tags: { ...noAdditions.tags, title: "Film" }, name: null, covers: [] };

describe("an MP4 or QuickTime file whose index is compressed", () => {
  it.each([
    ["at the end", filmWith(compressedIndex()), plain],
    ["in front of the media", withIndexInFront(), readMedium("index-first.mp4")],
  ])("is kept as published, and what is made of it has the same samples: %s", async (_, compressed, film) => {
    const { bytes, ...kept } = await download(compressed);
    expect(bytes.equals(compressed)).toBe(true);
    const { bytes: published, ...expected } = await download(film);
    expect(published.equals(film)).toBe(true);
    expect(kept).toEqual(expected);
    const jobs = [
      { audioOnly: true },
      { ranges: [{ startS: 0.4, endS: 1.2 }] },
      { embed: "all", description },
    ] as const;
    for (const job of jobs) {
      const samples = await samplesOf(compressed, job);
      expect(samples.flat()).not.toEqual([]);
      expect(samples).toEqual(await samplesOf(film, job));
    }
  });

  it.each([
    ["is damaged", compressedIndex(index, "zlib", deflateSync(index).fill(0x55, 40, 60)), "is damaged"],
    ["is cut off", compressedIndex(index, "zlib", deflateSync(index).subarray(0, 200)), "is damaged"],
    ["is far longer than the file", compressedIndex(paddedIndex(1 << 20)), "has over 1048576 bytes"],
    ["is compressed by another method", compressedIndex(index, "lzma"), 'compressed with "lzma"'],
    ["is another box", compressedIndex(box("free", new Uint8Array(40))), 'no "moov"'],
    ["is compressed twice", compressedIndex(compressedIndex()), 'has no "mvhd"'],
    ["lists samples beyond the end of the file", compressedIndex(withOffsets(0x7fff_ffff)), "ends at"],
  ])("is refused if it %s", async (_, moov, rule) => {
    await expect(download(filmWith(moov))).rejects.toMatchObject({
      code: "upstream_invalid",
      message: expect.stringContaining(rule),
    });
  });
});

/** The index with so many bytes more, in a box that readers skip. */
const paddedIndex = (bytes: number) => box("moov", index.subarray(8), box("free", new Uint8Array(bytes)));

/** The index with another place of the first chunk. */
function withOffsets(offset: number): Buffer {
  const changed = Buffer.from(index);
  changed.writeUInt32BE(offset, changed.indexOf("stco") + 12);
  return changed;
}
