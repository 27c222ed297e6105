import { describe, expect, it } from "vitest";
import { openDownloadDamage } from "./download-damage.ts";

const download = openDownloadDamage();
const damageOf = (...parts: readonly Uint8Array[]) => download.damageOf("film.flv", "video/x-flv", parts);

const start = Buffer.from("FLV\x01\x05\0\0\0\x09\0\0\0\0", "latin1");

/** A tag with its size after it. */
function tag(type: number, { stream = 0, size }: { stream?: number; size?: number } = {}): Buffer {
  const data = Buffer.alloc(700, 0x55);
  const header = Buffer.alloc(11);
  header.writeUInt8(type);
  header.writeUIntBE(data.length, 1, 3);
  header.writeUIntBE(stream, 8, 3);
  const end = Buffer.alloc(4);
  end.writeUInt32BE(size ?? header.length + data.length);
  return Buffer.concat([header, data, end]);
}

const tags = (options?: { stream?: number; size?: number }) =>
  Buffer.concat([18, 9, 8, 9, 8, 40, 41, 15, 9, 8].map((type) => tag(type, options)));

describe("an FLV file that is kept as published", () => {
  const film = tags();
  const [first, second] = [film.subarray(0, 3000), film.subarray(3000)];
  const broken = (places: string) => [`the file has bytes that are not tags, or tags that are cut off, at ${places}`];

  it("has no warning if its tags follow each other, whatever comes after the last one", async () => {
    expect(await damageOf(start, film)).toEqual([]);
    expect(await damageOf(start, film, Buffer.alloc(3000))).toEqual([]);
    expect(await damageOf(start, film.subarray(0, -4))).toEqual([]);
  });

  it("has none if its writer states other sizes after tags, or numbers its streams", async () => {
    expect(await damageOf(start, tags({ size: 0 }))).toEqual([]);
    expect(await damageOf(start, tags({ stream: 1 }))).toEqual([]);
  });

  it("has a warning if bytes are missing, twice there, or others, or the last tag is cut off", async () => {
    expect(await damageOf(start, first, second.subarray(100))).toEqual(broken("1 place"));
    expect(await damageOf(start, first, film.subarray(2900))).toEqual(broken("1 place"));
    expect(await damageOf(start, Buffer.from(film).fill(0, 3000, 4500))).toEqual(broken("1 place"));
    expect(await damageOf(start, film, Buffer.alloc(70_000), film)).toEqual(broken("1 place"));
    expect(await damageOf(start, film, film.subarray(0, -5))).toEqual(broken("1 place"));
    expect(await damageOf(start, film, Buffer.alloc(70_000))).toEqual(broken("1 place"));
    const damaged = tags({ stream: 1 }).fill(0, 3000, 4500);
    expect(await damageOf(start, damaged, damaged)).toEqual(broken("2 places"));
  });

  it("has a warning, soon, if a million bytes look like the start of tags", async () => {
    const look = Buffer.alloc(11);
    look.writeUIntBE(0x09_0f_ffff, 0, 4);
    expect(await damageOf(start, film, Buffer.alloc(1), Buffer.alloc(3 << 20, look))).toEqual(broken("1 place"));
  });
});
