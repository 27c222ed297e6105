import { closeSync, openSync, readFileSync } from "node:fs";
import { join as nodeJoin } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { DownloadJob } from "../../src/engines/engine.ts";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { OggWriter } from "../../src/remux/audio-files/ogg-pages.ts";
import { box, fullBox, u32 } from "../../src/remux/mp4/boxes.ts";
import { makeFolder } from "../folder.ts";
import { openEntry } from "../contracts/engine/harness.ts";
import { layFiles, mediaPlaylist } from "../media/hls.ts";
import { join, readMedium, readRendition } from "../media/rendition.ts";
import { hls, merge, resource, type Resources } from "../media/resources.ts";
import { samplesIn } from "../remux/mp4-samples.ts";
import { adtsFrames, audioPid, avcPicture, createPacketMaker, videoPid } from "../remux/ts-packet-maker.ts";

const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
afterAll(() => engine.close());

async function warningsOf(resources: Resources, entry: string, job: Partial<DownloadJob> = {}): Promise<string[]> {
  await using harness = await openEntry(() => engine, resources, entry);
  const { warnings } = await harness.download(job);
  return warnings.map(({ code, message }) => `${code}: ${message}`);
}

const fileWarnings = (name: string, type: string, parts: readonly Uint8Array[]) =>
  warningsOf(new Map([[name, resource(type, Buffer.concat([...parts]))]]), name);

describe("Opus in an Ogg file that is kept as published", () => {
  /** Writes pages of ten packets of 20 ms, numbered in a row, without the pages `left`. */
  const warnings = async (left: readonly number[], leftOutOf = 40) => {
    const path = nodeJoin(makeFolder(), "sound.opus");
    const fd = openSync(path, "w");
    const writer = new OggWriter(fd);
    const head = Buffer.alloc(19);
    head.write("OpusHead\x01\x01", "latin1");
    head.writeUInt32LE(48_000, 12);
    writer.add(head, 0n, true);
    writer.add(Buffer.concat([Buffer.from("OpusTags"), Buffer.alloc(8)]), 0n, true);
    // 20 ms of CELT in one frame; the first bytes of a large one are on the page before.
    const packet = (size: number) => Buffer.alloc(size, 0xf8);
    for (let i = 0; i < leftOutOf * 10; i++) {
      const page = Math.floor(i / 10);
      if (!left.includes(page)) writer.add(packet(i % 10 === 4 ? 600 : 90), BigInt((i + 1) * 960), i % 10 === 9);
    }
    writer.finish();
    closeSync(fd);
    return fileWarnings("sound.opus", "audio/ogg", [readFileSync(path)]);
  };

  it("has a warning if pages were removed and the others numbered anew, and none if it is whole", async () => {
    expect(await warnings([])).toEqual([]);
    expect(await warnings([20])).toEqual(["frames_missing: packets of the audio are missing at 1 place"]);
    expect(await warnings([10, 20, 21])).toEqual(["frames_missing: packets of the audio are missing at 2 places"]);
  });

  it("has none if much is left out, as recorders of calls leave out silence", async () => {
    expect(await warnings([3, 7, 11, 15, 19, 23, 27])).toEqual([]);
  });
});

describe("packets of an Ogg file that is kept as published are missing if pages were removed and the others numbered anew", () => {
  const write = (add: (writer: OggWriter) => void): Buffer => {
    const path = nodeJoin(makeFolder(), "sound.ogg");
    const fd = openSync(path, "w");
    add(new OggWriter(fd));
    closeSync(fd);
    return readFileSync(path);
  };
  const missing = ["frames_missing: packets of the audio are missing at 1 place"];

  it("of Vorbis", async () => {
    const pages = pagesOf(readMedium("vorbis.ogg"));
    const last = pages.length - 1;
    const warnings = (left: number | null) => {
      const kept = pages.filter((_, index) => index !== left);
      const bytes = write((writer) => kept.forEach((page) => writer.copyPage(page)));
      return fileWarnings("sound.ogg", "audio/ogg", [bytes]);
    };
    expect(await warnings(null)).toEqual([]);
    expect(await warnings(last - 1)).toEqual(missing);
  });

  it("of FLAC", async () => {
    const blockSize = 4096;
    const streamInfo = Buffer.alloc(38);
    streamInfo.writeUInt32BE(34);
    for (const at of [4, 6]) streamInfo.writeUInt16BE(blockSize, at);
    streamInfo.writeUIntBE(48_000 << 4, 14, 3);
    const head = Buffer.concat([Buffer.from("\x7fFLAC\x01\0\0\x01fLaC", "latin1"), streamInfo]);
    const comments = Buffer.concat([Buffer.from([0x84, 0, 0, 8]), Buffer.alloc(8)]);
    const warnings = (left: number | null, lastSamples = 0) => {
      const bytes = write((writer) => {
        writer.add(head, 0n, true);
        writer.add(comments, 0n, true);
        for (let i = 0; i < 60; i++) {
          const frame = Buffer.concat([Buffer.from([0xff, 0xf8, 0xc9, 0x08, i]), Buffer.alloc(300, 0x55)]);
          if (Math.floor(i / 10) !== left) writer.add(frame, BigInt((i + 1) * blockSize), i % 10 === 9);
        }
        const last = Buffer.from([
          0xff,
          0xf8,
          0x79,
          0x08,
          60,
          (lastSamples - 1) >> 8,
          lastSamples - 1,
          ...Buffer.alloc(300),
        ]);
        if (lastSamples > 0) writer.add(last, BigInt(61 * blockSize));
        writer.finish();
      });
      return fileWarnings("sound.ogg", "audio/ogg", [bytes]);
    };
    expect(await warnings(null)).toEqual([]);
    expect(await warnings(3)).toEqual(missing);
    // The last block is shorter, and its page counts it as whole.
    expect(await warnings(null, 100)).toEqual([]);
    expect(await warnings(5, 100)).toEqual(missing);
  });
});

describe("an Ogg file that is kept as published", () => {
  const pages = pagesOf(readMedium("vorbis.ogg"));
  const warnings = (parts: readonly Buffer[]) => fileWarnings("sound.ogg", "audio/ogg", parts);
  const broken = (places: string) => [
    `frames_missing: pages of the file are missing, damaged or out of order at ${places}`,
  ];

  it("has no warning if its pages follow each other, whatever comes after the last one, also two streams in a row", async () => {
    expect(pages.length).toBeGreaterThan(3);
    expect(await warnings(pages)).toEqual([]);
    expect(await warnings([...pages, Buffer.alloc(128, "TAG")])).toEqual([]);
    expect(await warnings([...pages, ...pages])).toEqual([]);
  });

  it("has none if all pages have one number: a program that does not count", async () => {
    const alike = pages.map((page) => {
      const copy = Buffer.from(page);
      copy.writeUInt32LE(0, 18);
      return withChecksum(copy);
    });
    expect(await warnings(alike)).toEqual([]);
  });

  it("has a warning if a page is missing, twice there, in another place, or cut short", async () => {
    const [first, second, third, fourth, ...rest] = pages as [Buffer, Buffer, Buffer, Buffer, ...Buffer[]];
    const headers = [first, second];
    expect(await warnings([...headers, fourth, ...rest])).toEqual(broken("1 place"));
    expect(await warnings([...headers, third, third, fourth, ...rest])).toEqual(broken("1 place"));
    expect(await warnings([first, first, second, third, fourth, ...rest])).toEqual(broken("1 place"));
    expect(await warnings([...headers, third.subarray(0, -9), fourth, ...rest])).toEqual(broken("1 place"));
    expect(await warnings([...headers, fourth, third, ...rest])).toHaveLength(1);
  });

  it("has a warning, soon, if headers of large pages lie within each other", async () => {
    const [first, second, third] = pages as [Buffer, Buffer, Buffer];
    // Of 255 segments of 255 bytes; each would be read with what follows for every one of a million headers.
    const header = Buffer.alloc(27);
    header.write("OggS");
    header.writeUInt8(255, 26);
    const nested = Buffer.alloc(27 << 20, Buffer.concat([header, Buffer.alloc(27, 0xff)]));
    const found = await warnings([first, second, third, nested]);
    expect(found.filter((warning) => warning.startsWith("frames_missing: pages"))).toHaveLength(1);
  });

  it("has a warning if the bytes of a page are others than it was made with, also of the last one, or of all", async () => {
    const damaged = pages.map((page) => {
      const copy = Buffer.from(page);
      copy[copy.length - 1]! ^= 1;
      return copy;
    });
    const at = (...indexes: number[]) => pages.map((page, i) => (indexes.includes(i) ? damaged[i]! : page));
    expect(await warnings(at(3))).toEqual(broken("1 place"));
    expect(await warnings(at(2, 3))).toEqual(broken("1 place"));
    expect(await warnings(at(pages.length - 1))).toEqual(broken("1 place"));
    expect(await warnings(at(2, pages.length - 1))).toEqual(broken("2 places"));
    expect(await warnings([...pages.slice(0, 2), ...damaged.slice(2)])).toEqual(broken("1 place"));
  });
});

/** Writes the checksum of a page again (RFC 3533 §6). */
function withChecksum(page: Buffer): Buffer {
  page.writeUInt32LE(0, 22);
  let rest = 0;
  for (const byte of page) {
    rest ^= byte << 24;
    for (let bit = 0; bit < 8; bit++) rest = rest < 0 ? (rest << 1) ^ 0x04c11db7 : rest << 1;
  }
  page.writeUInt32LE(rest >>> 0, 22);
  return page;
}

function pagesOf(bytes: Buffer): Buffer[] {
  const pages: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += pages.at(-1)!.length) {
    const segments = bytes[at + 26]!;
    const body = bytes.subarray(at + 27, at + 27 + segments).reduce((sum, size) => sum + size, 0);
    pages.push(bytes.subarray(at, at + 27 + segments + body));
  }
  return pages;
}

describe("a file of MPEG-TS that is kept as published", () => {
  const film = join(readRendition("high.m2t"));
  const warnings = (...parts: Buffer[]) => fileWarnings("film.ts", "video/mp2t", parts);
  const middle = 188 * 100;
  const [first, second] = [film.subarray(0, middle), film.subarray(middle)];
  const broken = (places: string) => [`frames_missing: the file has bytes that are not packets at ${places}`];

  it("has no warning if all of it is packets, also with timestamps between them, several in a row, or with tags after them", async () => {
    const packets = Array.from({ length: film.length / 188 }, (_, i) => film.subarray(i * 188, (i + 1) * 188));
    expect(await warnings(film)).toEqual([]);
    expect(await warnings(...packets.flatMap((packet) => [Buffer.alloc(4), packet]))).toEqual([]);
    expect(await warnings(film, film)).toEqual([]);
    expect(await warnings(film, Buffer.alloc(128, "TAG"))).toEqual([]);
  });

  it("has a warning if other bytes are between packets, instead of them, or after them, or a part of one is missing", async () => {
    for (const bytes of [Buffer.alloc(1000), Buffer.alloc(1, "x"), Buffer.alloc(70_000, "other bytes")]) {
      expect(await warnings(first, bytes, second)).toEqual(broken("1 place"));
      expect(await warnings(first, bytes, first, bytes, second)).toEqual(broken("2 places"));
    }
    expect(await warnings(film, Buffer.alloc(1000))).toEqual(broken("1 place"));
    expect(await warnings(first, second.subarray(1000))).toEqual(broken("1 place"));
    expect(await warnings(Buffer.from(film).fill(0, middle, middle + 2000))).toEqual(broken("1 place"));
  });
});

describe("the packets of a file of MPEG-TS that is kept as published", () => {
  const film = join(readRendition("high.m2t"));
  const packets = Array.from({ length: film.length / 188 }, (_, i) => film.subarray(i * 188, (i + 1) * 188));
  const warnings = (...parts: Buffer[]) => fileWarnings("film.ts", "video/mp2t", parts);
  const missing = (places: string) => [`frames_missing: packets of the file are missing at ${places}`];
  const isStart = (packet: Buffer) => (packet[1]! & 0x40) !== 0;
  const pidOf = (packet: Buffer) => packet.readUInt16BE(1) & 0x1fff;
  /** Of the video, within a picture, after 100 packets. */
  const within = packets.findIndex(
    (packet, i) => i > 100 && pidOf(packet) === 256 && !isStart(packet) && !isStart(packets[i + 1]!),
  );

  it("have a warning if one is missing, also at several places, or is marked as damaged", async () => {
    expect(await warnings(...packets.toSpliced(within, 1))).toEqual(missing("1 place"));
    expect(await warnings(...packets, ...packets.toSpliced(within, 1), ...packets.toSpliced(within, 7))).toEqual(
      missing("2 places"),
    );
    const damaged = Buffer.from(packets[within]!);
    damaged[1]! |= 0x80;
    expect(await warnings(...packets.with(within, damaged))).toEqual(missing("1 place"));
  });

  it("have none if one is sent again, or the counters of all count packets without payload too", async () => {
    expect(await warnings(...packets.toSpliced(within, 0, packets[within]!))).toEqual([]);
    const clock = Buffer.alloc(188, 0xff);
    clock.writeUInt32BE(0x4701_0020 | (packets[within]![3]! & 0x0f));
    clock.writeUInt16BE(183 << 8, 4);
    const counted = packets.map((packet, i) => (i > within && pidOf(packet) === 256 ? withCounter(packet, 1) : packet));
    expect(await warnings(...packets.toSpliced(within + 1, 0, clock))).toEqual([]);
    expect(await warnings(...counted.toSpliced(within + 1, 0, withCounter(clock, 1)))).toEqual([]);
  });

  it("have none if counters begin again where files were put together, or a break is announced", async () => {
    const later = packets.map((packet) => withCounter(packet, 5));
    expect(await warnings(...packets, ...later)).toEqual([]);
    const start = packets.findIndex((packet, i) => i > within && pidOf(packet) === 256 && isStart(packet));
    expect(packets[start]![3]! & 0x20).toBe(0x20);
    const jumped = packets.map((packet, i) => (i >= start && pidOf(packet) === 256 ? later[i]! : packet));
    const announced = Buffer.from(jumped[start]!);
    announced[5]! |= 0x80;
    expect(await warnings(...jumped.with(start, announced))).toEqual([]);
  });
});

/** Returns the packet with another continuity_counter. */
function withCounter(packet: Buffer, more: number): Buffer {
  const copy = Buffer.from(packet);
  copy[3] = (copy[3]! & 0xf0) | ((copy[3]! + more) & 0x0f);
  return copy;
}

it("the audio of a file of MPEG-TS that is kept as published is in the languages that its program map says", async () => {
  const maker = createPacketMaker();
  const languages = ["eng", "deu"].map((code, i) => {
    const descriptors = Buffer.concat([Buffer.from([0x0a, 4]), Buffer.from(code), Buffer.alloc(1)]);
    return { pid: audioPid + i, streamType: 0x0f, descriptors };
  });
  const tables = maker.tables([{ pid: videoPid, streamType: 0x1b }, ...languages]);
  const pictures = Array.from({ length: 10 }, (_, i) => maker.pes(videoPid, 3600 * i, avcPicture(i === 0)));
  const film = Buffer.concat([tables, ...pictures, maker.pes(audioPid, 0, adtsFrames(5))]);
  const resources: Resources = new Map([["film.ts", resource("video/mp2t", film)]]);
  await using harness = await openEntry(() => engine, resources, "film.ts");
  const { audioLanguages, size } = await harness.download({ audioLanguages: ["de", "fr"] });
  expect([audioLanguages, size]).toEqual([["de"], film.length]);
});

describe("a fragmented MP4 file that is kept as published", () => {
  const rendition = readRendition("muxed.m4s");
  const order = (...indexes: number[]) =>
    fileWarnings("film.mp4", "video/mp4", [rendition.init!, ...indexes.map((index) => rendition.pieces[index]!.data)]);

  it("has no warning if its fragments are in order, or one is left out", async () => {
    expect(await fileWarnings("film.mp4", "video/mp4", [join(rendition)])).toEqual([]);
    expect(await order(0, 1, 3)).not.toContainEqual(expect.stringContaining("out of order"));
  });

  it("has a warning if all its fragments are in the reverse order", async () => {
    const last = rendition.pieces.length - 1;
    expect(await order(...rendition.pieces.map((_, i) => last - i))).toContainEqual(
      expect.stringContaining(`fragments of the file are out of order at ${last} places`),
    );
  });

  it("has none if neither their numbers nor their times say an order", async () => {
    const unnumbered = rendition.pieces.map(({ data }) => {
      const copy = Buffer.from(data);
      copy.writeUInt32BE(1, copy.indexOf("mfhd") + 8);
      for (let at = copy.indexOf("tfdt"); at >= 0; at = copy.indexOf("tfdt", at + 4))
        copy.fill(0, at + 8, at + (copy[at + 4] === 1 ? 16 : 12));
      return copy;
    });
    expect(await fileWarnings("film.mp4", "video/mp4", [rendition.init!, ...unnumbered])).not.toContainEqual(
      expect.stringContaining("out of order"),
    );
  });

  it("has a warning if its index at the end lists more of them than there are, wherever they are", async () => {
    const { init, pieces } = rendition;
    // GStreamer lists one at the start of the file, too.
    const index = mfra([0, ...pieces.map((_, i) => (i + 1) * 1_000).flatMap((offset) => [offset, offset])]);
    const media = pieces.map(({ data }) => data);
    expect(await fileWarnings("film.mp4", "video/mp4", [init!, ...media, index])).toEqual([]);
    expect(await fileWarnings("film.mp4", "video/mp4", [init!, ...media.slice(1), index])).toContain(
      "frames_missing: fragments of the file are missing or damaged at 1 place",
    );
  });

  it("has none if its index at the end is damaged, which players do not need", async () => {
    const index = Buffer.from(mfra([0, 1_000]));
    index.writeUInt32BE(0xffffffff, index.indexOf("tfra") + 16);
    expect(await fileWarnings("film.mp4", "video/mp4", [join(rendition), index])).toEqual([]);
  });

  it("has a warning if the boxes within a fragment are damaged, also if only a part of it is wanted", async () => {
    const { init, pieces } = rendition;
    const [first, second, ...rest] = pieces.map(({ data }) => Buffer.from(data)) as [Buffer, Buffer, ...Buffer[]];
    const moof = second.indexOf("moof");
    second.fill(0, moof + 4, moof - 4 + second.readUInt32BE(moof - 4));
    const film = [init!, first, second, ...rest];
    const damaged = ["frames_missing: fragments of the file are missing or damaged at 1 place"];
    expect(await fileWarnings("film.mp4", "video/mp4", film)).toEqual(damaged);
    const resources = new Map([["film.mp4", resource("video/mp4", Buffer.concat(film))]]);
    expect(await warningsOf(resources, "film.mp4", { ranges: [{ startS: 0, endS: 1 }] })).toEqual(damaged);
  });

  it("has none if a fragment has no samples", async () => {
    const { init, pieces } = rendition;
    const [first, ...rest] = pieces.map(({ data }) => data);
    const empty = box("moof", fullBox("mfhd", 0, 0, u32(99)));
    expect(await fileWarnings("film.mp4", "video/mp4", [init!, first!, empty, ...rest])).toEqual([]);
  });

  it("has none if its fragments have one number, but times in order", async () => {
    const bytes = Buffer.from(join(rendition));
    for (let at = bytes.indexOf("mfhd"); at >= 0; at = bytes.indexOf("mfhd", at + 4)) bytes.writeUInt32BE(0, at + 8);
    expect(await fileWarnings("film.mp4", "video/mp4", [bytes])).toEqual([]);
  });

  it("has none if its fragments have no number: players need none", async () => {
    const bytes = Buffer.from(join(rendition));
    for (let at = bytes.indexOf("mfhd"); at >= 0; at = bytes.indexOf("mfhd", at + 4)) {
      bytes.write("\0\0\0\x08mfhd\0\0\0\x08free", at - 4, "latin1");
    }
    expect(await fileWarnings("film.mp4", "video/mp4", [bytes])).toEqual([]);
  });

  it("has a warning if its fragments are of tracks that its header does not list, and another one what is made of its other tracks", async () => {
    const { init, pieces } = rendition;
    const media = pieces.map(({ data }) => withTrackId(data, 2, 7));
    const film = [init!, ...media];
    expect(await fileWarnings("film.mp4", "video/mp4", film)).toEqual([
      `frames_missing: fragments of the file have tracks that its header does not list at ${pieces.length} places`,
    ]);
    const resources = new Map([["film.mp4", resource("video/mp4", Buffer.concat(film))]]);
    expect(await warningsOf(resources, "film.mp4", { ranges: [{ startS: 0, endS: 1 }] })).toEqual([
      "track_missing: the media list audio, the file has none",
    ]);
  });

  it("has a warning if its fragments were moved, and say where their media were, but not what is made of it", async () => {
    const { init, pieces } = rendition;
    const at = (moved: number) => {
      let start = init!.length + moved;
      return pieces.map(({ data }) => {
        const placed = withPlace(data, start);
        start += placed.length;
        return placed;
      });
    };
    expect(await fileWarnings("film.mp4", "video/mp4", [init!, ...at(0)])).toEqual([]);
    const film = [init!, ...at(100_000)];
    expect(await fileWarnings("film.mp4", "video/mp4", film)).toEqual([
      `frames_missing: fragments of the file do not say where their media are at ${pieces.length} places`,
    ]);
    const resources = new Map([["film.mp4", resource("video/mp4", Buffer.concat(film))]]);
    expect(await warningsOf(resources, "film.mp4", { ranges: [{ startS: 0, endS: 1 }] })).toEqual([]);
  });

  it("may have the media of each fragment before it, unless it says that they are those of the one before", async () => {
    const { init, pieces } = rendition;
    const inFront = (moved: number) => {
      const parts = [init!];
      for (const { data } of pieces) {
        const start = Math.max(0, parts.reduce((sum, { length }) => sum + length, 0) - moved);
        const fragment = data.subarray(data.indexOf("moof") - 4);
        const dataAt = withPlace(fragment, 0).indexOf("mdat") - 4;
        const placed = withPlace(fragment, Math.max(0, start - dataAt));
        parts.push(placed.subarray(dataAt), placed.subarray(0, dataAt));
      }
      return Buffer.concat(parts);
    };
    const film = inFront(0);
    expect(await fileWarnings("film.mp4", "video/mp4", [film])).toEqual([]);
    expect(await samplesOf(film)).toEqual(await samplesOf(join(rendition)));
    expect(await fileWarnings("film.mp4", "video/mp4", [inFront(pieces[0]!.data.length)])).toEqual([
      `frames_missing: fragments of the file do not say where their media are at ${pieces.length - 1} places`,
    ]);
  });

  it("has a warning if more than 64 KiB at its end are no boxes", async () => {
    const rest = (bytes: number) => fileWarnings("film.mp4", "video/mp4", [join(rendition), Buffer.alloc(bytes)]);
    expect(await rest(60_000)).toEqual([]);
    const damaged = ["frames_missing: the file ends with bytes that are no boxes"];
    expect(await rest(70_000)).toEqual(damaged);
    const resources = new Map([
      ["film.mp4", resource("video/mp4", Buffer.concat([join(rendition), Buffer.alloc(70_000)]))],
    ]);
    expect(await warningsOf(resources, "film.mp4", { ranges: [{ startS: 1, endS: 60 }] })).toEqual(damaged);
  });

  it("has a warning if a fragment is twice there, or comes after a later one", async () => {
    for (const indexes of [
      [0, 1, 1, 2],
      [2, 1, 2, 3],
    ]) {
      expect(await order(...indexes)).toContainEqual(
        expect.stringContaining("fragments of the file are out of order at 1 place"),
      );
    }
  });
});

/** Returns a fragment of which the track `from` has the id `to`. */
function withTrackId(fragment: Uint8Array, from: number, to: number): Buffer {
  const copy = Buffer.from(fragment);
  for (let at = copy.indexOf("tfhd"); at >= 0; at = copy.indexOf("tfhd", at + 4)) {
    if (copy.readUInt32BE(at + 8) === from) copy.writeUInt32BE(to, at + 8);
  }
  return copy;
}

/** Returns a fragment at `start` of a file whose offsets count from the start of that file (`tfhd`, ISO/IEC 14496-12 §8.8.7). */
function withPlace(fragment: Uint8Array, start: number): Buffer {
  const bytes = Buffer.from(fragment);
  const moof = bytes.indexOf("moof") - 4;
  const tracks = bytes.toString("latin1", 0, bytes.indexOf("mdat")).split("tfhd").length - 1;
  let placed = bytes;
  for (let at = placed.indexOf("tfhd"); at >= 0; at = placed.indexOf("tfhd", at + 4)) {
    const base = Buffer.alloc(8);
    base.writeBigUInt64BE(BigInt(start + moof));
    placed.writeUInt32BE((placed.readUInt32BE(at + 4) & ~0x020000) | 1, at + 4);
    placed.writeUInt32BE(placed.readUInt32BE(at - 4) + base.length, at - 4);
    placed = Buffer.concat([placed.subarray(0, at + 12), base, placed.subarray(at + 12)]);
  }
  for (let at = placed.indexOf("traf"); at >= 0; at = placed.indexOf("traf", at + 4)) {
    placed.writeUInt32BE(placed.readUInt32BE(at - 4) + 8, at - 4);
  }
  for (let at = placed.indexOf("trun"); at >= 0; at = placed.indexOf("trun", at + 4)) {
    placed.writeInt32BE(placed.readInt32BE(at + 12) + 8 * tracks, at + 12);
  }
  placed.writeUInt32BE(placed.readUInt32BE(moof) + 8 * tracks, moof);
  return placed;
}

/** Returns the samples in what is made of all of an MP4 file. */
async function samplesOf(film: Buffer) {
  await using harness = await openEntry(() => engine, new Map([["film.mp4", resource("video/mp4", film)]]), "film.mp4");
  const { path, warnings } = await harness.download({ ranges: [{ startS: 0, endS: 60 }] });
  expect(warnings).toEqual([]);
  return samplesIn(path);
}

/** Returns an index of fragments at `offsets` for one track. */
function mfra(offsets: readonly number[]): Uint8Array {
  const entries = offsets.map((offset) => {
    const entry = Buffer.alloc(19);
    entry.writeBigUInt64BE(BigInt(offset), 8);
    return entry;
  });
  const head = Buffer.from([1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, offsets.length]);
  return box("mfra", box("tfra", head, ...entries), box("mfro", Buffer.alloc(8)));
}

describe("a WebM file", () => {
  const film = readMedium("vp9-opus.webm");
  const simpleBlocks = [...film.toString("latin1").matchAll(/\xa3(?:[\x80-\xff]|[\x40-\x7f].)\x81/gs)];

  /** Where a lace does not fit into its block. */
  function withDamagedLace(frames = 0xff): Buffer {
    const { index, 0: head } = simpleBlocks[3]!;
    const damaged = Buffer.from(film);
    const ebmlLace = 0x06;
    // Track, time in two bytes, flags, count of frames, sizes.
    damaged[index + head.length + 2] = damaged[index + head.length + 2]! | ebmlLace;
    damaged.fill(0xff, index + head.length + 3, index + head.length + 6);
    damaged[index + head.length + 3] = frames;
    return damaged;
  }

  async function copyWarnings(bytes: Buffer): Promise<string[]> {
    const resources: Resources = new Map([["film.webm", resource("video/webm", bytes)]]);
    await using harness = await openEntry(() => engine, resources, "film.webm");
    const { warnings } = await harness.download({ embed: "all" });
    return warnings.map(({ code }) => code);
  }

  it("has no warning if it is right, as published or with tags", async () => {
    expect(await fileWarnings("film.webm", "video/webm", [film])).toEqual([]);
    expect(await copyWarnings(film)).toEqual([]);
  });

  it.each([255, 0])(
    "has a warning as published if a lace does not fit into its block: of %i frames and one",
    async (frames) => {
      const warnings = await fileWarnings("film.webm", "video/webm", [withDamagedLace(frames)]);
      expect(warnings).toEqual(["frames_missing: blocks of the file have damaged frames at 1 place"]);
    },
  );

  it("has no tags, and warnings, if a lace does not fit into its block", async () => {
    expect(await copyWarnings(withDamagedLace())).toEqual(["not_embedded", "frames_missing"]);
  });
});

describe("a list of segments of MPEG-TS", () => {
  const { resources, lines } = layFiles("ts", readRendition("high.m2t"), "ts");
  const served = (change: ReadonlyMap<string, (bytes: Buffer) => Buffer>): Resources =>
    merge(
      new Map([...resources].map(([path, { type, body }]) => [path, resource(type, change.get(path)?.(body) ?? body)])),
      new Map([["index.m3u8", hls(mediaPlaylist(lines))]]),
    );
  const packets = (count: number) => (bytes: Buffer) => bytes.subarray(0, count * 188);

  it("has no warning if all segments have media", async () => {
    expect(await warningsOf(served(new Map()), "index.m3u8")).toEqual([]);
  });

  it.each([2, 3])("has a warning if the first segment has nothing but %i packets of its tables", async (count) => {
    const warnings = await warningsOf(served(new Map([["ts/0.ts", packets(count)]])), "index.m3u8");
    expect(warnings).toContainEqual(expect.stringMatching(/^frames_missing: video is damaged at 1 place/));
  });
});
