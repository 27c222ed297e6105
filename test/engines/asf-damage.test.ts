import { writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { publishedDamage } from "../../src/engines/native/damage/published-damage.ts";
import { openFolder } from "../remux/mp4-media.ts";

const folder = openFolder();

const packetBytes = 400;

/** A part of a media object, from `offset` on. */
interface Part {
  stream: number;
  object: number;
  offset: number;
  bytes: number;
  objectBytes: number;
}

/** Returns a packet with parts of objects (ASF 1.2 §5.2): one, or several with their lengths. */
function makePacket(...parts: readonly Part[]): Buffer {
  const isMultiple = parts.length > 1;
  const payloads = parts.map(({ stream, object, offset, bytes, objectBytes }) => {
    const head = Buffer.alloc(isMultiple ? 17 : 15);
    head.writeUInt8(stream);
    head.writeUInt8(object & 0xff, 1);
    head.writeUInt32LE(offset, 2);
    head.writeUInt8(8, 6);
    head.writeUInt32LE(objectBytes, 7);
    if (isMultiple) head.writeUInt16LE(bytes, 15);
    return Buffer.concat([head, Buffer.alloc(bytes, "media")]);
  });
  const body = Buffer.concat([Buffer.from(isMultiple ? [0x80 | parts.length] : []), ...payloads]);
  const head = Buffer.from([0x82, 0, 0, isMultiple ? 0x11 : 0x10, 0x5d, 0, 0, 0, 0, 0, 0, 0, 0]);
  const paddingBytes = packetBytes - head.length - body.length;
  head.writeUInt16LE(paddingBytes, 5);
  return Buffer.concat([head, body, Buffer.alloc(paddingBytes)]);
}

/** The first packet of two has the first half of a picture, and audio, the second one has the other half. */
const packets = Array.from({ length: 600 }, (_, i) => {
  const object = Math.floor(i / 2);
  const picture = { stream: 1, object, offset: (i % 2) * 200, bytes: 200, objectBytes: 400 };
  const audio = { stream: 2, object, offset: 0, bytes: 100, objectBytes: 100 };
  return i % 2 === 0 ? makePacket(picture, audio) : makePacket(picture);
});

function damageOf(all: readonly Buffer[], statedBytes = packetBytes): string[] {
  const properties = Buffer.alloc(104);
  properties.write("a1dcab8c47a9cf118ee400c00c205365", "hex");
  properties.writeBigUInt64LE(104n, 16);
  properties.writeBigUInt64LE(statedBytes === packetBytes ? BigInt(packets.length) : 2n ** 60n, 56);
  properties.writeUInt32LE(statedBytes, 92);
  properties.writeUInt32LE(statedBytes, 96);
  const header = Buffer.alloc(30);
  header.write("3026b2758e66cf11a6d900aa0062ce6c", "hex");
  header.writeBigUInt64LE(134n, 16);
  const path = folder.path("film.wmv");
  writeFileSync(path, Buffer.concat([header, properties, Buffer.alloc(50), ...all]));
  return publishedDamage(path);
}

const damaged = (places = "1 place") => [`packets of the file are missing or damaged at ${places}`];

describe("a WMV file", () => {
  it("is not damaged if its packets follow each other, whatever comes after them", () => {
    expect(damageOf(packets)).toEqual([]);
    expect(damageOf([...packets, Buffer.alloc(3000, "index")])).toEqual([]);
  });

  it.each([
    ["zeros", Buffer.alloc(packetBytes)],
    ["other bytes", Buffer.alloc(packetBytes, "other bytes")],
  ])("is damaged where packets are %s", (_what, bytes) => {
    expect(damageOf(packets.with(101, bytes))).toEqual(damaged());
    expect(damageOf(packets.with(101, bytes).with(102, bytes))).toEqual(damaged());
    expect(damageOf(packets.with(101, bytes).with(201, bytes))).toEqual(damaged("2 places"));
  });

  it("is damaged where packets are missing, twice there, or in another order", () => {
    expect(damageOf(packets.toSpliced(100, 1))).toEqual(damaged());
    expect(damageOf(packets.toSpliced(101, 1))).toEqual(damaged());
    expect(damageOf(packets.toSpliced(100, 20))).toEqual(damaged());
    expect(damageOf(packets.toSpliced(101, 0, packets[101]!))).toEqual(damaged());
    expect(damageOf(packets.with(100, packets[101]!).with(101, packets[100]!))).toEqual(damaged());
  });

  it("is damaged where other bytes are between packets", () => {
    expect(damageOf(packets.toSpliced(100, 0, Buffer.alloc(1000, "other bytes")))).toEqual(damaged());
  });

  it("is not if no packet continues another one: then their numbers mean nothing", () => {
    const alike = packets.map((_, i) =>
      makePacket({ stream: 1, object: 0, offset: (i % 2) * 200, bytes: 200, objectBytes: 400 }),
    );
    expect(damageOf(alike)).toEqual([]);
  });

  it("is not if its packets have no bytes, however many there are", () => {
    expect(damageOf(packets, 0)).toEqual([]);
  });

  it("is not if nothing in it is a packet of a known kind", () => {
    expect(damageOf(packets.map(() => Buffer.alloc(packetBytes, "other bytes")))).toEqual([]);
  });
});
