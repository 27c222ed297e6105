import { existsSync, readFileSync, symlinkSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { diskError } from "../../src/files/disk-error.ts";
import { ascii, boxesIn, childrenOf, findChild, getChild, u32, viewOf } from "../../src/remux/mp4/boxes.ts";
import { MediaData } from "../../src/remux/mp4/write/media-data.ts";
import { type Mp4WriterOptions, Mp4Writer } from "../../src/remux/mp4/write/writer.ts";
import { isCompleteMp4 } from "../../src/remux/mp4/read/file-boxes.ts";
import type { Sample } from "../../src/remux/samples.ts";
import { audioFormat, fillPattern, indexOf, samplesIn, videoFormat } from "./mp4-samples.ts";
import { layoutOf, openFolder } from "./mp4-media.ts";

const folder = openFolder();
const path = folder.path("out.mp4");

/** Yields samples of `bytes` each, 1000 ticks apart. */
function* samples(count: number, bytes: number, over: Partial<Sample> = {}): Generator<Sample> {
  for (let i = 0; i < count; i++) {
    const data = fillPattern(bytes, i);
    yield { data, dts: i * 1000, pts: i * 1000, duration: 1000, isSync: true, ...over };
  }
}

function write(list: Iterable<Sample>, options: Partial<Mp4WriterOptions> = {}) {
  const writer = new Mp4Writer({ path, expectedS: null, ...options });
  const track = writer.setFormat(videoFormat);
  for (const sample of list) writer.write(track, sample);
  return writer.finish();
}

function errorOf(call: () => unknown): unknown {
  try {
    return call();
  } catch (error) {
    return error;
  }
}

describe("the MP4 writer", () => {
  it("leaves nothing between index and media data in a small file", () => {
    const result = write(samples(50, 1000));
    expect(layoutOf(path)).toEqual(["ftyp", "moov", "mdat"]);
    expect(result).toMatchObject({ durationS: 50 / 25, width: 64, height: 36 });
    expect(result.size).toBe(readFileSync(path).length);
  });

  it("fills reserved space that the index does not need", () => {
    write(samples(500, 20_000), { expectedS: 20 });
    expect(layoutOf(path)).toEqual(["ftyp", "moov", "free", "mdat"]);
    expect(isCompleteMp4(path)).toBe(true);
  });

  it.each([-9, -1, 0, 1, 4, 7, 8, 9])(
    "states where the media data are if the index leaves %d bytes of the reserved space",
    (bytesLeft) => {
      const headBytes = 1_000;
      const mdatHeaderBytes = 8;
      const reserveBytes = () => headBytes + mdatHeaderBytes + bytesLeft;
      const media = new MediaData({ path, maxBytes: 1e9, reserveBytes });
      const block = fillPattern(3 << 20, 1);
      for (let n = 0; n < 2; n++) media.append(block);
      let stated = 0;
      const size = media.finish((start) => {
        stated = start;
        return Buffer.concat([u32(headBytes), ascii("moov"), Buffer.alloc(headBytes - 8)]);
      });
      const file = readFileSync(path);
      expect(file).toHaveLength(size);
      expect(file.subarray(stated).equals(Buffer.concat([block, block]))).toBe(true);
      expect(layoutOf(path).filter((box) => box !== "free")).toEqual(["moov", "mdat"]);
    },
  );

  it("moves the media data if the index needs more space than is reserved", () => {
    // Of over 4 MiB, whose index has over 64 KiB.
    const count = 22_000;
    const list = [...samples(count - 1, 200), ...samples(1, 199)];
    const moves: (number | null)[] = [];
    write(list, { expectedS: null, onMove: (by) => void moves.push(by) });
    expect(moves).toEqual([null, expect.any(Number)]);
    expect(layoutOf(path)).toEqual(["ftyp", "moov", "mdat"]);
    const [video] = samplesIn(path);
    expect(video?.length).toBe(count);
    expect(video?.filter(({ data }, i) => !data.equals(list[i]!.data))).toEqual([]);
  });

  it("states a size once that all samples have, as those of PCM", () => {
    const count = 40_000;
    const { size } = write(samples(count, 100));
    expect(size).toBeLessThan(count * (100 + 2));
    const [video] = samplesIn(path);
    expect(video?.map(({ data }) => data.length)).toEqual(Array.from({ length: count }, () => 100));
  });

  it("has empty samples in its index", () => {
    const [first, ...empty] = samples(3, 0);
    write([{ ...first!, data: Buffer.alloc(5) }, ...empty]);
    expect(samplesIn(path)[0]?.map(({ data }) => data.length)).toEqual([5, 0, 0]);
  });

  it("writes samples larger than its buffers", () => {
    const sizes = [10, 6_000_000, 20, 2_000_000, 30];
    const list = sizes.map((size, i) => [...samples(i + 1, size)].at(-1)!);
    write(list);
    expect(samplesIn(path)[0]?.map(({ data }) => data.length)).toEqual(sizes);
  });

  it("makes decode times increase and keeps presentation times", () => {
    const at = (dts: number, pts: number): Sample => ({
      data: Buffer.from([1]),
      dts,
      pts,
      duration: 1000,
      isSync: true,
    });
    write([at(0, 0), at(1000, 1000), at(1000, 2000), at(500, 3000), at(4000, 4000)]);
    const [video] = samplesIn(path);
    expect(video?.map(({ dts }) => dts)).toEqual([0, 1000, 1001, 1002, 4000]);
    expect(video?.map(({ pts }) => pts)).toEqual([0, 1000, 2000, 3000, 4000]);
  });

  it("shows a sample that it decodes later no earlier than that", () => {
    const at = (ticks: number): Sample => ({
      data: Buffer.from([1]),
      dts: ticks,
      pts: ticks,
      duration: 1000,
      isSync: true,
    });
    write([at(0), at(1000), at(200), at(2000)]);
    expect(samplesIn(path)[0]?.map(({ pts }) => pts)).toEqual([0, 1000, 1001, 2000]);
  });

  it("adds a gap to the duration of the sample before it", () => {
    const [a, b] = [...samples(2, 10)] as [Sample, Sample];
    const result = write([a, { ...b, dts: 100_000, pts: 100_000 }]);
    expect(result.durationS).toBe(101_000 / 25_000);
  });

  it("keeps the distance between tracks at any absolute time", () => {
    const writer = new Mp4Writer({ path, expectedS: 1 });
    const [video, audio] = [writer.setFormat(videoFormat), writer.setFormat(audioFormat)];
    const fromS = 1_700_000_000;
    const data = Buffer.from([1]);
    const at = (ticks: number) => ({ data, dts: ticks, pts: ticks, duration: 1000, isSync: true });
    writer.write(video, at((fromS + 2.5) * 25_000));
    writer.write(audio, at(fromS * 48_000));
    writer.finish();
    const [[firstVideo] = [], [firstAudio] = []] = samplesIn(path);
    expect([firstVideo?.shownS, firstAudio?.shownS]).toEqual([2.5, 0]);
  });

  it("keeps formats that alternate once each", () => {
    const writer = new Mp4Writer({ path, expectedS: 1 });
    const other = { ...videoFormat, sampleEntry: Buffer.from(videoFormat.sampleEntry).fill(7, 40) };
    const track = writer.setFormat(videoFormat);
    let i = 0;
    for (const sample of samples(4, 10)) {
      writer.setFormat(i++ % 2 === 0 ? videoFormat : other, track);
      writer.write(track, sample);
    }
    writer.finish();
    expect(samplesIn(path)[0]?.map(({ entry }) => entry)).toEqual([1, 2, 1, 2]);
  });

  it("leaves out a format that no sample has", () => {
    const unused = { ...videoFormat, sampleEntry: Buffer.from(videoFormat.sampleEntry).fill(7, 40) };
    const writer = new Mp4Writer({ path, expectedS: 1 });
    const track = writer.setFormat(unused);
    writer.setFormat(videoFormat, track);
    for (const sample of samples(2, 10)) writer.write(track, sample);
    writer.finish();
    expect(indexOf(path).includes(Buffer.alloc(20, 7))).toBe(false);
    expect(samplesIn(path)[0]).toHaveLength(2);
  });

  it("writes the language", () => {
    const writer = new Mp4Writer({ path, expectedS: 1 });
    const track = writer.setFormat({ ...audioFormat, language: "de-AT" });
    writer.write(track, [...samples(1, 10)][0]!);
    writer.finish();
    expect(readFileSync(path).toString("latin1", 8, 12)).toBe("M4A ");
    expect(samplesIn(path)[0]?.[0]?.language).toBe("de-AT");
  });

  it.each([
    [3_600, [1 << 24, 0, 324_000_000]],
    [86_400, [1 << 24, 1, 7_776_000_000 - 2 ** 32]],
    [null, undefined],
  ])(
    "states in front of fragments that %s s are expected, for the progress that players show",
    async (expectedS, stated) => {
      const writer = new Mp4Writer({ path, expectedS });
      const track = writer.setFormat(videoFormat);
      for (const sample of samples(3, 10)) writer.write(track, sample);
      writer.cut();
      const [start] = (await writer.publish(true)) ?? [];
      const { head = new Uint8Array() } = start ?? {};
      writer.discard();
      const view = viewOf(head);
      const moov = boxesIn(head).find(({ type }) => type === "moov")!;
      const mehd = findChild(head, moov, "mvex", "mehd");
      expect(mehd && [0, 4, 8].map((at) => view.getUint32(mehd.body + at))).toEqual(stated);
    },
  );

  it("refuses a file without samples", () => {
    const writer = new Mp4Writer({ path, expectedS: 1 });
    writer.setFormat(videoFormat);
    expect(() => writer.finish()).toThrow(expect.objectContaining({ code: "upstream_invalid" }));
    expect(existsSync(path)).toBe(false);
  });

  it("removes an unfinished file", () => {
    const writer = new Mp4Writer({ path, expectedS: 1 });
    writer.write(writer.setFormat(videoFormat), [...samples(1, 6_000_000)][0]!);
    expect(existsSync(path)).toBe(true);
    writer.discard();
    writer.discard();
    expect(existsSync(path)).toBe(false);
  });

  it("writes the same file in other threads", async () => {
    const list = [...samples(60, 900_000)];
    write(list);
    const expected = readFileSync(path);
    const writer = new Mp4Writer({ path, expectedS: null });
    const track = writer.setFormat(videoFormat);
    for (const [i, sample] of list.entries()) {
      // Without a wait in the second half: more than fits into the buffers.
      if (i < 30) await writer.drain();
      writer.write(track, sample);
    }
    await writer.settle();
    writer.finish();
    expect(readFileSync(path).equals(expected)).toBe(true);
  });

  it("removes a file that other threads are writing", async () => {
    const writer = new Mp4Writer({ path, expectedS: 1 });
    const track = writer.setFormat(videoFormat);
    await writer.drain();
    for (const sample of samples(10, 1_000_000)) writer.write(track, sample);
    writer.discard();
    expect(existsSync(path)).toBe(false);
  });

  it.skipIf(!existsSync("/dev/full"))(
    "rejects if other threads find the disk full, removes the file, and says so again later",
    async () => {
      const full = folder.path("full.mp4");
      symlinkSync("/dev/full", full);
      const writer = new Mp4Writer({ path: full, expectedS: 1 });
      const track = writer.setFormat(videoFormat);
      await writer.drain();
      for (const sample of samples(6, 1_000_000)) writer.write(track, sample);
      const error = { code: "ENOSPC" };
      await expect(writer.settle()).rejects.toMatchObject(error);
      expect(existsSync(full)).toBe(false);
      expect(errorOf(() => writer.write(track, [...samples(1, 6_000_000)][0]!))).toMatchObject(error);
      expect(errorOf(() => writer.finish())).toMatchObject(error);
    },
  );

  it("takes no sample after it is finished, and keeps the file", () => {
    const writer = new Mp4Writer({ path, expectedS: 1 });
    const track = writer.setFormat(videoFormat);
    for (const sample of samples(3, 10)) writer.write(track, sample);
    const { size } = writer.finish();
    expect(() => writer.write(track, [...samples(1, 6_000_000)][0]!)).toThrow("is closed");
    writer.discard();
    expect(readFileSync(path).length).toBe(size);
  });

  it("stops at the limit", () => {
    const code = "too_large";
    expect(() => write(samples(10, 100), { maxBytes: 999 })).toThrow(expect.objectContaining({ code }));
    expect(existsSync(path)).toBe(false);
    expect(write(samples(10, 100), { maxBytes: 1000 }).durationS).toBe(0.4);
  });

  it.skipIf(!existsSync("/dev/full"))(
    "throws the file system's error if the disk is full, and removes the file",
    () => {
      const full = folder.path("full.mp4");
      symlinkSync("/dev/full", full);
      const error = errorOf(() => write(samples(10, 1_000_000), { path: full }));
      expect(error).toMatchObject({ code: "ENOSPC" });
      expect(diskError("download", error)).toMatchObject({ code: "disk_full" });
      expect(existsSync(full)).toBe(false);
    },
  );

  it("throws the file system's error if the file cannot be created", () => {
    const error = errorOf(() => new Mp4Writer({ path: folder.path("no-folder/out.mp4"), expectedS: 1 }));
    expect(error).toMatchObject({ code: "ENOENT" });
    expect(diskError("download", error)).toMatchObject({ code: "unavailable" });
  });

  it("refuses times that an MP4 cannot hold", () => {
    const [a, b] = [...samples(2, 10)] as [Sample, Sample];
    const code = "upstream_invalid";
    const apart = [a, { ...b, dts: 2 ** 33, pts: 2 ** 33 }];
    expect(() => write(apart)).toThrow(expect.objectContaining({ code }));
    expect(() => write([a, { ...b, pts: 2 ** 32 }])).toThrow(expect.objectContaining({ code }));
  });

  it("omits tables of composition offsets and sync samples that are not needed", () => {
    write(samples(10, 10));
    const bytes = readFileSync(path);
    const moov = [...boxesIn(bytes)].find(({ type }) => type === "moov")!;
    const types = (box = getChild(bytes, moov, "trak")): string[] => childrenOf(bytes, box).map(({ type }) => type);
    expect(types()).toEqual(["tkhd", "mdia"]);
    expect(types(getChild(bytes, moov, "trak", "mdia", "minf", "stbl"))).toEqual([
      "stsd",
      "stts",
      "stsc",
      "stsz",
      "stco",
    ]);
  });
});
