import { randomUUIDv7 } from "node:crypto";
import { appendFileSync, mkdirSync, renameSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { deflateSync } from "node:zlib";
import { expect, it, onTestFinished } from "vitest";
import { FileAnnouncement } from "../../src/engines/native/partial/announce-file.ts";
import type { FetchEnd } from "../../src/engines/native/partial/index-first.ts";
import { openDiskFiles } from "../../src/files/disk.ts";
import { StreamJournal } from "../../src/files/stream-journal.ts";
import { requestStream } from "../../src/files/stream-request.ts";
import { ascii, box, u32 } from "../../src/remux/mp4/boxes.ts";
import { makeFolder } from "../folder.ts";
import { readMedium } from "../media/rendition.ts";

const film = readMedium("index-last.mp4");
const mediaAt = film.indexOf("mdat") - 4;
const index = film.subarray(film.lastIndexOf("moov") - 4);

const otherFilm = Buffer.from(film);
otherFilm.fill(0x55, mediaAt + 16, mediaAt + 32);

/** Returns what an MP4 of so many bytes has up to its first samples. */
function startOfLongFilm(bytes: number): Buffer {
  const size = Buffer.alloc(16);
  size.writeUInt32BE(1);
  size.write("mdat", 4);
  size.writeBigUInt64BE(BigInt(bytes - mediaAt - index.length), 8);
  return Buffer.concat([film.subarray(0, mediaAt), size, film.subarray(mediaAt + 16, -index.length)]);
}

/** Opens the work folder of a task whose stream is wanted; `path` is of its film, and `endPath` of the index of that. */
async function openWork() {
  const files = openDiskFiles({ folder: makeFolder() });
  const id = randomUUIDv7();
  const folder = await files.openWorkFolder(id);
  mkdirSync(join(folder, "parts"));
  const [path, endPath] = [join(folder, "parts", "main"), join(folder, "end")];
  writeFileSync(endPath, index);
  await requestStream(folder);
  const announce = (fetchEnd: FetchEnd) =>
    new FileAnnouncement(new StreamJournal(folder), { isWanted: () => true, fetchEnd, onVideo: () => {} });
  const openStream = async () => {
    const stream = (await files.openStream(id))!;
    onTestFinished(() => stream.close());
    return stream;
  };
  return { folder, path, endPath, announce, openStream };
}

it.each([
  ["arrives at once in a later run", film.length, Promise.withResolvers<null>().promise],
  ["arrives in a later run, whose server refuses it alone", film.length, null],
  ["is there when a later run begins", null, null],
])("A stream goes on if the rest of the file %s, whose end does not come first", async (_, totalBytes, laterEnd) => {
  const { path, endPath, announce, openStream } = await openWork();
  const { promise: isFetched, resolve } = Promise.withResolvers<void>();
  const first = announce(async () => {
    setImmediate(resolve);
    return endPath;
  });
  writeFileSync(path, film.subarray(0, film.length / 2));
  first.onTotal(film.length);
  first.onBytes(path);
  first.onBytes(path);
  await isFetched;
  const stream = await openStream();
  const into = Buffer.alloc(2 * film.length);
  let read = await stream.read(into);
  expect(read).toBeGreaterThan(index.length);

  const later = announce(async () => laterEnd);
  appendFileSync(path, film.subarray(film.length / 2));
  if (totalBytes !== null) {
    later.onTotal(totalBytes);
    later.onBytes(path);
    later.onBytes(path);
    await nextTurn();
  }
  later.end(path);
  let total = 0;
  for (; typeof read === "number"; read = await stream.read(into.subarray(total))) total += read;
  expect([read, total]).toEqual(["end", film.length]);
});

it.each([
  ["goes on if the file was fetched again with the same media", film, "end"],
  ["breaks if the file was fetched again with other media under the same index", otherFilm, "changed"],
])("A stream %s", async (_, again, expected) => {
  const { folder, path, endPath, announce, openStream } = await openWork();
  const run = async () => {
    const announcement = announce(async () => endPath);
    announcement.onTotal(film.length);
    announcement.onBytes(path);
    announcement.onBytes(path);
    await nextTurn();
    return announcement;
  };
  writeFileSync(path, film.subarray(0, -1));
  await run();
  const stream = await openStream();
  const into = Buffer.alloc(2 * film.length);
  await stream.read(into);

  renameSync(path, join(folder, "before"));
  writeFileSync(path, again);
  (await run()).end(path);
  const rest = async () => {
    for (;;) if ((await stream.read(into)) === "end") return "end";
  };
  expect(await rest().catch(() => "changed")).toBe(expected);
});

it("A stream is the same whether the index of its file is compressed or not", async () => {
  const streamOf = async (end: Uint8Array) => {
    const { path, endPath, announce, openStream } = await openWork();
    const whole = Buffer.concat([film.subarray(0, -index.length), end]);
    writeFileSync(endPath, end);
    writeFileSync(path, whole.subarray(0, -1));
    const announcement = announce(async () => endPath);
    announcement.onTotal(whole.length);
    announcement.onBytes(path);
    announcement.onBytes(path);
    await nextTurn();
    const stream = await openStream();
    const into = Buffer.alloc(2 * film.length);
    let total = 0;
    const add = (read: number | string | null) => (total += typeof read === "number" ? read : 0);
    add(await stream.read(into));
    writeFileSync(path, whole);
    announcement.end(path);
    for (let read = await stream.read(into.subarray(total)); read !== "end";) {
      add(read);
      read = await stream.read(into.subarray(total));
    }
    return into.subarray(0, total);
  };
  const compressed = box("cmvd", u32(index.length), deflateSync(index));
  const moov = box("moov", box("cmov", box("dcom", ascii("zlib")), compressed));
  const stream = await streamOf(moov);
  expect(stream.length).toBe(film.length);
  expect(stream.equals(await streamOf(index))).toBe(true);
});

it("A reader who comes when 12 GB of an MP4 with its index at the end are there gets them", async () => {
  const totalBytes = 13e9;
  const { path, endPath, announce, openStream } = await openWork();
  writeFileSync(path, startOfLongFilm(totalBytes));
  truncateSync(path, 12e9);
  const { promise: isFetched, resolve } = Promise.withResolvers<void>();
  const fetchEnd = async () => {
    setImmediate(resolve);
    return endPath;
  };
  const announcement = announce(fetchEnd);
  announcement.onTotal(totalBytes);
  announcement.onBytes(path);
  // The first call has read what the file is.
  announcement.onBytes(path);
  await isFetched;

  const stream = await openStream();
  expect(stream.bytes).toBeGreaterThan(12.9e9);
  const into = Buffer.alloc(mediaAt);
  expect(await stream.read(into)).toBe(into.length);
  expect(into.equals(film.subarray(0, mediaAt))).toBe(true);
});
