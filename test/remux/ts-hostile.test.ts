import { describe, expect, it } from "vitest";
import { createMpegTsDemuxer } from "../../src/remux/mpeg-ts/demuxer.ts";
import type { Sample } from "../../src/remux/samples.ts";
import { Timelines } from "../../src/remux/timelines.ts";
import { ServiceError } from "../../src/model/errors.ts";
import { createIntegers } from "../random.ts";
import { adtsFrames, audioPid, avcPicture, createPacketMaker, videoPid } from "./ts-packet-maker.ts";
import { createRecorder, cut, demux, type Recorder, start } from "./ts-recorder.ts";

const avc = { pid: videoPid, streamType: 0x1b };
/** Changes the slice of a picture so that no two packets of it are alike. */
const unlike = (picture: Buffer): Buffer => picture.map((byte, i) => (i < 60 ? byte : 16 + (i % 199))) as Buffer;
const aac = { pid: audioPid, streamType: 0x0f };

describe("an MPEG-TS demuxer of synthetic streams", () => {
  it.each([
    ["a damaged start code", (unit: Buffer) => unit.writeUInt8(3, unit.indexOf("000001e0", "hex") + 2)],
    ["a damaged marker", (unit: Buffer) => unit.writeUInt8(0, unit.indexOf("000001e0", "hex") + 6)],
    ["scrambling", (unit: Buffer) => unit.writeUInt8(0x90, unit.indexOf("000001e0", "hex") + 6)],
  ])("tells of a PES packet that it leaves out because of %s", (_, damage) => {
    const { tables, pes } = createPacketMaker();
    const units = [0, 1, 2, 3, 4].map((n) => pes(videoPid, n * 3600, avcPicture(n === 0)));
    damage(units[2]!);
    const drops: string[] = [];
    const result = demux([tables([avc]), ...units], ["video"], (kind) => void drops.push(kind));
    expect(result.track("video").samples).toHaveLength(4);
    expect(drops).toEqual(["video"]);
  });

  it("keeps what comes before a discontinuity that a packet without payload announces", () => {
    const { tables, pes } = createPacketMaker();
    const { pes: later, packet } = createPacketMaker();
    for (let n = 0; n < 7; n++) packet(videoPid, Buffer.alloc(0), false);
    const before = [0, 1].map((n) => pes(videoPid, n * 3600, avcPicture(n === 0)));
    const announcement = Buffer.alloc(188, 0xff);
    announcement.set([0x47, 0x01, 0x00, 0x20 | 6, 183, 0x80]);
    const after = [2, 3].map((n) => later(videoPid, n * 3600, avcPicture(n === 2)));
    const drops: string[] = [];
    const segment = Buffer.concat([tables([avc]), ...before, announcement, ...after]);
    const result = demux([segment], ["video"], (kind) => void drops.push(kind));
    expect(result.track("video").samples).toHaveLength(4);
    expect(drops).toEqual([]);
  });

  it("reads video and audio", () => {
    const { tables, pes } = createPacketMaker();
    const segments = [
      tables([avc, aac]),
      pes(videoPid, 90_000, avcPicture(true)),
      pes(audioPid, 90_000, adtsFrames(3)),
      pes(videoPid, 93_600, avcPicture(false)),
    ];
    const result = demux([Buffer.concat(segments)]);
    expect(result.track("video").samples).toMatchObject([
      { dts: 90_000, isSync: true },
      { dts: 93_600, isSync: false, duration: 3600 },
    ]);
    expect(result.track("audio").samples.map(({ dts }) => dts)).toEqual([48_000, 49_024, 50_048]);
  });

  it("leaves out pictures before the first parameter sets", () => {
    const { tables, pes } = createPacketMaker();
    const pictures = [false, false, true, false].map((isKey, i) => pes(videoPid, i * 3600, avcPicture(isKey)));
    const { samples } = demux([tables([avc]), ...pictures]).track("video");
    expect(samples.map(({ dts }) => dts)).toEqual([7200, 10_800]);
  });

  it("keeps a gap in the audio and removes jitter", () => {
    const { tables, pes } = createPacketMaker();
    const stamps = [0, 1925, 3835, 90_000, 91_920];
    const audio = stamps.map((stamp) => pes(audioPid, stamp, adtsFrames(1)));
    const { samples } = demux([tables([aac]), ...audio]).track("audio");
    expect(samples.map(({ dts }) => dts)).toEqual([0, 1024, 2048, 48_000, 49_024]);
  });

  it("continues counting if packets of audio have no time", () => {
    const { tables, pes } = createPacketMaker();
    const audio = [pes(audioPid, 0, adtsFrames(2)), pes(audioPid, null, adtsFrames(2))];
    const { samples } = demux([tables([aac]), ...audio]).track("audio");
    expect(samples.map(({ dts }) => dts)).toEqual([0, 1024, 2048, 3072]);
  });

  it("assembles audio frames that are split between two packets", () => {
    const { tables, pes } = createPacketMaker();
    const [first = Buffer.alloc(0), second = Buffer.alloc(0)] = cut(adtsFrames(4), () => 250);
    const audio = [pes(audioPid, 0, first), pes(audioPid, 3 * 1920, second)];
    const { samples } = demux([tables([aac]), ...audio]).track("audio");
    expect(samples.map(({ dts, data }) => [dts, data.length])).toEqual([0, 1024, 2048, 3072].map((dts) => [dts, 93]));
  });

  it("leaves out a packet that is shorter than it states", () => {
    const { tables, pes } = createPacketMaker();
    const segments = [
      tables([avc]),
      pes(videoPid, 0, avcPicture(true)),
      pes(videoPid, 3600, avcPicture(false), 5000),
      pes(videoPid, 7200, avcPicture(false)),
    ];
    const { samples } = demux(segments).track("video");
    expect(samples.map(({ dts }) => dts)).toEqual([0, 7200]);
  });

  it("reads a packet that is sent twice once, also with another clock reference", () => {
    const { tables, pes } = createPacketMaker();
    const picture = pes(videoPid, 0, avcPicture(true, 300));
    // The flag of a clock reference, in the adaptation field of the last packet.
    picture[picture.length - 188 + 5] = 0x10;
    const last = Buffer.from(picture.subarray(-188));
    last.fill(1, 6, 12);
    const alone = demux([Buffer.concat([tables([avc]), picture])]);
    const twice = demux([Buffer.concat([createPacketMaker().tables([avc]), picture, last])]);
    expect(twice.tracks).toEqual(alone.tracks);
  });

  it("leaves out a picture without 15 packets, although the next one continues its count", () => {
    const { tables, pes } = createPacketMaker();
    const first = pes(videoPid, 0, avcPicture(true));
    const packets = cut(pes(videoPid, 3600, avcPicture(false, 188 * 30)), () => 188);
    for (const [i, packet] of packets.entries()) packet[100] = i + 1;
    const stream = [tables([avc]), first, ...packets.toSpliced(4, 15), pes(videoPid, 7200, avcPicture(false))];
    const { samples } = demux([Buffer.concat(stream)]).track("video");
    expect(samples.map(({ dts }) => dts)).toEqual([0, 7200]);
  });

  it.each([
    ["tells of packets that are missing at the end of a segment, whose list has none missing", [0, 1, 2, 3], ["video"]],
    ["tells of no packets that are missing with a segment of which its list has told", [0, 1, 3, 4], []],
    ["tells of no packets that are missing where other times begin", [0, 1, 2, 3], [], 9_000_000],
  ])("%s", (_, sequences, expected, laterBy = 0) => {
    const { tables, pes } = createPacketMaker();
    const timeOf = (n: number) => n * 3600 + (n > 2 ? laterBy : 0);
    const units = [0, 1, 2, 3, 4].map((n) => pes(videoPid, timeOf(n), avcPicture(n === 0)));
    const drops: string[] = [];
    const segments = [Buffer.concat([tables([avc]), units[0]!]), units[1]!, units[3]!, units[4]!];
    const result = demux(segments, ["video"], (kind) => void drops.push(kind), sequences);
    expect(result.track("video").samples).toHaveLength(4);
    expect(drops).toEqual(expected);
  });

  it.each([
    [
      "tells of packets that are missing at the end of a segment, though the next one counts from the start again",
      13,
      16,
      ["video"],
    ],
    ["tells of none where counters start again, but no time is missing", 16, 16, []],
  ])("%s", (_what, end, next, expected) => {
    const makers = [createPacketMaker(), createPacketMaker()] as const;
    const unit = (n: number) => makers[n < next ? 0 : 1].pes(videoPid, n * 3600, avcPicture(n === 0));
    const pictures = (from: number, to: number) =>
      Buffer.concat(Array.from({ length: to - from }, (_, i) => unit(from + i)));
    const drops: string[] = [];
    const tables = makers[0].tables([avc]);
    // A picture is one packet.
    const segments = [Buffer.concat([tables, pictures(0, 4)]), pictures(4, 8), pictures(8, end), pictures(next, 20)];
    demux(segments, ["video"], (kind) => void drops.push(kind), [0, 1, 2, 3]);
    expect(drops).toEqual(expected);
  });

  it.each([
    [
      "tells of packets that are missing at the end of a segment if the tables of the next one show that it counts on",
      0,
      15,
    ],
    ["tells of none where the tables count from the start again, too", 1, 16],
  ])("%s", (_what, last, end) => {
    const makers = [createPacketMaker(), createPacketMaker()] as const;
    // A picture is one packet: the last segment begins with the counter of the first one.
    const segment = (maker: (typeof makers)[number], from: number, to: number) => {
      const units = Array.from({ length: to - from }, (_, i) =>
        maker.pes(videoPid, (from + i) * 3600, avcPicture(!from && !i)),
      );
      return Buffer.concat([maker.tables([avc]), ...units]);
    };
    const before = [segment(makers[0], 0, 4), segment(makers[0], 4, 8), segment(makers[0], 8, 16)];
    if (end < 16) before[2] = before[2]!.subarray(0, -188);
    const drops: string[] = [];
    demux([...before, segment(makers[last]!, 16, 20)], ["video"], (kind) => void drops.push(kind), [0, 1, 2, 3]);
    expect(drops).toEqual(last === 0 ? ["video"] : []);
  });

  it("reads packets whose counters never count", () => {
    const { tables, pes } = createPacketMaker();
    const units = [0, 1, 2, 3].map((n) => pes(videoPid, n * 3600, unlike(avcPicture(n === 0, 1000))));
    const segments = [Buffer.concat([tables([avc]), units[0]!, units[1]!]), Buffer.concat([units[2]!, units[3]!])];
    for (const segment of segments) for (let at = 3; at < segment.length; at += 188) segment[at]! &= 0xf0;
    const drops: string[] = [];
    const samples = demux(segments, ["video"], (kind) => void drops.push(kind)).track("video").samples;
    // A slice with its length, without delimiter and parameter sets.
    expect(samples.map(({ data }) => data.length)).toEqual([1004, 1004, 1004, 1004]);
    expect(drops).toEqual([]);
  });

  it("tells of 15 packets that are missing after the first one of a stream, which the next one does not show", () => {
    const { tables, pes } = createPacketMaker();
    const first = pes(videoPid, 0, avcPicture(true, 4000));
    const damaged = Buffer.concat([first.subarray(0, 188), first.subarray(16 * 188)]);
    expect(damaged.length).toBeGreaterThan(3 * 188);
    const others = [1, 2].map((n) => pes(videoPid, n * 3600, avcPicture(n === 1)));
    const drops: string[] = [];
    demux([Buffer.concat([tables([avc]), damaged, ...others])], ["video"], (kind) => void drops.push(kind));
    expect(drops).toEqual(["video"]);
  });

  it("tells of a byte that is missing near the end of a segment, where its counters show nothing", () => {
    const { tables, pes } = createPacketMaker();
    // A picture is one packet, so that the second segment begins with the counter of the first one.
    const units = Array.from({ length: 20 }, (_, n) => pes(videoPid, n * 3600, unlike(avcPicture(n === 0))));
    const first = Buffer.concat(units.slice(0, 16));
    const head = tables([avc]);
    const read = (segment: Buffer, before = "") => {
      const drops: string[] = [];
      const segments = [[head, segment], units.slice(16)].map((parts) =>
        Buffer.concat([Buffer.from(before), ...parts]),
      );
      demux(segments, ["video"], (kind) => void drops.push(kind), [0, 1]);
      return drops;
    };
    const lost = 14 * 188 + 150;
    expect(read(Buffer.concat([first.subarray(0, lost), first.subarray(lost + 1)]))).toEqual(["video"]);
    expect(read(Buffer.concat([first.subarray(0, lost), first.subarray(lost + 30)]))).toEqual(["video"]);
    // What is appended to a segment, or comes before it, is nothing that is missing.
    expect(read(first)).toEqual([]);
    for (const appended of ["\r\n", "\0".repeat(16), "<html></html>", "x".repeat(187), "x".repeat(500)]) {
      expect(read(Buffer.concat([first, Buffer.from(appended)])), appended).toEqual([]);
      expect(read(first, appended), appended).toEqual([]);
    }
  });

  it("tells of a first segment without a program map, of which the start is missing, not of one with an early picture", () => {
    const maker = createPacketMaker();
    const units = [0, 1, 2, 3].map((n) => maker.pes(videoPid, n * 3600, avcPicture(true)));
    const tables = maker.tables([avc]);
    const read = (...segments: readonly Buffer[][]) => {
      const drops: string[] = [];
      const [sink, timelines, kinds] = [createRecorder(), new Timelines(), ["video" as const]];
      const demuxer = createMpegTsDemuxer({ sink, timelines, kinds, onDrop: (kind) => void drops.push(kind) });
      for (const parts of segments) demuxer.read(Buffer.concat(parts), { ...start, durationS: 0.08 });
      demuxer.flush();
      expect(sink.track("video").samples).toHaveLength(4);
      return drops;
    };
    expect(read(units.slice(0, 2), [tables, ...units.slice(2)])).toEqual(["video"]);
    expect(read([units[0]!, tables, units[1]!], units.slice(2))).toEqual([]);
  });

  it("tells of a segment that has its media twice, not of segments of which each has the same times", () => {
    const { tables, pes } = createPacketMaker();
    const film = () => Buffer.concat([0, 1, 2, 3].map((n) => pes(videoPid, n * 450_000, avcPicture(n === 0))));
    const head = tables([avc]);
    const read = (...segments: readonly Buffer[]) => {
      const drops: string[] = [];
      const [sink, timelines] = [createRecorder(), new Timelines()];
      const demuxer = createMpegTsDemuxer({
        sink,
        timelines,
        kinds: ["video"],
        onDrop: (kind) => void drops.push(kind),
      });
      for (const segment of segments) demuxer.read(segment, { ...start, durationS: 20 });
      demuxer.flush();
      return drops;
    };
    expect(read(Buffer.concat([head, film(), film(), film(), film()]), film())).toHaveLength(3);
    expect(read(Buffer.concat([head, film()]), film(), film())).toEqual([]);
  });

  it("refuses streams that it cannot read, with the reason as code", () => {
    const codeOf = (streamType: number, descriptors = Buffer.alloc(0)) => {
      const { tables } = createPacketMaker();
      return codeFrom(() => demux([tables([{ pid: videoPid, streamType, descriptors }])]));
    };
    expect([0xdb, 0xcf, 0xc1, 0xc2].map((type) => codeOf(type))).toEqual(
      Array.from({ length: 4 }, () => "drm_protected"),
    );
    expect([0x01, 0x02, 0x10, 0x11, 0xea].map((type) => codeOf(type))).toEqual(
      Array.from({ length: 5 }, () => "format_unavailable"),
    );
    expect(codeOf(0x06, Buffer.from("\x05\x04Opus"))).toBe("format_unavailable");
    // AC-4 by the extension descriptor of DVB.
    expect(codeOf(0x06, Buffer.of(0x7f, 2, 0x15, 0))).toBe("format_unavailable");
    expect(codeOf(0x15)).toBe("format_unavailable");
  });

  for (const [streamType, descriptors, name] of [
    [0x11, "", "AAC in LATM (stream type 0x11)"],
    [0x02, "", "MPEG-2 video (stream type 0x02)"],
    [0x82, "", "DTS (stream type 0x82)"],
    [0x06, "\x05\x04Opus", "Opus (stream type 0x06)"],
    [0x80, "\x05\x04HDMV", "PCM (stream type 0x80)"],
  ] as const) {
    it(`names what it cannot read: ${name}`, () => {
      const stream = { pid: videoPid, streamType, descriptors: Buffer.from(descriptors) };
      const message = `MPEG-TS with ${name} cannot be put into MP4`;
      const read = () => demux([createPacketMaker().tables([stream])]);
      expect(read).toThrow(new ServiceError("format_unavailable", message));
    });
  }

  it("reads the second audio stream if the first cannot be read", () => {
    const { tables, pes } = createPacketMaker();
    const streams = [{ pid: videoPid, streamType: 0x11 }, aac];
    const { samples } = demux([tables(streams), pes(audioPid, 0, adtsFrames(3))]).track("audio");
    expect(samples.length).toBe(3);
  });

  it("is drm_protected if many packets in a row are scrambled, not if a single one is damaged", () => {
    const { tables, pes } = createPacketMaker();
    const map = tables([avc]);
    const pictures = Array.from({ length: 40 }, (_, i) => pes(videoPid, i * 3600, avcPicture(true)));
    const scrambled = pictures.map((packet) => withBits(packet, 3, 0x80));
    const scrambledPes = pictures.map((packet) => withBits(packet, packet.indexOf(0xe0) + 3, 0x30));
    expect(codeFrom(() => demux([map, ...scrambled]))).toBe("drm_protected");
    expect(codeFrom(() => demux([map, ...scrambledPes]))).toBe("drm_protected");
    const damaged = pictures.with(7, scrambled[7]!).with(9, scrambledPes[9]!);
    const { samples } = demux([Buffer.concat([map, ...damaged])]).track("video");
    expect(samples.length).toBe(37);
  });

  it("refuses bytes that are no transport stream", () => {
    const page = Buffer.from("<!doctype html>".repeat(200));
    expect(codeFrom(() => demux([page]))).toBe("upstream_invalid");
    expect(codeFrom(() => demux([Buffer.alloc(0)]))).toBe("upstream_invalid");
    expect(codeFrom(() => demux([Buffer.alloc(3 << 20, 0x48)]))).toBe("upstream_invalid");
  });

  it("refuses an access unit of more than 32 MiB", () => {
    const { tables, pes } = createPacketMaker();
    const picture = avcPicture(true, 33 << 20);
    expect(codeFrom(() => demux([tables([avc]), pes(videoPid, 0, picture)]))).toBe("upstream_invalid");
  });

  it("refuses an access unit of millions of NAL units", () => {
    const { tables, pes } = createPacketMaker();
    const units = Buffer.from([0, 0, 1, 6]);
    const picture = Buffer.concat([avcPicture(true), Buffer.alloc(4 << 20, units)]);
    const next = pes(videoPid, 3600, avcPicture(false));
    const stream = [tables([avc]), pes(videoPid, 0, picture), next];
    expect(codeFrom(() => demux(stream))).toBe("upstream_invalid");
  });

  it("reads half a million tiny packets", () => {
    const { tables, packet } = createPacketMaker();
    const head = Buffer.from([0, 0, 1, 0xe0, 0, 0, 0x80, 0, 0, 0x41]);
    const cycle = Buffer.concat(Array.from({ length: 16 }, () => packet(videoPid, head, true)));
    const stream = Buffer.concat([tables([avc]), Buffer.alloc(cycle.length * 32_000, cycle)]);
    expect(demux([stream]).tracks).toEqual([]);
  });

  /** Reads pictures with these picture parameter sets. */
  const readPictures = (sets: readonly number[]) => {
    const { tables, pes } = createPacketMaker();
    const pictures = sets.map((set, i) => {
      const picture = avcPicture(true);
      picture[picture.indexOf(Buffer.from("68ce", "hex")) + 3] = set;
      return pes(videoPid, i * 3600, picture);
    });
    return demux([tables([avc]), ...pictures]).track("video");
  };

  it("reads audio whose video never comes in linear time, although all of it is held", () => {
    const { tables, pes } = createPacketMaker();
    const frame = adtsFrames(1, 20);
    const packets = Array.from({ length: 200_000 }, (_, n) => pes(audioPid, n * 1920, frame));
    const began = process.cpuUsage();
    const { samples } = demux([Buffer.concat([tables([avc, aac]), ...packets])]).track("audio");
    const { user, system } = process.cpuUsage(began);
    expect(samples).toHaveLength(packets.length);
    // It takes about 1 s of processor time; with a look at all times for each frame it took 18.
    expect((user + system) / 1e6).toBeLessThan(10);
  });

  it("keeps its format if every picture has another", () => {
    const { samples, formats } = readPictures(Array.from({ length: 3000 }, (_, i) => i & 0x7f));
    expect(samples.length).toBe(3000);
    const entries = new Set(formats.map(({ sampleEntry }) => Buffer.from(sampleEntry).toString("hex")));
    expect(entries.size).toBe(64);
  });

  it("goes back to formats that it had before, however often and whatever others come between", () => {
    const others = Array.from({ length: 100 }, (_, i) => 2 + i);
    const turns = Array.from({ length: 200 }, (_, i) => i % 2);
    const { formats } = readPictures([...turns, ...others, ...turns]);
    const [one, two] = formats;
    expect(one).not.toEqual(two);
    expect(formats.slice(0, 200)).toEqual(turns.map((turn) => [one, two][turn]));
    expect(formats.slice(-200)).toEqual(turns.map((turn) => [one, two][turn]));
  });

  it("refuses a program map of a thousand streams", () => {
    const { tables } = createPacketMaker();
    const streams = Array.from({ length: 1000 }, (_, i) => ({ pid: 300 + i, streamType: 0x1b }));
    expect(codeFrom(() => demux([tables(streams)]))).toBe("upstream_invalid");
  });

  it("results in samples or a ServiceError whatever bytes change", () => {
    const { tables, pes } = createPacketMaker();
    const pictures = Array.from({ length: 20 }, (_, i) => [
      pes(videoPid, i * 3600, avcPicture(i % 5 === 0, 400)),
      pes(audioPid, i * 3600, adtsFrames(2), 213),
    ]);
    const source = Buffer.concat([tables([avc, aac]), ...pictures.flat()]);
    const random = createIntegers(1);
    for (let round = 0; round < 400; round++) {
      const changed = Buffer.from(source);
      for (let i = 0; i < 1 + (round % 60); i++) changed[random(changed.length)] = random(256);
      const length = round % 3 === 0 ? random(changed.length) : changed.length;
      expect(outcome(() => demux([changed.subarray(0, length)]))).toMatch(/^(done|ServiceError)$/);
    }
  });
});

function withBits(bytes: Uint8Array, at: number, bits: number): Buffer {
  const changed = Buffer.from(bytes);
  changed[at] = (changed[at] ?? 0) | bits;
  return changed;
}

function codeFrom(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    if (error instanceof ServiceError) return error.code;
    throw error;
  }
  return "no error";
}

/** Returns "done" if all samples have data and integer times. */
function outcome(call: () => Recorder): string {
  try {
    const samples = call().tracks.flatMap((track) => track.samples);
    const isValid = ({ dts, pts, duration, data }: Sample) =>
      [dts, pts, duration].every(Number.isSafeInteger) && duration >= 0 && data.length > 0;
    return samples.every(isValid) ? "done" : "invalid samples";
  } catch (error) {
    return error instanceof Error ? error.name : "unknown";
  }
}
