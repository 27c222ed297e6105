import { describe, expect, it } from "vitest";
import { openDownloadDamage } from "./download-damage.ts";

const download = openDownloadDamage();
const damageOf = (name: string, ...parts: readonly Uint8Array[]) =>
  download.damageOf(name, "application/octet-stream", parts);

const damaged = (places: string) => `the file is damaged or cut off at ${places}`;
const short = "the file ends before its container says, although the server sent all that it has of it";

function chunk(name: string, data: Buffer, isPadded = true): Buffer {
  const head = Buffer.alloc(8);
  head.write(name, "latin1");
  head.writeUInt32LE(data.length, 4);
  return Buffer.concat([head, data, Buffer.alloc(isPadded ? data.length % 2 : 0)]);
}

const list = (type: string, ...chunks: readonly Buffer[]) =>
  chunk("LIST", Buffer.concat([Buffer.from(type), ...chunks]));
const riff = (...chunks: readonly Buffer[]) => chunk("RIFF", Buffer.concat([Buffer.from("AVI "), ...chunks]));

function avi(isPadded = true, size?: number): Buffer {
  const frames = Array.from({ length: 20 }, (_, i) =>
    chunk(i % 2 === 0 ? "00dc" : "01wb", Buffer.alloc(700 + i, 0x85), isPadded),
  );
  const groups = [...frames.slice(0, 10), list("rec ", ...frames.slice(10, 12)), ...frames.slice(12)];
  const film = riff(
    list("hdrl", chunk("avih", Buffer.alloc(56))),
    list("movi", ...groups),
    chunk("idx1", Buffer.alloc(320)),
  );
  if (size !== undefined) film.writeUInt32LE(size, 4);
  return film;
}

describe("an AVI file that is kept as published", () => {
  const film = avi();
  const middle = 9000;
  const [first, second] = [film.subarray(0, middle), film.subarray(middle)];

  it("has no warning if its chunks follow each other, whatever comes after the last one", async () => {
    expect(await damageOf("film.avi", film)).toEqual([]);
    expect(await damageOf("film.avi", film, Buffer.alloc(3000))).toEqual([]);
  });

  it("has none if its writer does not pad chunks, does not know its size, or counts more in it", async () => {
    expect(await damageOf("film.avi", avi(false))).toEqual([]);
    expect(await damageOf("film.avi", avi(true, 0))).toEqual([]);
    expect(await damageOf("film.avi", avi(true, 0xffff_ffff))).toEqual([]);
    expect(await damageOf("film.avi", avi(true, film.length))).toEqual([]);
  });

  it("has a warning if bytes are missing, others, or more", async () => {
    expect(await damageOf("film.avi", first, second.subarray(100))).toEqual([short, damaged("1 place")]);
    expect(await damageOf("film.avi", Buffer.from(film).fill(0x85, middle, middle + 1500))).toEqual([
      damaged("1 place"),
    ]);
    expect(await damageOf("film.avi", first, Buffer.alloc(1001, 0x85), second)).toEqual([damaged("1 place")]);
  });

  it("has a warning if its end is missing, also after a whole chunk", async () => {
    expect(await damageOf("film.avi", first)).toEqual([short, damaged("1 place")]);
    expect(await damageOf("film.avi", film.subarray(0, film.length - 328))).toEqual([short]);
  });
});

describe("a program stream that is kept as published", () => {
  const pack = Buffer.from("000001ba4400040004010000fff8", "hex");
  const oldPack = Buffer.from("000001ba2100010001800001", "hex");
  const packet = (bytes: number) => {
    const data = Buffer.alloc(bytes, 0x85);
    data.writeUInt32BE(0x1e0);
    data.writeUInt16BE(bytes - 6, 4);
    return data;
  };
  const packets = (head: Buffer, ...rest: readonly Buffer[]) =>
    Buffer.concat(Array.from({ length: 12 }, (_, i) => [head, packet(1000 + i), ...rest]).flat());
  const film = packets(pack);
  const [first, second] = [film.subarray(0, 5000), film.subarray(5000)];

  it("has no warning if its packets follow each other, as MPEG-2 or MPEG-1, in sectors, and whatever comes after them", async () => {
    const end = Buffer.from("000001b9", "hex");
    for (const parts of [
      [film],
      [film, end],
      [film, end, film],
      [packets(oldPack)],
      [packets(pack, Buffer.alloc(20))],
    ]) {
      expect(await damageOf("film.mpg", ...parts)).toEqual([]);
    }
    expect(await damageOf("film.mpg", film, Buffer.alloc(9000))).toEqual([]);
  });

  it("has none if a packet does not say how long it is", async () => {
    const endless = packet(3000).fill(0, 4, 6);
    expect(await damageOf("film.mpg", film, endless, pack)).toEqual([]);
  });

  it("has a warning if bytes are missing, others, or more, or the last packet is cut off", async () => {
    expect(await damageOf("film.mpg", first, second.subarray(100))).toEqual([damaged("1 place")]);
    expect(await damageOf("film.mpg", Buffer.from(film).fill(0, 5000, 8000))).toEqual([damaged("1 place")]);
    expect(await damageOf("film.mpg", first, Buffer.alloc(1), film)).toEqual([damaged("1 place")]);
    expect(await damageOf("film.mpg", film, first)).toEqual([damaged("1 place")]);
  });
});

describe("a WMV file that is kept as published", () => {
  const film = asf({ packets: 5, flags: 2 });

  it("has a warning if it has fewer packets than it states, but none if it is live, or has something after them", async () => {
    expect(await damageOf("film.wmv", film)).toEqual([]);
    expect(await damageOf("film.wmv", film, Buffer.alloc(90))).toEqual([]);
    expect(await damageOf("film.wmv", film.subarray(0, -1000))).toEqual([short]);
    expect(await damageOf("film.wmv", asf({ packets: 5, flags: 1 }).subarray(0, -1000))).toEqual([]);
  });
});

/** Returns a file of ASF: its header with its properties, and packets of 1,000 bytes. */
function asf({ packets, flags }: { packets: number; flags: number }): Buffer {
  const properties = Buffer.alloc(104);
  properties.write("a1dcab8c47a9cf118ee400c00c205365", "hex");
  properties.writeBigUInt64LE(104n, 16);
  properties.writeBigUInt64LE(BigInt(packets), 56);
  properties.writeUInt32LE(flags, 88);
  properties.writeUInt32LE(1000, 92);
  properties.writeUInt32LE(1000, 96);
  const header = Buffer.alloc(30);
  header.write("3026b2758e66cf11a6d900aa0062ce6c", "hex");
  header.writeBigUInt64LE(BigInt(header.length + properties.length), 16);
  return Buffer.concat([header, properties, Buffer.alloc(50), Buffer.alloc(packets * 1000, 0x82)]);
}
