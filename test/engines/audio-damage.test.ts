import { describe, expect, it } from "vitest";
import { readMedium } from "../media/rendition.ts";
import { checksum, flacFrame, flacStart } from "./flac-maker.ts";
import { openDownloadDamage } from "./download-damage.ts";

const { damageOf } = openDownloadDamage();

const broken = (places: string) => [`frames of the file are missing, damaged or out of order at ${places}`];

const id3v1 = Buffer.alloc(128, "TAG");
const id3v2 = Buffer.concat([Buffer.from("ID3\x04\0\0\0\0\x02\0", "latin1"), Buffer.alloc(256, "tag ")]);
const apeFooter = Buffer.alloc(32);
apeFooter.write("APETAGEX", "latin1");
apeFooter.writeUInt32LE(1000, 8);
apeFooter.writeUInt32LE(132, 12);
const ape = Buffer.concat([Buffer.alloc(100, "item"), apeFooter]);
const lyrics = Buffer.from("LYRICSBEGININD0000200LYR00004words000031LYRICS200", "latin1");

/** A frame whose header is `header`, in hexadecimal; nothing after it looks like another one. */
const frame = (header: string, size: number) =>
  Buffer.concat([Buffer.from(header, "hex"), Buffer.alloc(size, 0x55)], size);
const row = (each: Buffer, count = 60) => Buffer.concat(Array.from({ length: count }, () => each));

const mp3 = readMedium("tone.mp3");
/** Without its tag, and the frame that says how many there are. */
const mp3Frames = mp3.subarray(20 + 192);
const aac = readMedium("tone.aac");
/** A file of each kind, and one with other parameters that may follow it. */
const kinds = {
  MP3: ["sound.mp3", "audio/mpeg", mp3Frames, row(frame("fffb5044", 208))],
  "MP3 of MPEG-2": ["sound.mp3", "audio/mpeg", row(frame("fff380c4", 208)), row(frame("fff340c4", 104))],
  "MP3 of MPEG-2.5": ["sound.mp3", "audio/mpeg", row(frame("ffe318c4", 72)), row(frame("ffe328c4", 144))],
  "AAC in ADTS": ["sound.aac", "audio/aac", aac, row(frame("fff160401800fc", 192))],
  "AC-3": ["sound.ac3", "audio/ac3", row(frame("0b77000008404000", 256)), row(frame("0b77000008404000", 256))],
  "E-AC-3": ["sound.eac3", "audio/eac3", row(frame("0b77007f348000", 256)), row(frame("0b77007f348000", 256))],
} as const;

describe.each(Object.entries(kinds))("a file of %s that is kept as published", (_kind, [name, type, file, other]) => {
  const damage = (...parts: Uint8Array[]) => damageOf(name, type, parts);
  /** Not where frames begin. */
  const [first, second] = [file.subarray(0, 1501), file.subarray(1501)];

  it("has no warning if frames follow each other, also after others, with tags before, between and after them", async () => {
    expect(await damage(file)).toEqual([]);
    expect(await damage(file, other, file, other)).toEqual([]);
    expect(await damage(id3v2, file, id3v2, file, id3v2, id3v2, file, id3v2)).toEqual([]);
    expect(await damage(file, id3v1, file, lyrics, id3v1, id3v2, file, ape, file, ape, id3v1)).toEqual([]);
  });

  it("has none for zeros after tags, fewer zeros than a frame has, and what comes after all frames", async () => {
    const zeros = Buffer.alloc(2000);
    expect(await damage(file, id3v2, zeros, file, zeros, id3v2, file, zeros)).toEqual([]);
    expect(await damage(file, Buffer.alloc(40), file)).toEqual([]);
  });

  it("has a warning if bytes between frames are missing, twice there, or others", async () => {
    expect(await damage(first, second.subarray(31))).toEqual(broken("1 place"));
    expect(await damage(first, file.subarray(1470))).toEqual(broken("1 place"));
    expect(await damage(first, Buffer.alloc(2000, "other bytes"), second)).toEqual(broken("1 place"));
    expect(await damage(Buffer.from(file).fill(0, 1501, 2501))).toEqual(broken("1 place"));
    expect(await damage(file, Buffer.alloc(2000), file, Buffer.alloc(40, "x"), file)).toEqual(broken("2 places"));
    expect(await damage(file, id3v2, Buffer.alloc(400, "x"), file)).toEqual(broken("1 place"));
  });
});

it("a file of MP3 has a warning if more than 64 KiB after its last frame are no tags", async () => {
  const parts = [mp3Frames, id3v2, Buffer.alloc(66_000)];
  expect(await damageOf("sound.mp3", "audio/mpeg", parts)).toEqual(broken("1 place"));
});

const fixed = Array.from({ length: 140 }, (_, i) => flacFrame(i));
const start = flacStart(fixed.length * 192);
const flacFile = Buffer.concat([start, ...fixed]);

describe.each([
  ["AC-3", "sound.ac3", "audio/ac3", "0b77000008404000"],
  ["E-AC-3", "sound.eac3", "audio/eac3", "0b77007f348000"],
])("a file of %s whose frames have right checksums", (_kind, name, type, header) => {
  const summed = frame(header, 256);
  summed.writeUInt16BE(checksum(summed.subarray(2, -2), 16, 0x8005), 254);
  const changed = Buffer.from(summed);
  changed[100]! ^= 1;
  const file = row(summed);

  it("has a warning if the bytes of some of them are others", async () => {
    expect(await damageOf(name, type, [file, file])).toEqual([]);
    expect(await damageOf(name, type, [file, changed, file])).toEqual(broken("1 place"));
    expect(await damageOf(name, type, [file, changed, changed, file, changed, file])).toEqual(broken("2 places"));
    expect(await damageOf(name, type, [file, summed.subarray(0, 200), file, changed, file])).toEqual(
      broken("2 places"),
    );
  });
});

describe("a file of MP3 that is kept as published", () => {
  it("has no warning if several with tags and numbers of frames are in a row", async () => {
    expect(await damageOf("sound.mp3", "audio/mpeg", [mp3, mp3, id3v1, mp3])).toEqual([]);
  });
});

describe.each([
  ["MP3", "sound.mp3", "audio/mpeg", mp3Frames, Buffer.alloc(5 << 20, 0xff)],
  ["FLAC", "sound.flac", "audio/flac", flacFile, Buffer.alloc(5 << 20, Buffer.from("fff879", "hex"))],
])("a file of %s with millions of bytes that look like the start of frames", (_kind, name, type, file, bytes) => {
  it("has a warning, soon", async () => {
    expect(await damageOf(name, type, [file, bytes, file])).toContainEqual(expect.stringMatching(/ at 1 place$/));
  });
});

describe("a short file of samples that are not encoded", () => {
  it("has no warning, as it has no frames", async () => {
    const au = Buffer.alloc(1024, 0x55);
    au.write(".snd", "latin1");
    [24, 1000, 3, 8000, 1].forEach((field, i) => au.writeUInt32BE(field, 4 + i * 4));
    expect(await damageOf("sound.au", "audio/basic", [au])).toEqual([]);
  });
});

describe("a file of MP3 that begins within a frame", () => {
  it("has a warning for what is damaged after its start only", async () => {
    const rest = mp3Frames.subarray(1000);
    expect(await damageOf("radio.mp3", "audio/mpeg", [rest])).toEqual([]);
    expect(await damageOf("radio.mp3", "audio/mpeg", [rest, rest])).toHaveLength(1);
  });
});

describe("a FLAC file that is kept as published", () => {
  const damage = (...parts: Uint8Array[]) => damageOf("sound.flac", "audio/flac", parts);

  it("has no warning if its frames follow each other, whatever is before its signature and after the last one", async () => {
    expect(await damage(start, ...fixed)).toEqual([]);
    expect(await damage(id3v2, start, ...fixed, id3v1)).toEqual([]);
    expect(await damage(flacStart(fixed.length * 192, 100_000), ...fixed, Buffer.alloc(3000))).toEqual([]);
    expect(await damage(flacStart(139 * 192 + 7), ...fixed.slice(0, -1), flacFrame(139, { samples: 7 }))).toEqual([]);
  });

  it("has a warning if it does not say how many samples there are, and its last frame is cut off or has other bytes", async () => {
    const unknown = flacStart(0);
    const last = fixed.at(-1)!;
    const other = Buffer.from(last);
    other[last.length - 5]! ^= 1;
    expect(await damage(unknown, ...fixed, Buffer.alloc(3000))).toEqual([]);
    for (const end of [last.subarray(0, -9), other])
      expect(await damage(unknown, ...fixed.slice(0, -1), end)).toEqual(broken("1 place"));
  });

  it("has none if its blocks have several sizes, also if they do not say so", async () => {
    for (const isStated of [true, false]) {
      let at = 0;
      const frames = Array.from({ length: 60 }, (_, i) => {
        const samples = 1 + ((i * 37) % 300);
        at += samples;
        return flacFrame(at - samples, { samples, isVariable: isStated });
      });
      expect(await damage(flacStart(at), ...frames)).toEqual([]);
      expect(await damage(flacStart(at), ...frames.slice(0, 20), ...frames.slice(21))).toEqual(broken("1 place"));
    }
  });

  it("has a warning if a frame is missing, twice there, in another place, or has other bytes than its checksum", async () => {
    const [before, after] = [fixed.slice(0, 70), fixed.slice(70)];
    const changed = (at: number) => {
      const copy = Buffer.from(fixed[70]!);
      copy[at]! ^= 1;
      return copy;
    };
    expect(await damage(start, ...before, ...after.slice(1))).toEqual(broken("1 place"));
    expect(await damage(start, ...before, ...fixed.slice(69))).toEqual(broken("1 place"));
    expect(await damage(start, ...before, fixed[71]!, fixed[70]!, ...fixed.slice(72))).toEqual(broken("3 places"));
    for (const at of [1, 4, 6, 100])
      expect(await damage(start, ...before, changed(at), ...after.slice(1))).toEqual(broken("1 place"));
    expect(await damage(start, changed(1), ...fixed.slice(1))).toEqual(broken("1 place"));
    expect(await damage(start, ...before, Buffer.alloc(2000, "x"), ...fixed.slice(75))).toEqual(broken("1 place"));
    expect(await damage(start, ...fixed.slice(0, 138), changed(1), fixed[139]!, id3v1)).toEqual(broken("1 place"));
  });
});
