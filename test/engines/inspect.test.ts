import { writeFileSync } from "node:fs";
import { join as joinPath } from "node:path";
import { describe, expect, it } from "vitest";
import { describeFiles } from "../../src/engines/native/inspect/describe.ts";
import { inspectFile } from "../../src/engines/native/inspect/inspect.ts";
import { ascii, box, u16 } from "../../src/remux/mp4/boxes.ts";
import { Mp4Writer } from "../../src/remux/mp4/write/writer.ts";
import type { TrackFormat } from "../../src/remux/samples.ts";
import { join, readMedium, readRendition } from "../media/rendition.ts";
import { fillPattern, videoFormat } from "../remux/mp4-samples.ts";
import { makeSharedFolder } from "../folder.ts";

const folder = makeSharedFolder();
const path = joinPath(folder, "file");

const inspect = (body: Uint8Array, isLengthKnown = true) => {
  writeFileSync(path, body);
  return inspectFile(path, isLengthKnown);
};

/** An `avc1` of this size with further boxes. */
function entryOf(width: number, height: number, ...boxes: Uint8Array[]): Uint8Array {
  const head = Buffer.from(videoFormat.sampleEntry.subarray(8));
  head.writeUInt16BE(width, 24);
  head.writeUInt16BE(height, 26);
  return box("avc1", head, ...boxes);
}

function writeMp4(...entries: Uint8Array[]): void {
  const writer = new Mp4Writer({ path, expectedS: 1 });
  const formats = entries.map((sampleEntry): TrackFormat => ({ ...videoFormat, sampleEntry }));
  const track = writer.setFormat(formats[0]!);
  for (const [i, format] of formats.entries()) {
    writer.setFormat(format, track);
    const times = { dts: i * 25_000, pts: i * 25_000, duration: 25_000 };
    writer.write(track, { data: fillPattern(20, i), ...times, isSync: true });
  }
  writer.finish();
}

describe("an MP4 file", () => {
  it("is read whatever the boxes of its decoders are", async () => {
    writeMp4(entryOf(64, 36, box("avcC", u16(0xffff)), box("colr", ascii("nclx"), u16(1, 1, 1))));
    const info = { ext: "mp4", mime_type: "video/mp4", duration: 1, width: 64, height: 36 };
    expect(await inspectFile(path)).toEqual(info);
  });

  it("has the size of its first sample entry, in square pixels", async () => {
    const wide = box("pasp", Buffer.from([0, 0, 0, 4, 0, 0, 0, 3]));
    writeMp4(entryOf(48, 36, wide), entryOf(640, 360));
    expect(await inspectFile(path)).toMatchObject({ width: 64, height: 36, duration: 2 });
  });

  it("has the duration of its fragments, wherever their times start", async () => {
    const { duration } = await inspect(join(readRendition("muxed.m4s")));
    expect(duration).toBeGreaterThan(5.9);
    expect(duration).toBeLessThan(6.1);
  });

  it("is refused if it is encrypted", async () => {
    const error = { code: "drm_protected" };
    await expect(inspect(readMedium("locked.m4s"))).rejects.toMatchObject(error);
  });
});

describe("a transport stream", () => {
  it("lasts from its first presentation time to the end of the last, after hours too", async () => {
    const stream = join(readRendition("high.m2t"));
    const info = { ext: "ts", mime_type: "video/mp2t", width: 160, height: 90 };
    const early = await inspect(stream);
    expect(early).toMatchObject(info);
    expect(Math.abs((early.duration ?? 0) - 6)).toBeLessThan(0.1);
    const late = await inspect(delay(stream, 36_000));
    expect(late.duration).toBeCloseTo(early.duration ?? 0, 3);
    const wrapped = await inspect(delay(stream, 2 ** 33 / 90_000 - 3));
    expect(wrapped.duration).toBeCloseTo(early.duration ?? 0, 3);
  });

  it("is kept whatever its codecs are", async () => {
    // The stream types of H.264 and AAC in the program map become MPEG-2 video and AAC in LATM.
    const stream = join(readRendition("high.m2t"));
    for (let at = 0; at < stream.length; at += 188) {
      const map = stream.subarray(at, at + 188);
      if (map[5] !== 0x02 || (map[1]! & 0x40) === 0) continue;
      map[map.indexOf(0x1b, 12)] = 0x02;
    }
    expect(await inspect(stream)).toMatchObject({ ext: "ts", width: null });
  });

  it("without audio and video is refused", async () => {
    const packet = Buffer.alloc(188, 0xff);
    packet.set([0x47, 0x1f, 0xff, 0x10]);
    const stream = Buffer.concat(Array.from({ length: 100 }, () => packet));
    const error = {
      code: "upstream_invalid",
      message: expect.stringContaining("no audio or video"),
    };
    await expect(inspect(stream)).rejects.toMatchObject(error);
  });
});

describe("audio in frames", () => {
  const id3 = Buffer.from("ID3\x04\0\0\0\0\0\x05hello", "latin1");
  const ac3Frame = Buffer.alloc(256);
  // 48 kHz, 64 kbit/s, bsid 8, stereo: 1536 samples in 256 bytes.
  ac3Frame.set([0x0b, 0x77, 0, 0, 0x08, 0x40, 0x40]);
  const ac3 = Buffer.concat(Array.from({ length: 25 }, () => ac3Frame));
  const aac = readMedium("tone.aac");

  it("is read to its end: AC-3", async () => {
    const info = { ext: "ac3", mime_type: "audio/ac3", duration: 0.8, width: null, height: null };
    expect(await inspect(ac3)).toEqual(info);
    expect(await inspect(Buffer.concat([id3, ac3]))).toEqual(info);
  });

  it("is read to its end: AAC, with tags before, between and after the frames", async () => {
    const { duration, ...kind } = await inspect(aac);
    expect(kind).toMatchObject({ ext: "aac", mime_type: "audio/aac" });
    expect(Math.abs((duration ?? 0) - 6)).toBeLessThan(0.1);
    const end = Buffer.alloc(128, "TAG");
    const tagged = Buffer.concat([id3, id3, aac, id3, aac, end]);
    expect((await inspect(tagged)).duration).toBeCloseTo(2 * (duration ?? 0), 6);
  });

  it("whose last frame is cut off was truncated, unless the server stated this size", async () => {
    const truncated = { code: "upstream_unreachable" };
    for (const cut of [ac3.subarray(0, -100), ac3.subarray(0, -253), aac.subarray(0, -2)]) {
      await expect(inspect(cut, false)).rejects.toMatchObject(truncated);
      expect(await inspect(cut, true)).toMatchObject({ width: null });
    }
  });

  it("with more garbage than frames is refused", async () => {
    const noise = Buffer.concat([ac3, Buffer.alloc(100_000, 0x5a), ac3]);
    await expect(inspect(noise)).rejects.toMatchObject({ code: "upstream_invalid" });
  });
});

it.each([
  ["HTML", "\ufeff<!DOCTYPE html><html><title>Not found</title>"],
  ["HTML or XML", '<?xml version="1.0"?><Error><Code>AccessDenied</Code></Error>'],
  ["JSON", '{"error":"this video is not available any more"}'],
  ["M3U, a list of media", "#EXTM3U\n#EXTINF:-1,Radio\nhttp://radio.example/live\n"],
  ["PLS, a list of media", "[playlist]\r\nFile1=http://radio.example/live.mp3\r\n"],
  ["plain text", "Service temporarily overloaded, sorry\n"],
])("a file that is text is refused as that: %s", async (kind, body) => {
  const message = `the downloaded file is text (${kind}), not media`;
  await expect(inspect(Buffer.from(body))).rejects.toMatchObject({ code: "upstream_invalid", message });
});

describe("audio of other codecs is kept:", () => {
  it("ADPCM in WAVE", async () => {
    const format = Buffer.alloc(20);
    format.writeUInt16LE(0x11, 0);
    format.writeUInt16LE(1, 2);
    format.writeUInt32LE(8000, 4);
    format.writeUInt32LE(4055, 8);
    const wave = riff("WAVE", chunk("fmt ", format), chunk("data", Buffer.alloc(8110)));
    const info = { ext: "wav", mime_type: "audio/wav", duration: 2 };
    expect(await inspect(wave)).toMatchObject(info);
    const fact = chunk("fact", Buffer.from([0x80, 0x3e, 0, 0]));
    const counted = riff("WAVE", chunk("fmt ", format), fact, chunk("data", Buffer.alloc(9000)));
    expect(await inspect(counted)).toMatchObject(info);
  });

  it("AAC in CAF whose data have no size, but a table of packets before them", async () => {
    const part = (type: string, size: number, body: Buffer) => {
      const head = Buffer.alloc(12, type);
      head.writeBigInt64BE(BigInt(size), 4);
      return Buffer.concat([head, body]);
    };
    const [description, table] = [Buffer.alloc(32), Buffer.alloc(24)];
    description.writeDoubleBE(48_000);
    description.writeUInt32BE(1024, 20);
    table.writeBigInt64BE(96_000n, 8);
    const start = [Buffer.from("caff\0\x01\0\0", "latin1"), part("desc", 32, description), part("pakt", 24, table)];
    const caf = Buffer.concat([...start, part("data", -1, Buffer.alloc(1000))]);
    expect(await inspect(caf)).toMatchObject({ ext: "caf", duration: 2 });
  });

  it("FLAC in Ogg", async () => {
    const packet = Buffer.alloc(51);
    packet.write("\x7fFLAC\x01\0\0\0fLaC\0\0\0\x22", "latin1");
    packet.writeUIntBE(48_000 * 16, 27, 3);
    const ogg = Buffer.concat([page(0n, packet), page(96_000n, Buffer.alloc(100))]);
    const info = { ext: "ogg", mime_type: "audio/ogg", duration: 2 };
    expect(await inspect(ogg)).toMatchObject(info);
    const cutOff = page(192_000n, Buffer.alloc(100)).subarray(0, -1);
    expect(await inspect(Buffer.concat([ogg, cutOff])), "its last page is cut off").toMatchObject(info);
    const pages = [page(0n, packet.subarray(9, 13)), page(0n, packet.subarray(13)), page(96_000n, Buffer.alloc(100))];
    expect(await inspect(Buffer.concat(pages)), "as VLC writes it").toMatchObject(info);
  });
});

it("states no duration of an Ogg file of streams that follow each other, each with times of its own", async () => {
  const link = readMedium("vorbis.ogg");
  const { duration } = await inspect(link);
  expect(duration).toBeGreaterThan(0);
  expect(await inspect(Buffer.concat([link, link]))).toMatchObject({ ext: "ogg", duration: null });
});

describe("a header of plain audio that says nonsense", () => {
  const caf = (size: bigint) => {
    const data = Buffer.alloc(20, "data");
    data.writeBigInt64BE(size, 4);
    return Buffer.concat([Buffer.from("caff\0\x01\0\0", "latin1"), data, Buffer.alloc(40)]);
  };
  it.each([
    ["a size below 0", caf(-(2n ** 63n))],
    ["a size beyond all files", caf(2n ** 63n - 1n)],
    ["chunks of no length", Buffer.concat([Buffer.from("FORM\0\0\x01\0AIFF", "latin1"), Buffer.alloc(70_000)])],
    ["a rate of 0", Buffer.concat([Buffer.from(".snd\0\0\0\x18", "latin1"), Buffer.alloc(100)])],
  ])("leaves the duration unknown: %s", async (_, bytes) => {
    expect(await inspect(bytes)).toMatchObject({ duration: null, width: null });
  });
});

describe("a message names what cannot be written:", () => {
  it("FLV and its codecs", async () => {
    const tag = (type: number, first: number, codec = "") =>
      Buffer.concat([
        Buffer.from([type, 0, 0, 1 + codec.length, 0, 0, 0, 0, 0, 0, 0, first]),
        Buffer.from(codec),
        Buffer.alloc(4),
      ]);
    const head = Buffer.from("FLV\x01\x05\0\0\0\x09\0\0\0\0", "latin1");
    writeFileSync(path, Buffer.concat([head, tag(9, 0x12), tag(8, 0x2f)]));
    expect(await describeFiles([path])).toBe("FLV with Sorenson H.263 and MP3");
    writeFileSync(path, Buffer.concat([head, tag(9, 0x94, "hvc1"), tag(8, 0x94, "Opus")]));
    expect(await describeFiles([path])).toBe("FLV with hvc1 and Opus");
  });

  it("AVI and its codecs", async () => {
    const video = chunk("strh", Buffer.alloc(56, "vidsXVID"));
    const size = Buffer.alloc(40);
    size.write("XVID", 16);
    const audio = chunk("strh", Buffer.alloc(56, "auds\0\0\0\0"));
    const body = [video, chunk("strf", size), audio, chunk("strf", Buffer.from([0x55, 0]))];
    writeFileSync(path, riff("AVI ", ...body, Buffer.alloc(64)));
    expect(await describeFiles([path])).toBe("AVI with XVID and MP3");
  });

  it("the kind of a file whose codecs cannot be read, and no kind of what is none", async () => {
    writeFileSync(path, Buffer.concat([Buffer.from("FORM\0\0\x01\0AIFF", "latin1"), Buffer.alloc(500)]));
    expect(await describeFiles([path])).toBe("AIFF");
    writeFileSync(path, Buffer.alloc(500));
    expect(await describeFiles([path])).toBe("a file of an unknown container");
  });
});

describe("an MP3 without a table of its frames", () => {
  /** Frames of MPEG-1 layer III at 44.1 kHz. */
  const frames = (header: string, bytes: number, count: number) =>
    Buffer.concat(
      Array.from({ length: count }, () => Buffer.concat([Buffer.from(header, "hex"), Buffer.alloc(bytes - 4)])),
    );
  const first = frames("fffbe064", 1044, 1);
  const secondsOf = (count: number) => (count * 1152) / 44_100;

  it("lasts as long as its frames do, whatever their bit rates and the tags around them are", async () => {
    const tag = Buffer.alloc(128);
    tag.write("TAG");
    const { ext, duration } = await inspect(Buffer.concat([first, frames("fffb5064", 208, 200), tag]));
    expect(ext).toBe("mp3");
    expect(duration).toBeCloseTo(secondsOf(201), 3);
  });

  it("lasts as long as its first frame lets expect if most of it is damaged", async () => {
    const { duration } = await inspect(Buffer.concat([first, frames("fffbe064", 1044, 100), Buffer.alloc(200_000)]));
    expect(duration).toBeGreaterThan(secondsOf(101));
  });
});

describe("audio that begins within a frame, as recorded radio does,", () => {
  it.each([
    ["mp3", "tone.mp3", 900],
    ["aac", "tone.aac", 30],
  ] as const)("is read from the next frame on: %s", async (ext, name, cutBytes) => {
    const file = readMedium(name);
    const whole = await inspect(file);
    const { duration, ...info } = await inspect(file.subarray(cutBytes));
    expect(info.ext).toBe(ext);
    expect(duration).toBeLessThan(whole.duration! + 0.1);
    expect(duration).toBeGreaterThan(whole.duration! - 0.2);
  });

  it("is told from other bytes by three frames in a row, in the first 4 KiB", async () => {
    const file = readMedium("tone.aac");
    const other = Buffer.alloc(5_000, "no frame ");
    await expect(inspect(Buffer.concat([other, file]))).rejects.toMatchObject({ code: "upstream_invalid" });
    const two = Buffer.concat([Buffer.alloc(40, "no"), file.subarray(0, file.indexOf("\xff\xf1", 1, "latin1")), other]);
    await expect(inspect(two)).rejects.toMatchObject({ code: "upstream_invalid" });
  });
});

/** What the table of this file says that decoders leave out at its start and at its end, samples. */
const [leadSamples, paddingSamples] = [576 + 529, 576 - 529];

it("an MP3 with such a table lasts as long as it is heard, and without what that says is left out as all its frames", async () => {
  const file = Buffer.from(readMedium("tone.mp3"));
  const { duration } = await inspect(file);
  expect(duration).toBeCloseTo(6, 3);
  file.write("none", file.indexOf("Lavf"));
  const whole = await inspect(file);
  expect(whole.duration! - duration!).toBeCloseTo((leadSamples + paddingSamples) / 48_000, 3);
});

it("MP3 files that were put together last as long as all of them", async () => {
  const file = readMedium("tone.mp3");
  const { duration } = await inspect(file);
  const together = await inspect(Buffer.concat([file, file]));
  // The table of the second one is a frame, too, and only the start of all is left out.
  const more = 1152 + leadSamples + 2 * paddingSamples;
  expect(together.duration! - 2 * duration!).toBeCloseTo(more / 48_000, 3);
});

function chunk(id: string, body: Buffer): Buffer {
  const head = Buffer.alloc(8);
  head.write(id);
  head.writeUInt32LE(body.length, 4);
  return Buffer.concat([head, body]);
}

function riff(type: string, ...chunks: Buffer[]): Buffer {
  return chunk("RIFF", Buffer.concat([Buffer.from(type), ...chunks]));
}

/** An Ogg page (RFC 3533 §6) with one packet of less than 255 bytes. */
function page(granule: bigint, packet: Buffer): Buffer {
  const head = Buffer.alloc(28);
  head.write("OggS");
  head.writeBigInt64LE(granule, 6);
  head.writeUInt32LE(7, 14);
  head.set([1, packet.length], 26);
  return Buffer.concat([head, packet]);
}

/** Returns the transport stream with all its presentation and decode times later. */
function delay(stream: Buffer, seconds: number): Buffer {
  const moved = Buffer.from(stream);
  for (let at = 0; at < moved.length; at += 188) {
    if ((moved[at + 1]! & 0x40) === 0) continue;
    const body = at + 4 + (moved[at + 3]! & 0x20 ? 1 + moved[at + 4]! : 0);
    if (moved.readUIntBE(body, 3) !== 1) continue;
    const flags = moved[body + 7]!;
    if (flags & 0x80) moveStamp(moved, body + 9, seconds);
    if (flags & 0x40) moveStamp(moved, body + 14, seconds);
  }
  return moved;
}

function moveStamp(bytes: Buffer, at: number, seconds: number): void {
  const high = (bytes[at]! >> 1) & 7;
  const low = (bytes.readUInt16BE(at + 1) >> 1) * 2 ** 15 + (bytes.readUInt16BE(at + 3) >> 1);
  const stamp = (high * 2 ** 30 + low + Math.round(seconds * 90_000)) % 2 ** 33;
  bytes[at] = (bytes[at]! & 0xf1) | (Math.floor(stamp / 2 ** 30) << 1);
  bytes.writeUInt16BE(((Math.floor(stamp / 2 ** 15) % 2 ** 15) << 1) | 1, at + 1);
  bytes.writeUInt16BE(((stamp % 2 ** 15) << 1) | 1, at + 3);
}

describe("a Matroska file", () => {
  /** The film with other bytes in place of the first that are these. */
  const filmWith = (before: string, after: string): Buffer => {
    const film = readMedium("h264-aac.mkv");
    Buffer.from(after, "hex").copy(film, film.indexOf(Buffer.from(before, "hex")));
    return film;
  };

  it("has video that is disabled, if no other is enabled", async () => {
    // FlagEnabled instead of FlagLacing of the first track.
    const whole = { ext: "mkv", mime_type: "video/x-matroska", width: 160, height: 90 };
    expect(await inspect(filmWith("9c8100", "b98100"))).toMatchObject(whole);
  });

  it("has video whose frames are compressed, as its header says", async () => {
    // ContentEncodings with zlib instead of TrackUID of the first track.
    const info = await inspect(filmWith("73c588", "6d8088624085503482ec80"));
    expect(info).toMatchObject({ ext: "mkv", mime_type: "video/x-matroska", width: null });
    expect(info.duration).toBeGreaterThan(5.9);
  });
});
