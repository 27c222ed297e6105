import { randomUUIDv7 } from "node:crypto";
import { readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { openDiskFiles } from "../../src/files/disk.ts";
import { journalName, StreamJournal } from "../../src/files/stream-journal.ts";
import type { MediaStream } from "../../src/files/media-stream.ts";
import { makeFolder } from "../folder.ts";

const media = Buffer.from("-0123456789-");
const type = { mime_type: "video/mp4", ext: "mp4", file: "part" };
const never = new AbortController().signal;

type Part = [head: string, offset: number, bytes: number];

/** Begins a run that makes a file, and says what of it can be sent. */
function startRun(folder: string, ...parts: readonly Part[]) {
  const journal = new StreamJournal(folder);
  writeFileSync(join(folder, type.file), media);
  journal.open(type, false);
  journal.add(parts.map(([head, offset, bytes]) => ({ head: Buffer.from(head), offset, bytes })));
  return journal;
}

async function openFirstRun() {
  const files = openDiskFiles({ folder: makeFolder() });
  const id = randomUUIDv7();
  const folder = await files.openWorkFolder(id);
  startRun(folder, ["a", 1, 2], ["b", 3, 4]).close();
  const stream = (await files.openStream(id))!;
  onTestFinished(() => stream.close());
  return { files, id, stream, folder, end: () => files.saveResult(id, join(folder, type.file)) };
}

async function readAll(stream: MediaStream): Promise<string> {
  const into = Buffer.alloc(5);
  let text = "";
  for (;;) {
    const count = await stream.read(into);
    if (count === null) throw new Error(`the stream does not go on after ${text}`);
    if (count === "end") return text;
    text += into.toString("latin1", 0, count);
  }
}

it("A stream that nobody reads meanwhile goes on with a later run that has ended, wherever that has its media", async () => {
  const { stream, folder, end } = await openFirstRun();
  expect(await stream.read(Buffer.alloc(2))).toBe(2);
  const later = startRun(folder, ["a", 1, 2], ["b", 3, 4], ["c", 7, 4]);
  later.end();
  await later.untilFound(never);
  await end();
  expect(await readAll(stream)).toBe("1b2345c6789");
});

it("A stream goes on with a later run that has its media in other records", async () => {
  const { stream, folder, end } = await openFirstRun();
  expect(await stream.read(Buffer.alloc(20))).toBe(8);
  const later = startRun(folder, ["a", 1, 1], ["", 2, 1], ["b", 3, 6], ["", 9, 2], ["d", 1, 1]);
  later.end();
  await later.untilFound(never);
  await end();
  expect(await readAll(stream)).toBe("6789d0");
});

it.each([
  [
    "more bytes between its media than were sent",
    [
      ["a", 1, 2],
      ["b", 3, 1],
      ["c", 4, 4],
    ],
  ],
  [
    "such bytes at another place",
    [
      ["a", 1, 3],
      ["b", 4, 3],
    ],
  ],
  [
    "other bytes there",
    [
      ["a", 1, 2],
      ["b012", 3, 1],
    ],
  ],
  ["none there", [["a", 1, 7]]],
] satisfies [string, Part[]][])("A stream breaks if a later run has %s", async (_, parts) => {
  const { stream, folder, end } = await openFirstRun();
  expect(await stream.read(Buffer.alloc(20))).toBe(8);
  const later = startRun(folder, ...parts);
  later.end();
  await later.untilFound(never);
  await end();
  await expect(readAll(stream)).rejects.toThrow("a later run of the task made another file");
});

it("A stream breaks if a later run makes another file than it has sent", async () => {
  const { stream, folder, end } = await openFirstRun();
  const later = startRun(folder, ["a", 1, 2], ["B", 3, 4]);
  later.end();
  await later.untilFound(never);
  await end();
  await expect(readAll(stream)).rejects.toThrow("a later run of the task made another file");
});

it("A stream is alive for its readers when its run marks it, and while another run begins", async () => {
  const { files, id, stream, folder } = await openFirstRun();
  const untilAliveAfter = async (ms: number) =>
    await expect.poll(() => stream.aliveMs, { timeout: 60_000 }).toBeGreaterThan(ms);
  await untilAliveAfter(stream.aliveMs);
  const before = stream.aliveMs;
  utimesSync(join(folder, journalName), 1, 1);
  await untilAliveAfter(before);
  const old = stream.aliveMs;
  await files.markStream(id);
  await untilAliveAfter(old);
  // As of a run that was killed: there is nothing to see.
  await stream.read(Buffer.alloc(20));
  const last = stream.aliveMs;
  for (let reads = 0; reads < 3; reads += 1) await stream.read(Buffer.alloc(20));
  expect(stream.aliveMs).toBe(last);
  rmSync(join(folder, journalName));
  await untilAliveAfter(last);
  await files.markStream(id);
  await files.markStream(randomUUIDv7());
  await files.markStream("../x");
});

it("A stream of a run that marks nothing, as those of earlier releases, is not taken for one whose run is gone", async () => {
  const { stream, folder, files, id } = await openFirstRun();
  expect(stream.aliveMs).toBeLessThanOrEqual(performance.now());
  const path = join(folder, journalName);
  writeFileSync(path, readFileSync(path, "latin1").replace(/,"is_marked":true/, ""));
  const unmarked = (await files.openStream(id))!;
  onTestFinished(() => unmarked.close());
  expect(unmarked.aliveMs).toBe(Infinity);
  startRun(folder, ["a", 1, 2], ["b", 3, 4], ["c", 7, 4]).close();
  expect(await unmarked.read(Buffer.alloc(20))).toBe(8);
  expect(await unmarked.read(Buffer.alloc(20))).toBe(5);
  expect(unmarked.aliveMs).toBeLessThanOrEqual(performance.now());
});

it("A stream whose reader was suspended is alive until its run has had the time to mark it", async () => {
  const { stream } = await openFirstRun();
  await expect.poll(() => stream.read(Buffer.alloc(20))).toBe(null);
  const atMs = performance.now() + 60_000;
  using clock = vi.spyOn(performance, "now").mockReturnValue(atMs);
  expect(await stream.read(Buffer.alloc(20))).toBe(null);
  expect(stream.aliveMs).toBe(atMs);
  clock.mockReturnValue(atMs + 1_000);
  expect(await stream.read(Buffer.alloc(20))).toBe(null);
  expect(stream.aliveMs).toBe(atMs);
});

it("Only a run after another one waits until its stream is found, and no longer than it is to run", async () => {
  const files = openDiskFiles({ folder: makeFolder() });
  const folder = await files.openWorkFolder(randomUUIDv7());
  const first = startRun(folder, ["a", 1, 2]);
  await first.untilFound(AbortSignal.abort());
  first.end();
  const later = startRun(folder, ["a", 1, 2]);
  later.end();
  await expect(later.untilFound(AbortSignal.abort())).rejects.toThrow("aborted");
});

/** Begins a run that ends its stream, and reads all of that; the run may fail nevertheless. */
async function readEnded() {
  const { stream, folder } = await openFirstRun();
  startRun(folder, ["a", 1, 2], ["b", 3, 4]).end();
  expect(await readAll(stream)).toBe("a01b2345");
  return { stream, folder };
}

it("A stream that was read to its end goes on if its run fails, and a later one makes more", async () => {
  const { stream, folder } = await readEnded();
  startRun(folder, ["a", 1, 2], ["b", 3, 4], ["c", 7, 4]).end();
  expect(await readAll(stream)).toBe("c6789");
});

it("A stream that was read to its end breaks if its run fails, and a later one makes less or another file", async () => {
  for (const part of [undefined, ["B", 3, 4] satisfies Part]) {
    const { stream, folder } = await readEnded();
    startRun(folder, ["a", 1, 2], ...(part ? [part] : [])).end();
    await expect(readAll(stream)).rejects.toThrow("a later run of the task made another file");
  }
});

it("A stream that was read to its end has none if its run fails, and a later one has no stream", async () => {
  const { stream, folder } = await readEnded();
  const later = new StreamJournal(folder);
  expect(await stream.read(Buffer.alloc(5))).toBeNull();
  await expect(later.untilFound(AbortSignal.abort())).rejects.toThrow("aborted");
});

/** Begins the stream of a file that grows, of which the first bytes were read, and is then fetched again from its start. */
async function fetchAgain(start: string) {
  const files = openDiskFiles({ folder: makeFolder() });
  const id = randomUUIDv7();
  const folder = await files.openWorkFolder(id);
  const path = join(folder, type.file);
  writeFileSync(path, "0123");
  const journal = new StreamJournal(folder);
  journal.open(type, true);
  const stream = (await files.openStream(id))!;
  onTestFinished(() => stream.close());
  expect(await stream.read(Buffer.alloc(5))).toBe(4);
  // A new file beside the one that is open.
  writeFileSync(`${path}.new`, start);
  renameSync(`${path}.new`, path);
  return { stream, journal, path };
}

it("A stream of a file goes on if the same bytes are fetched again from its start, once there are as many", async () => {
  const { stream, journal, path } = await fetchAgain("01");
  expect(await stream.read(Buffer.alloc(5))).toBeNull();
  writeFileSync(path, "23456", { flag: "a" });
  journal.end();
  expect(await readAll(stream)).toBe("456");
});

it.each([
  ["differ", "01X3456"],
  ["are fewer in the end", "012"],
])("A stream of a file breaks if the bytes that are fetched again from its start %s", async (_, text) => {
  const { stream, journal } = await fetchAgain(text);
  journal.end();
  await expect(readAll(stream)).rejects.toThrow("the file was fetched again from its start");
});

it("A stream of a file that was read to its end goes on with what later runs add to it, or fetch again", async () => {
  const files = openDiskFiles({ folder: makeFolder() });
  const id = randomUUIDv7();
  const folder = await files.openWorkFolder(id);
  const path = join(folder, type.file);
  const run = (text: string, flag = "a") => {
    const journal = new StreamJournal(folder);
    writeFileSync(flag === "a" ? path : `${path}.new`, text, { flag });
    if (flag !== "a") renameSync(`${path}.new`, path);
    journal.open(type, true);
    journal.end();
  };
  run("01");
  const stream = (await files.openStream(id))!;
  onTestFinished(() => stream.close());
  expect(await readAll(stream)).toBe("01");
  run("23");
  expect(await readAll(stream)).toBe("23");
  run("012345", "w");
  expect(await readAll(stream)).toBe("45");
  run("0123X5", "w");
  await expect(readAll(stream)).rejects.toThrow("the file was fetched again from its start");
});

it("A stream of a file goes on with a later run that fetches the same bytes again from its start", async () => {
  const { stream, path } = await fetchAgain("01");
  const later = new StreamJournal(join(path, ".."));
  later.open(type, true);
  expect(await stream.read(Buffer.alloc(5))).toBeNull();
  writeFileSync(path, "23456", { flag: "a" });
  later.end();
  expect(await readAll(stream)).toBe("456");
});
