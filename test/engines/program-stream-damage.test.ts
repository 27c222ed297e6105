import { writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { publishedDamage } from "../../src/engines/native/damage/published-damage.ts";
import { openFolder } from "../remux/mp4-media.ts";

const folder = openFolder();

const rows = 6;
const codes = { picture: 0x00, sequence: 0xb3, group: 0xb8 };

/** Returns what a start code (ISO/IEC 13818-2 §6.2.1) begins. */
const unit = (code: number, content: readonly number[]): Buffer =>
  Buffer.concat([Buffer.from([0, 0, 1, code, ...content]), Buffer.alloc(30, "video")]);

const sequence = (height: number): Buffer => unit(codes.sequence, [0x06, height >> 8, height & 0xff]);
const slices = (...numbers: number[]): Buffer[] => numbers.map((row) => unit(row, []));
const allRows = Array.from({ length: rows }, (_, i) => i + 1);
const picture = (number: number, ...own: readonly number[]): Buffer =>
  Buffer.concat([unit(codes.picture, [number >> 2, (number & 3) << 6]), ...slices(...own)]);

/** A group of pictures, which are decoded in another order than they are shown in. */
const group = (own: readonly number[] = allRows): Buffer =>
  Buffer.concat([unit(codes.group, []), ...[2, 0, 1, 5, 3, 4].map((number) => picture(number, ...own))]);

const video = (groups: readonly Buffer[], height = 16 * rows): Buffer => Buffer.concat([sequence(height), ...groups]);

/** Returns packs of one packet of MPEG-2 video (ISO/IEC 13818-1 §2.5.3). */
function packsOf(stream: Buffer): Buffer[] {
  const payloadBytes = 130;
  return Array.from({ length: Math.ceil(stream.length / payloadBytes) }, (_, i) => {
    const payload = stream.subarray(i * payloadBytes, (i + 1) * payloadBytes);
    const pack = Buffer.from([0, 0, 1, 0xba, 0x44, 0, 4, 0, 4, 1, 0, 0, 3, 0xf8]);
    const head = Buffer.from([0, 0, 1, 0xe0, 0, 0, 0x80, 0, 0]);
    head.writeUInt16BE(payload.length + 3, 4);
    return Buffer.concat([pack, head, payload]);
  });
}

function damageOf(packs: readonly Buffer[]): string[] {
  const path = folder.path("film.mpg");
  writeFileSync(path, Buffer.concat([...packs, Buffer.from([0, 0, 1, 0xb9])]));
  return publishedDamage(path);
}

const damaged = (places = "1 place") => [`pictures of the file are damaged at ${places}`];
const groups = (count: number, own?: readonly number[]) => Array.from({ length: count }, () => group(own));

describe("an MPEG program stream whose packets follow each other", () => {
  const packs = packsOf(video(groups(40)));

  it("is not damaged if its pictures have all rows, and its groups all pictures", () => {
    expect(damageOf(packs)).toEqual([]);
  });

  it("is not if it is a part of another one, or two with pictures of other heights were joined", () => {
    expect(damageOf(packs.slice(29, -31))).toEqual([]);
    const larger = video(groups(40, [...allRows, rows + 1]), 16 * rows + 8);
    expect(damageOf([...packs, ...packsOf(larger)])).toEqual([]);
  });

  it("is not if its pictures are fields of frames", () => {
    const fields = [0, 0, 1, 1].map((number) => picture(number, 1, 2, 3));
    const frames = Array.from({ length: 40 }, () => Buffer.concat([unit(codes.group, []), ...fields]));
    expect(damageOf(packsOf(video(frames)))).toEqual([]);
  });

  it("is not if the first pictures of a group are left out, as where it was cut", () => {
    const cut = Buffer.concat([unit(codes.group, []), ...[2, 5, 3, 4].map((number) => picture(number, ...allRows))]);
    expect(damageOf(packsOf(video(groups(40).with(20, cut))))).toEqual([]);
  });

  it("is not if all of a picture is one slice, as MPEG-1 may have it", () => {
    expect(damageOf(packsOf(video(groups(40, [1]))))).toEqual([]);
  });

  it("is not if a group has more pictures than there are numbers", () => {
    const long = [unit(codes.group, []), ...Array.from({ length: 200_000 }, (_, i) => picture(i & 1023))];
    expect(damageOf(packsOf(video([...groups(20), Buffer.concat(long), ...groups(20)])))).toEqual([]);
  });

  it("is damaged where packs are missing or twice there", () => {
    expect(damageOf(packs.toSpliced(100, 1))).toEqual(damaged());
    expect(damageOf(packs.toSpliced(100, 30))).toEqual(damaged());
    expect(damageOf(packs.toSpliced(200, 1).toSpliced(100, 1))).toEqual(damaged("2 places"));
    expect(damageOf(packs.toSpliced(100, 0, ...packs.slice(100, 104)))).toEqual(damaged());
  });

  it("is damaged where whole pictures are missing", () => {
    const short = Buffer.concat([unit(codes.group, []), ...[2, 0, 5, 3, 4].map((number) => picture(number, 1))]);
    expect(damageOf(packsOf(video(groups(40, [1]).with(20, short))))).toEqual(damaged());
  });
});
