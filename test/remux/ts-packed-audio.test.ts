import { describe, expect, it } from "vitest";
import { frameChecksum } from "../../src/remux/codecs/flac.ts";
import { Mp4Writer } from "../../src/remux/mp4/write/writer.ts";
import { createMpegTsDemuxer } from "../../src/remux/mpeg-ts/demuxer.ts";
import { createPackedAudioDemuxer } from "../../src/remux/packed-audio/demuxer.ts";
import { Timelines } from "../../src/remux/timelines.ts";
import { createMediaFolder, hasFfmpeg, audioInput } from "./ts-media.ts";
import { adtsFrames, avcPicture, createPacketMaker, videoPid } from "./ts-packet-maker.ts";
import { createRecorder, cut, start } from "./ts-recorder.ts";
import { decodedMd5 } from "../media/read-media.ts";

describe("a demuxer of packed audio", () => {
  const media = createMediaFolder();

  it("takes the time from the leading tag", () => {
    const samples = read([[tag(900_000), adtsFrames(3)]]);
    expect(samples.map(({ dts }) => dts)).toEqual([480_000, 481_024, 482_048]);
    expect(samples[0]?.data.length).toBe(93);
  });

  it("continues counting in a segment without a tag", () => {
    const samples = read([[tag(90_000), adtsFrames(2)], [adtsFrames(2)]]);
    expect(samples.map(({ dts }) => dts)).toEqual([48_000, 49_024, 50_048, 51_072]);
  });

  it("leaves a gap where the numbers of segments without a tag show that others are missing", () => {
    const dtsOf = (...sequences: number[]) => {
      const recorder = createRecorder();
      const demuxer = createPackedAudioDemuxer({ sink: recorder, timelines: new Timelines() });
      for (const sequence of sequences) demuxer.read(adtsFrames(2), { ...start, sequence, durationS: 2048 / 48_000 });
      demuxer.flush();
      return recorder.track("audio").samples.map(({ dts }) => dts);
    };
    expect(dtsOf(4, 5)).toEqual([0, 1024, 2048, 3072]);
    expect(dtsOf(4, 7, 8)).toEqual([0, 1024, 6144, 7168, 8192, 9216]);
  });

  it("starts at 0 without any tag", () => {
    expect(read([[adtsFrames(2)]]).map(({ dts }) => dts)).toEqual([0, 1024]);
  });

  it("starts with the video of another source without any tag, but not with one that has", () => {
    const maker = createPacketMaker();
    const tables = maker.tables([{ pid: videoPid, streamType: 0x1b }]);
    const video = Buffer.concat([tables, ...[0, 1].map((i) => maker.pes(videoPid, 135_000 + i, avcPicture(i === 0)))]);
    const startOf = (audio: Buffer) => {
      const recorder = createRecorder();
      const timelines = new Timelines();
      createMpegTsDemuxer({ sink: createRecorder(), timelines, kinds: ["video"] }).read(video, start);
      const demuxer = createPackedAudioDemuxer({ sink: recorder, timelines });
      demuxer.read(audio, start);
      demuxer.flush();
      return recorder.track("audio").samples[0]!.dts;
    };
    expect(startOf(adtsFrames(2))).toBe(72_000);
    expect(startOf(Buffer.concat([tag(90_000), adtsFrames(2)]))).toBe(48_000);
  });

  it("tells the first time of a segment before it is read, and that it has none", () => {
    const recorder = createRecorder();
    const demuxer = createPackedAudioDemuxer({ sink: recorder, timelines: new Timelines() });
    expect(demuxer.firstTime(Buffer.concat([tag(900_000), adtsFrames(2)]))).toBe(10);
    expect(demuxer.firstTime(adtsFrames(2))).toBeNull();
    expect(recorder.tracks).toEqual([]);
  });

  it.each([
    ["Xing", 36],
    ["Info", 21],
    ["VBRI", 36],
  ])("takes the first frame of a segment of MP3 for no audio if it has a table: %s", (name, at) => {
    // 48 kHz, 64 kbit/s.
    const [audio, table] = [7, 0].map((fill) => Buffer.alloc(192, fill));
    for (const frame of [audio!, table!]) frame.set([0xff, 0xfb, 0x54, at === 21 ? 0xc0 : 0]);
    table!.write(name, at);
    const samples = read([[table!, audio!, audio!]]);
    expect(samples.map(({ dts, data }) => [dts, data[50]])).toEqual([
      [0, 7],
      [1152, 7],
    ]);
    expect(read([[audio!, table!, audio!]])).toHaveLength(3);
    const segments = read([
      [table!, audio!],
      [table!, audio!],
    ]);
    expect(segments.map(({ dts }) => dts)).toEqual([0, 1152]);
  });

  it("takes what the table of the first segment of a timeline leaves out for priming, not that of a later one", () => {
    const [audio, table] = [7, 0].map((fill) => Buffer.alloc(192, fill));
    for (const frame of [audio!, table!]) frame.set([0xff, 0xfb, 0x54, 0]);
    table!.write("Info", 36);
    table!.write("LAME", 44);
    table!.writeUIntBE((1000 << 12) | 576, 65, 3);
    const segment = Buffer.concat([table!, audio!, audio!, audio!]);
    const primingOf = (timelines: readonly number[]) => {
      const recorder = createRecorder();
      const demuxer = createPackedAudioDemuxer({ sink: recorder, timelines: new Timelines() });
      for (const timeline of timelines) demuxer.read(segment, { timeline, offsetS: null });
      demuxer.flush();
      return recorder.track("audio").samples.map(({ primingTicks = 0 }) => primingTicks);
    };
    // Of the decoder, too: 1529.
    expect(primingOf([0, 0])).toEqual([1152, 377, 0, 0, 0, 0]);
    expect(primingOf([0, 1])).toEqual([1152, 377, 0, 1152, 377, 0]);
    table!.write("none", 44);
    table!.copy(segment);
    expect(primingOf([0])).toEqual([0, 0, 0]);
  });

  it("takes the first frame for no audio if it has a table and a checksum", () => {
    const [audio, table] = [7, 0].map((fill) => Buffer.alloc(192, fill));
    for (const frame of [audio!, table!]) frame.set([0xff, 0xfa, 0x54, 0, 0x12, 0x34]);
    table!.write("Info", 36);
    expect(read([[table!, audio!, audio!]]).map(({ data }) => data[50])).toEqual([7, 7]);
  });

  it("refuses AAC whose frames have several blocks with checksums between them, not several without", () => {
    const frame = adtsFrames(1);
    frame[6] = 0xfd;
    expect(read([[frame, frame]]).map(({ duration }) => duration)).toEqual([2048, 2048]);
    frame[1] = 0xf0;
    const rule = "AAC with several blocks and checksums in a frame cannot be put into MP4";
    expect(() => read([[frame, frame]])).toThrow(rule);
  });

  it("reads a last segment of a single frame", () => {
    const samples = read([
      [tag(0), adtsFrames(2)],
      [tag(3840), adtsFrames(1)],
    ]);
    expect(samples.map(({ dts }) => dts)).toEqual([0, 1024, 2048]);
  });

  it("reads a tag whose time wraps around", () => {
    const wrap = 2 ** 33;
    const samples = read([
      [tag(wrap - 1920), adtsFrames(1)],
      [tag(0), adtsFrames(1)],
    ]);
    expect(samples[1]!.dts - samples[0]!.dts).toBe(1024);
  });

  it("continues with another timeline where the first ended", () => {
    const recorder = createRecorder();
    const demuxer = createPackedAudioDemuxer({ sink: recorder, timelines: new Timelines() });
    demuxer.read(Buffer.concat([tag(90_000), adtsFrames(2)]), start);
    demuxer.read(Buffer.concat([tag(0), adtsFrames(2)]), { timeline: 1, offsetS: null });
    demuxer.flush();
    const { samples } = recorder.track("audio");
    expect(samples.map(({ dts }) => dts)).toEqual([48_000, 49_024, 50_048, 51_072]);
  });

  it("tells of damaged frames, not of tags between frames or at the end", () => {
    const frames = adtsFrames(20);
    frames.fill(0, 500, 507);
    let drops = 0;
    const onDrop = () => void (drops += 1);
    expect(read([[frames]], onDrop)).toHaveLength(19);
    expect(drops).toBe(1);
    const end = Buffer.concat([Buffer.from("TAG"), Buffer.alloc(125)]);
    expect(read([[adtsFrames(3), tag(0), adtsFrames(3), end]], onDrop)).toHaveLength(6);
    expect(drops).toBe(1);
  });

  it("takes what depends on a frame of E-AC-3 for a part of it, and states its channels", () => {
    // 5.1, and the pair at the back of 7.1.
    const frame = Buffer.concat([syncframe({ acmod: 7, lfe: 1 }), syncframe({ type: 1, acmod: 2, channelMap: 0x200 })]);
    const { formats, samples } = readTrack([[tag(0), frame, frame, frame]]);
    expect(samples.map(({ dts, data }) => [dts, data.length])).toEqual([0, 1536, 3072].map((dts) => [dts, 128]));
    // 32 kbit/s; 1 independent substream of 48 kHz, bsid 16, 3/2 and LFE, 1 dependent one with Lrs/Rrs (ETSI TS 102 366 §F.6).
    expect(specificBox(formats[0]!.sampleEntry, "dec3")).toBe("0100200f0280");
    expect(formats).toHaveLength(1);
  });

  it("joins frames of E-AC-3 with fewer than six blocks to samples of six, and leaves other programs to themselves", () => {
    const two = syncframe({ blocksCode: 1, acmod: 2 });
    const other = syncframe({ blocksCode: 1, acmod: 1, substream: 1 });
    const { formats, samples } = readTrack([[tag(0), ...Array.from({ length: 6 }, () => Buffer.concat([two, other]))]]);
    expect(samples.map(({ dts, data }) => [dts, data.length])).toEqual([0, 1536].map((dts) => [dts, 6 * 64]));
    expect(specificBox(formats[0]!.sampleEntry, "dec3")).toBe("0300200400");
  });

  it("reads a segment of any length", () => {
    const frames = adtsFrames(5_000, 8_000);
    expect(read([[tag(0), frames]])).toHaveLength(5_000);
  });

  it("refuses bytes that are no audio", () => {
    expect(() => read([[Buffer.from("<!doctype html><title>no</title>")]])).toThrow(
      expect.objectContaining({ code: "upstream_invalid" }),
    );
  });

  for (const [ext, codec, rate] of [
    ["aac", "aac", 44_100],
    ["mp3", "libmp3lame", 48_000],
    ["ac3", "ac3", 48_000],
    ["eac3", "eac3", 48_000],
  ] as const) {
    it.skipIf(!hasFfmpeg)(`makes an MP4 that decodes to the same of segments of ${ext}`, () => {
      const name = `source.${ext}`;
      const plain = ["-write_xing", "0", "-id3v2_version", "0"];
      const args = [...audioInput(3, rate), "-c:a", codec, ...(ext === "mp3" ? plain : [])];
      const source = media.make(name, ...args);
      const sink = new Mp4Writer({ path: media.path("result.mp4"), expectedS: null });
      const demuxer = createPackedAudioDemuxer({ sink, timelines: new Timelines() });
      const [first = source, ...others] = cut(source, () => 10_000);
      demuxer.read(Buffer.concat([tag(126_000), first]), start);
      for (const segment of others) demuxer.read(segment, start);
      demuxer.flush();
      expect(sink.finish().durationS).toBeCloseTo(3, 0);
      const decoded = decodedMd5(media.path("result.mp4"), "audio");
      expect(decoded).toBe(decodedMd5(media.path(name), "audio"));
    });
  }
});

/** A syncframe of E-AC-3 of 48 kHz and 64 bytes (ETSI TS 102 366 §E.1.2); `type` 1: a dependent one. */
function syncframe({ type = 0, substream = 0, blocksCode = 3, acmod = 0, lfe = 0, channelMap = 0 }): Buffer {
  const fields: [value: number, bits: number][] = [
    [type, 2],
    [substream, 3],
    [31, 11],
    [0, 2],
    [blocksCode, 2],
    [acmod, 3],
    [lfe, 1],
    [16, 5],
    // The level of dialogue, and one of compression.
    [27, 5],
    [1, 1],
    [0, 8],
    ...(type === 1
      ? ([
          [1, 1],
          [channelMap, 16],
        ] as [number, number][])
      : []),
  ];
  const bits = fields.map(([value, length]) => value.toString(2).padStart(length, "0")).join("");
  const frame = Buffer.alloc(64);
  frame.writeUInt16BE(0x0b77);
  for (let at = 0; at < bits.length; at += 8)
    frame[2 + at / 8] = Number.parseInt(bits.slice(at, at + 8).padEnd(8, "0"), 2);
  frame.writeUInt16BE(frameChecksum(frame.subarray(2, -2)), 62);
  return frame;
}

/** Returns the content of a box of a sample entry, hexadecimal. */
function specificBox(entry: Uint8Array, type: string): string {
  const bytes = Buffer.from(entry);
  const at = bytes.indexOf(type);
  return bytes.toString("hex", at + 4, at - 4 + bytes.readUInt32BE(at - 4));
}

function read(segments: readonly (readonly Uint8Array[])[], onDrop = () => {}) {
  return readTrack(segments, onDrop).samples;
}

function readTrack(segments: readonly (readonly Uint8Array[])[], onDrop = () => {}) {
  const recorder = createRecorder();
  const timelines = new Timelines();
  const demuxer = createPackedAudioDemuxer({ sink: recorder, timelines, onDrop });
  for (const parts of segments) demuxer.read(Buffer.concat(parts), { ...start });
  demuxer.flush();
  return recorder.track("audio");
}

/** Returns an ID3 tag with the time of the first sample (RFC 8216 §3.4). */
function tag(timestamp: number): Buffer {
  const owner = Buffer.from("com.apple.streaming.transportStreamTimestamp\0");
  const time = Buffer.alloc(8);
  time.writeBigUInt64BE(BigInt(timestamp));
  const content = Buffer.concat([owner, time]);
  const frame = Buffer.from([...Buffer.from("PRIV"), 0, 0, 0, content.length, 0, 0]);
  const size = frame.length + content.length;
  return Buffer.concat([Buffer.from([0x49, 0x44, 0x33, 4, 0, 0, 0, 0, 0, size]), frame, content]);
}
