import { writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { hashFile } from "../../src/engines/native/damage/hash-file.ts";
import { box, u16, u32 } from "../../src/remux/mp4/boxes.ts";
import { Mp4Writer } from "../../src/remux/mp4/write/writer.ts";
import type { TrackFormat } from "../../src/remux/samples.ts";
import { layFiles, mediaPlaylist } from "../media/hls.ts";
import { join, readMedium, readRendition } from "../media/rendition.ts";
import { hls, merge, resource } from "../media/resources.ts";
import { openFolder } from "../remux/mp4-media.ts";
import { audioFormat } from "../remux/mp4-samples.ts";
import { openDownloadDamage } from "./download-damage.ts";

const { damageAt: warningsOf } = openDownloadDamage();
const folder = openFolder();

const path = folder.path("film.mp4");
const signal = new AbortController().signal;

async function damageOf(film: Buffer): Promise<readonly string[]> {
  writeFileSync(path, film);
  return (await hashFile(path, signal)).damage;
}

const video = (places = "1 place") => `frames of the video are damaged at ${places}`;
const audio = (places = "1 place") => `frames of the audio are damaged at ${places}`;

const noise = (length: number): Buffer => Buffer.from(Array.from({ length }, (_, i) => (i * i * 131 + i * 77) & 0xff));
const zeros = (length: number): Buffer => Buffer.alloc(length);

/** Returns the file with other bytes from `at` on. */
function withBytes(film: Buffer, at: number, bytes: Buffer): Buffer {
  return Buffer.concat([film.subarray(0, at), bytes, film.subarray(at + bytes.length)]);
}

const fragments = join(readRendition("muxed.m4s"));
/** The media of a fragment in the middle: first the video, then the audio. */
const fragment = fragments.indexOf("mdat", fragments.length / 3) + 4;
const fragmentEnd = fragments.indexOf("moof", fragment) - 4;

describe.each([
  ["with its index in front", readMedium("index-first.mp4"), 20_000, 20_000],
  ["with its index at its end", readMedium("index-last.mp4"), 20_000, 20_000],
  ["of fragments", fragments, fragment + 100, fragmentEnd - 1500],
])("an MP4 file %s", (_layout, film, videoAt, audioAt) => {
  it("is not damaged if it is right", async () => {
    expect(await damageOf(film)).toEqual([]);
  });

  it.each([
    ["zeros", zeros(1200)],
    ["other bytes", noise(1200)],
  ])("is damaged where pictures are %s", async (_what, bytes) => {
    expect(await damageOf(withBytes(film, videoAt, bytes))).toContain(video());
    expect(await damageOf(withBytes(withBytes(film, videoAt, bytes), videoAt - 13_000, bytes))).toContain(
      video("2 places"),
    );
  });

  it("is damaged where audio is zeros", async () => {
    expect(await damageOf(withBytes(film, audioAt, zeros(1200)))).toContain(audio());
  });
});

describe("an MP4 file of one track", () => {
  const samples = Array.from({ length: 20 }, (_, i): Buffer => Buffer.concat([Buffer.from([i + 1]), noise(4999)]));
  const entry = (type: string) => box(type, new Uint8Array(6), u16(1), u32(0, 0), u16(2, 16, 0, 0), u32(48_000 << 16));

  async function damageOfSamples(all: readonly Buffer[], format: TrackFormat = audioFormat) {
    const writer = new Mp4Writer({ path, expectedS: null });
    const track = writer.setFormat(format);
    for (const [i, data] of all.entries()) {
      writer.write(track, { data, dts: 1024 * i, pts: 1024 * i, duration: 1024, isSync: true });
    }
    writer.finish();
    return (await hashFile(path, signal)).damage;
  }

  it("is damaged where a sample begins with zeros, or has many in it", async () => {
    expect(await damageOfSamples(samples.with(9, zeros(5000)))).toEqual([audio()]);
    expect(await damageOfSamples(samples.with(9, withBytes(samples[9]!, 0, zeros(40))))).toEqual([audio()]);
    expect(await damageOfSamples(samples.with(9, withBytes(samples[9]!, 100, zeros(4200))))).toEqual([audio()]);
  });

  it("is not if a sample ends with zeros, is short, or empty", async () => {
    expect(await damageOfSamples(samples.with(9, withBytes(samples[9]!, 100, zeros(4900))))).toEqual([]);
    expect(await damageOfSamples(samples.with(9, zeros(15)))).toEqual([]);
    expect(await damageOfSamples(samples.with(9, zeros(0)))).toEqual([]);
  });

  it.each(["sowt", "alac", "fLaC", "ac-3", "ec-3"])(
    "is not if its codec may store silence as zeros: %s",
    async (type) => {
      const silent = samples.with(9, withBytes(samples[9]!, 100, zeros(4200)));
      expect(await damageOfSamples(silent, { ...audioFormat, sampleEntry: entry(type) })).toEqual([]);
    },
  );

  it("is not if an AV1 sample has zeros as padding, but is if it has them elsewhere, or they are padding of no AV1", async () => {
    // Types 15 and 6, with a size in two bytes, and the rest, of type 6 without a size.
    const obus = (type: number) => [
      Buffer.from([(type << 3) | 2, 0xb0, 0x24]),
      zeros(4655),
      Buffer.from([0x80, 6 << 3]),
    ];
    const sample = (type: number) =>
      Buffer.concat([Buffer.from([(6 << 3) | 2, 0xe4, 0]), noise(100), ...obus(type), noise(200)]);
    const av1 = { ...audioFormat, sampleEntry: entry("av01") };
    expect(await damageOfSamples(samples.with(9, sample(15)), av1)).toEqual([]);
    expect(await damageOfSamples(samples.with(9, sample(6)), av1)).toEqual([audio()]);
    expect(await damageOfSamples(samples.with(9, sample(15)))).toEqual([audio()]);
  });

  it("is not if no sample is as its codec wants them, but is if the first ones are", async () => {
    expect(await damageOfSamples(samples.map(() => zeros(5000)))).toEqual([]);
    expect(await damageOfSamples(samples.map((sample, i) => (i < 8 ? sample : zeros(5000))))).toEqual([audio()]);
  });

  it("is if no sample of H.264 is as its length bytes want it, but not if they begin with start codes", async () => {
    const configuration = box("avcC", Buffer.from([1, 0x64, 0, 12, 0xff, 0xe0, 0]));
    const size = [
      u32(0, 0, 0, 0),
      u16(64, 64),
      u32(0x48_0000, 0x48_0000, 0),
      u16(1),
      new Uint8Array(32),
      u16(24, 0xffff),
    ];
    const sampleEntry = box("avc1", new Uint8Array(6), u16(1), ...size, configuration);
    const format: TrackFormat = { ...audioFormat, kind: "video", sampleEntry, width: 64, height: 64 };
    const withHead = (head: number[]) => samples.map((sample) => Buffer.concat([Buffer.from(head), sample]));
    expect(await damageOfSamples(withHead([0, 0, 0x13, 0x88]), format)).toEqual([]);
    expect(await damageOfSamples(withHead([0x5a, 0x77, 0x13, 0x88]), format)).toEqual([video()]);
    expect(await damageOfSamples(withHead([0, 0, 0, 1, 9, 0x10, 0, 0, 0, 1]), format)).toEqual([]);
  });

  it("is read to its end however its samples lie in what is read at a time", async () => {
    const many = Array.from({ length: 700 }, (_, i) => Buffer.concat([Buffer.from([1]), noise(4999 + (i % 7))]));
    expect(await damageOfSamples(many)).toEqual([]);
    expect(await damageOfSamples(many.map((sample, i) => (i % 100 === 99 ? zeros(5000) : sample)))).toEqual([
      audio("7 places"),
    ]);
  });
});

describe("a WebM file", () => {
  const film = readMedium("vp8-vorbis.webm");
  /** From 4096 to 6144 is a part of a picture. */
  const damaged = withBytes(film, 4096, zeros(2048));

  it("is damaged if a part of one picture is zeros", async () => {
    expect(await damageOf(film)).toEqual([]);
    expect(await damageOf(damaged)).toEqual([video()]);
  });

  it("is not if the zeros are padding of AV1", async () => {
    const av1 = withBytes(damaged, damaged.indexOf("V_VP8"), Buffer.from("V_AV1"));
    expect(await damageOf(av1)).toEqual([video()]);
    const heads = [...film.toString("latin1", 0, 4096).matchAll(/\xa3(?:[\x80-\xff]|[\x40-\x7f].)\x81/gs)];
    const { index, 0: head } = heads.at(-1)!;
    // A unit of type 15, with a size in two bytes, after track, time and flags.
    const size = 6200 - index;
    const unit = Buffer.from([(15 << 3) | 2, (size & 0x7f) | 0x80, size >> 7]);
    expect(await damageOf(withBytes(av1, index + head.length + 3, unit))).toEqual([]);
  });

  it("is not if its codec need not compress", async () => {
    expect(await damageOf(withBytes(damaged, damaged.indexOf("V_VP8"), Buffer.from("V_UNC")))).toEqual([]);
  });
});

describe("a file of frames that are large", () => {
  const frame = (codec: number): Buffer => Buffer.concat([Buffer.from([codec]), noise(5999), Buffer.from([1])]);

  /** FLV, of one stream of this type (8: audio, 9: video). */
  function flv(type: number, codec: number): Buffer {
    const tag = Buffer.concat([Buffer.from([type, 0, 0x17, 0x71, 0, 0, 0, 0, 0, 0, 0]), frame(codec), zeros(4)]);
    return Buffer.concat([Buffer.from("FLV\x01\x05\0\0\0\x09\0\0\0\0", "latin1"), tag, tag, tag, tag]);
  }

  /** AVI, of one stream of video. */
  function avi(codec: string): Buffer {
    const chunk = (name: string, ...parts: readonly Buffer[]): Buffer => {
      const data = Buffer.concat([...parts]);
      const head = Buffer.alloc(8);
      head.write(name, "latin1");
      head.writeUInt32LE(data.length, 4);
      return Buffer.concat([head, data, zeros(data.length % 2)]);
    };
    const format = zeros(40);
    format.write(codec, 16);
    const stream = chunk(
      "LIST",
      Buffer.from("strl"),
      chunk("strh", Buffer.from("vids"), zeros(52)),
      chunk("strf", format),
    );
    const header = chunk("LIST", Buffer.from("hdrl"), chunk("avih", zeros(56)), stream);
    const media = chunk("LIST", Buffer.from("movi"), ...Array.from({ length: 4 }, () => chunk("00dc", frame(1))));
    return chunk("RIFF", Buffer.from("AVI "), header, media);
  }

  it.each([
    ["FLV with video", flv(9, 0x27), video()],
    ["FLV with audio", flv(8, 0xaf), audio()],
    ["AVI", avi("XVID"), video()],
  ])("is damaged if a part of one frame is zeros: %s", async (_kind, film, found) => {
    expect(await damageOf(film)).toEqual([]);
    expect(await damageOf(withBytes(film, 8192, zeros(2048)))).toEqual([found]);
  });

  it.each([
    ["FLV with a screen", flv(9, 0x23)],
    ["FLV with PCM", flv(8, 0x3f)],
    ["AVI", avi("MJPG")],
  ])("is not if its codec may have zeros: %s", async (_kind, film) => {
    expect(await damageOf(withBytes(film, 8192, zeros(2048)))).toEqual([]);
  });
});

describe("a download has the warning", () => {
  const film = readMedium("index-first.mp4");

  it("if the MP4 file is as published", async () => {
    const damaged = withBytes(film, 20_000, zeros(4096));
    expect(await warningsOf(new Map([["film.mp4", resource("video/mp4", damaged)]]), "film.mp4")).toEqual([
      `${video()}; ${audio()}`,
    ]);
  });

  it("if the MP4 file was made of segments", async () => {
    const { resources, lines } = layFiles("f", readRendition("muxed.m4s"), "m4s");
    const damage = (bytes: Buffer) => withBytes(bytes, bytes.indexOf("mdat") + 100, zeros(4096));
    const served = merge(
      new Map(
        [...resources].map(([name, { type, body }]) => [
          name,
          resource(type, name.endsWith("/1.m4s") ? damage(body) : body),
        ]),
      ),
      new Map([["index.m3u8", hls(mediaPlaylist(lines))]]),
    );
    expect(await warningsOf(served, "index.m3u8")).toEqual([`${video()}; ${audio()}`]);
  });
});
