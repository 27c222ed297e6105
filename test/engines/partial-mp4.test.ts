import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { fetchMp4Part } from "../../src/engines/native/partial/fetch-mp4-part.ts";
import { openPartialFile, type PartialMediaOptions } from "../../src/engines/native/partial/partial-file.ts";
import { ascii, box, fullBox, u16, u32 } from "../../src/remux/mp4/boxes.ts";
import { makeFolder } from "../folder.ts";

const free = box("free");

/** Fetches what is from second 12 to 15 of a file with an index of three segments of 10 s, of which the second one has so many empty boxes. */
async function fetchPart(emptyBoxes: number) {
  const folder = makeFolder();
  const fragment = box("moof", box("traf", fullBox("tfdt", 0, 0, u32(0))));
  const last = box("mdat", new Uint8Array(4 << 20));
  const segments = [fragment, Buffer.concat([fragment, Buffer.alloc(emptyBoxes * free.length, free)]), last];
  const listed = segments.map(({ length }) => u32(length, 10_000, 0));
  const index = fullBox("sidx", 0, 0, u32(1, 1000, 0, 0), u16(0, listed.length), ...listed);
  const bytes = Buffer.concat([box("ftyp", ascii("isom"), u32(0)), box("moov", free), index, ...segments]);
  const validator = { etag: '"1"', lastModified: null, isDateStrong: false, contentType: null };
  const fetch: PartialMediaOptions["fetch"] = async ({ offset, length }) => {
    const path = join(folder, `${offset}`);
    const part = bytes.subarray(offset, offset + length);
    writeFileSync(path, part);
    return { path, size: part.length, representation: { url: "film", total: bytes.length, ...validator } };
  };
  await using file = await openPartialFile(join(folder, "sparse"), fetch);
  await file.fetch({ start: 0, end: 100 });
  const wanted = { ranges: [{ startS: 12, endS: 15 }], audioOnly: false, zeroS: null };
  const options = { ...wanted, acceptsHoles: false, needsTexts: false, fetch, onTotal() {} };
  return await fetchMp4Part(file, join(folder, "part"), options);
}

it("a part of an MP4 is what its segment index lists for it", async () => {
  expect(await fetchPart(100)).toMatchObject({ zeroS: 0, isWhole: false, chunks: [{ skippedS: 0 }] });
});

it("a part of an MP4 is refused soon if it has more boxes than a day of media", async () => {
  await expect(fetchPart(1 << 19)).rejects.toMatchObject({ code: "upstream_invalid" });
});
