import { beforeAll, describe, expect, it } from "vitest";
import { Mp4Writer } from "../../src/remux/mp4/write/writer.ts";
import { createMpegTsDemuxer } from "../../src/remux/mpeg-ts/demuxer.ts";
import { Timelines } from "../../src/remux/timelines.ts";
import { createMediaFolder, hasFfmpeg, videoInput, probePackets, probeStreams, audioInput, x264 } from "./ts-media.ts";
import { createRecorder, cut, demux, start } from "./ts-recorder.ts";
import { decodedMd5 } from "../media/read-media.ts";

const kinds = ["video", "audio"] as const;
const aac = ["-c:a", "aac"];

describe.skipIf(!hasFfmpeg)("an MPEG-TS demuxer of several segments", () => {
  const media = createMediaFolder();
  let source: Buffer = Buffer.alloc(0);
  beforeAll(() => {
    source = media.make("source.ts", ...videoInput(), ...audioInput(), ...x264, ...aac);
  });

  for (const [how, lengthAt] of [
    ["of one byte", () => 1],
    ["of a packet less one", () => 187],
    ["of a packet and one", () => 189],
    ["of any length", (i: number) => 1 + ((i * 7919) % 5000)],
  ] as const) {
    it(`reads the same samples from segments ${how}`, () => {
      expect(demux(cut(source, lengthAt)).tracks).toEqual(demux([source]).tracks);
    });
  }

  it("finds packets of 192 and 204 bytes", () => {
    const packets = cut(source, () => 188);
    const stamped = packets.flatMap((packet) => [packet.subarray(100, 104), packet]);
    const protectedPackets = packets.flatMap((packet) => [packet, packet.subarray(100, 116)]);
    const { tracks } = demux([source]);
    expect(demux(cut(Buffer.concat(stamped), () => 1000)).tracks).toEqual(tracks);
    expect(demux(cut(Buffer.concat(protectedPackets), () => 1000)).tracks).toEqual(tracks);
  });

  it("loses no packet where the next segment has packets of another length", () => {
    const packets = cut(source, () => 188);
    const lengths: ((packet: Uint8Array) => Uint8Array[])[] = [
      (packet) => [packet],
      (packet) => [packet.subarray(100, 104), packet],
      (packet) => [packet, packet.subarray(100, 116)],
    ];
    for (const [first, second] of lengths.flatMap((one) => lengths.map((other) => [one, other] as const))) {
      const segments = [packets.slice(0, 100).flatMap(first), packets.slice(100).flatMap(second)];
      const dropped: string[] = [];
      const { tracks } = demux(
        segments.map((each) => Buffer.concat(each)),
        kinds,
        (kind) => dropped.push(kind),
      );
      expect(tracks).toEqual(demux([source]).tracks);
      expect(dropped).toEqual([]);
    }
  });

  it("loses nothing where files were put together, whose counters restart", () => {
    const next = media.make("next.ts", ...videoInput(), ...audioInput(), ...x264, ...aac, "-output_ts_offset", "2.1");
    const dropped: string[] = [];
    const joined = demux([Buffer.concat([source, next])], kinds, (kind) => dropped.push(kind));
    expect(joined.tracks).toEqual(demux([source, next]).tracks);
    expect(dropped).toEqual([]);
  });

  it("knows a loss from a joint, if the counters go on behind the next program tables", () => {
    const packets = cut(source, () => 188);
    const isTables = (packet: Uint8Array) => (packet[1]! & 0x1f) === 0 && packet[2] === 0;
    const tables = packets.flatMap((packet, i) => (isTables(packet) ? [i] : []))[3]!;
    const dropped: string[] = [];
    const lossy = packets.toSpliced(tables - 7, 7);
    demux([Buffer.concat(lossy)], kinds, (kind) => dropped.push(kind));
    expect(dropped.length).toBeGreaterThan(0);
  });

  it("knows a loss behind program tables that do not count, also if the counter is then as it was at first", () => {
    const packets = cut(source, () => 188).map((packet) => Buffer.from(packet));
    const pidOf = (packet: Buffer) => packet.readUInt16BE(1) & 0x1fff;
    for (const packet of packets) if (pidOf(packet) === 0) packet[3]! &= 0xf0;
    const videoPid = 0x100;
    const first = packets.find((packet) => pidOf(packet) === videoPid)!;
    const tables = packets.findLastIndex(
      (packet, i) => pidOf(packet) === 0 && packets.slice(i).find((next) => pidOf(next) === videoPid)?.[1] === 0x41,
    );
    const later = packets.slice(tables).filter((packet) => pidOf(packet) === videoPid);
    const missing = (first[3]! - later[0]![3]!) & 0x0f;
    expect(missing).toBeGreaterThan(0);
    for (const packet of later) packet[3] = (packet[3]! & 0xf0) | ((packet[3]! + missing) & 0x0f);
    const dropped: string[] = [];
    demux([Buffer.concat(packets)], kinds, (kind) => dropped.push(kind));
    expect(dropped).toContain("video");
  });

  it("continues after garbage between packets", () => {
    const middle = 188 * 100;
    const garbage = Buffer.from(Uint8Array.from({ length: 700 }, (_, i) => i * 37));
    const segments = [Buffer.alloc(33), source.subarray(0, middle), garbage, source.subarray(middle)];
    expect(demux([Buffer.concat(segments)]).tracks).toEqual(demux([source]).tracks);
  });

  it("finds the times of pictures of H.264 that state none, with B-frames, as if they stated them", () => {
    const stated = media.make("b.ts", ...videoInput(), ...x264, "-bf", "3", "-g", "20");
    const stripped = Buffer.from(stated);
    const starts = Array.from({ length: stated.length / 188 }, (_, i) => 188 * i).flatMap((packet) => {
      const at = stated.indexOf(Buffer.from([0, 0, 1, 0xe0]), packet);
      return (stated[packet + 1]! & 0x40) > 0 && at >= 0 && at < packet + 188 ? [at] : [];
    });
    for (const at of starts.filter((_, i) => i % 3 > 0)) {
      stripped[at + 7]! &= 0x3f;
      stripped.fill(0xff, at + 9, at + 9 + stripped[at + 8]!);
    }
    const timesOf = (bytes: Buffer) =>
      demux([bytes])
        .track("video")
        .samples.map(({ pts, isGuessed = false }) => ({ pts, isGuessed }));
    expect(starts.length).toBeGreaterThan(40);
    expect(timesOf(stripped)).toEqual(timesOf(stated));
  });

  it("leaves out only the pictures that miss a packet", () => {
    const packets = cut(source, () => 188);
    const isVideo = (packet: Uint8Array) => packet[1] === 0x01 && packet[2] === 0;
    const lost = packets.findIndex((packet, i) => i > 100 && isVideo(packet));
    const result = demux([Buffer.concat(packets.toSpliced(lost, 1))]);
    const all = demux([source]).track("video").samples;
    const left = result.track("video").samples;
    expect(left.length).toBe(all.length - 1);
    const whole = new Set(all.map(({ data }) => Buffer.from(data).toString("latin1")));
    expect(left.every(({ data }) => whole.has(Buffer.from(data).toString("latin1")))).toBe(true);
    expect(result.track("audio").samples).toEqual(demux([source]).track("audio").samples);
  });

  it("puts a timeline that restarts at the end of the one before", () => {
    const recorder = createRecorder();
    const timelines = new Timelines();
    const demuxer = createMpegTsDemuxer({ sink: recorder, timelines, kinds });
    for (const timeline of [4, 5, 6]) demuxer.read(source, { timeline, offsetS: null });
    demuxer.flush();
    const packets = probePackets(media.path("source.ts")).video.length;
    const { samples } = recorder.track("video");
    expect(samples.length).toBe(3 * packets);
    const span = samples[packets]!.pts - samples[0]!.pts;
    expect(span / 90_000).toBeCloseTo(2.03, 1);
    expect(samples[2 * packets]!.pts - samples[packets]!.pts).toBeCloseTo(span, -1);
    const audio = recorder.track("audio").samples;
    const third = audio.length / 3;
    const audioSpan = (audio[third]!.pts - audio[0]!.pts) / 44_100;
    expect(audioSpan).toBeCloseTo(span / 90_000, 3);
  });

  it("reports the picture within which a timeline begins", () => {
    const packets = cut(source, () => 188);
    const isStart = (packet: Uint8Array) => (packet[1]! & 0x40) !== 0;
    const isVideo = (packet: Uint8Array) => (packet[1]! & 0x1f) === 1 && packet[2] === 0;
    const middle = packets.length >> 1;
    const within = packets.findIndex((packet, i) => i > middle && isVideo(packet) && !isStart(packet));
    const dropsAt = (at: number, timeline: number, from = at) => {
      const dropped: string[] = [];
      const sink = createRecorder();
      const onDrop = (kind: string) => dropped.push(kind);
      const demuxer = createMpegTsDemuxer({ sink, timelines: new Timelines(), kinds, onDrop });
      demuxer.read(Buffer.concat(packets.slice(0, at)), start);
      demuxer.read(Buffer.concat([...packets.slice(0, 3), ...packets.slice(from)]), { timeline, offsetS: null });
      demuxer.flush();
      return dropped;
    };
    expect(dropsAt(within, 1)).toEqual(["video"]);
    expect(dropsAt(within, 1, within + 1), "its counter shows that, too").toEqual(["video"]);
    expect(dropsAt(within, 0)).toEqual([]);
  });

  for (const [how, fps, lastS] of [
    ["as long as those before", 1, 1],
    ["as long as those before, if each lasts 5 seconds", 0.2, 5],
  ] as const) {
    it(`shows the last picture of a slow video ${how}`, () => {
      const rate = ["-f", "lavfi", "-i", `testsrc2=size=160x120:rate=${fps}:duration=${4 / fps}`, "-r", `${fps}`];
      const { samples } = demux([media.make("slow.ts", ...rate, ...x264, "-bf", "0")]).track("video");
      expect(samples.map(({ duration }) => duration / 90_000)).toEqual([0, 0, 0, lastS]);
    });
  }

  it("shows the last picture until the listed end of its segment, if the segments before end where they are listed", () => {
    const still = (s: number) => [
      "-f",
      "lavfi",
      "-i",
      `testsrc2=size=160x120:rate=10:duration=1.1`,
      "-output_ts_offset",
      `${s}`,
    ];
    const segments = [0, 4].map((s) => {
      const times = ["-vf", "setpts=if(eq(N\\,10)\\,3/TB\\,PTS)", "-vsync", "vfr"];
      return media.make(`still-${s}.ts`, ...still(s), ...times, ...x264, "-bf", "0");
    });
    const last = (listedS: readonly number[]): number => {
      const recorder = createRecorder();
      const demuxer = createMpegTsDemuxer({ sink: recorder, timelines: new Timelines(), kinds: ["video"] });
      for (const [i, durationS] of listedS.entries()) demuxer.read(segments[i]!, { ...start, durationS });
      demuxer.flush();
      return recorder.track("video").samples.at(-1)!.duration / 90_000;
    };
    expect(last([4, 4])).toBeCloseTo(1, 2);
    expect(last([4, 7.5])).toBeCloseTo(4.5, 2);
    expect(last([5, 9])).toBeCloseTo(0.1, 2);
  });

  it("puts a timeline at its stated offset", () => {
    const recorder = createRecorder();
    const timelines = new Timelines();
    const demuxer = createMpegTsDemuxer({ sink: recorder, timelines, kinds });
    demuxer.read(source, { timeline: 0, offsetS: -1.4 });
    demuxer.read(source, { timeline: 1, offsetS: 98.6 });
    demuxer.flush();
    const { samples } = recorder.track("video");
    expect(samples[samples.length / 2]!.pts - samples[0]!.pts).toBe(100 * 90_000);
    expect(samples[0]!.pts / 90_000).toBeCloseTo(0.08, 1);
  });

  it("continues if times fall back within a timeline", () => {
    const long = media.make("long.ts", ...videoInput(15), ...audioInput(15), ...x264, ...aac);
    const samples = demux([long, source]).track("video").samples;
    const seam = samples[15 * 25]!.pts - samples[0]!.pts;
    expect(seam / 90_000).toBeCloseTo(15.05, 1);
    expect(samples.every(({ dts }, i) => i === 0 || dts > samples[i - 1]!.dts)).toBe(true);
  });

  for (const [how, offsetS] of [
    ["fall back to where they began", 0],
    ["fall back a little", 0.7],
    ["leap a hundred seconds", 100],
    ["leap to just before the wrap", 2 ** 33 / 90_000 - 1],
  ] as const) {
    it(`continues in sync, all samples apart, if times ${how}`, () => {
      const offset = ["-output_ts_offset", String(offsetS)];
      const other = media.make("o.ts", ...videoInput(), ...audioInput(), ...x264, ...aac, ...offset);
      const all = demux([source, other, source]);
      const video = all.track("video").samples;
      const audio = all.track("audio").samples;
      const alone = demux([source]);
      const count = alone.track("video").samples.length;
      const audioCount = alone.track("audio").samples.length;
      expect([video.length, audio.length]).toEqual([3 * count, 3 * audioCount]);
      const steps = video.slice(1).map(({ dts }, i) => (dts - video[i]!.dts) / 90_000);
      expect(Math.min(...steps)).toBeGreaterThan(0.03);
      expect(Math.max(...steps)).toBeLessThan(0.2);
      const audioSteps = audio.slice(1).map(({ dts }, i) => dts - audio[i]!.dts);
      expect(Math.min(...audioSteps)).toBeGreaterThan(1000);
      const lead = (i: number) => video[i * count]!.pts / 90_000 - audio[i * audioCount]!.pts / 44_100;
      expect(lead(1)).toBeCloseTo(lead(0), 2);
      expect(lead(2)).toBeCloseTo(lead(0), 2);
    });
  }

  it("finds where the video beside audio alone begins, if times fall back to before that", () => {
    const at = (s: number) =>
      media.make(`at-${s}.ts`, ...videoInput(), ...audioInput(), ...x264, ...aac, "-output_ts_offset", `${s}`);
    const starts: number[] = [];
    const onUnread = ({ startS }: { startS: number }) => void starts.push(startS);
    const options = { sink: createRecorder(), timelines: new Timelines(), kinds: ["audio"] as const, onUnread };
    const demuxer = createMpegTsDemuxer(options);
    for (const segment of [at(10), at(3)]) demuxer.read(segment, start);
    demuxer.flush();
    expect(Math.min(...starts)).toBeCloseTo(starts[0]!, 0);
  });

  it("keeps video and audio of different sources in sync if times fall back", () => {
    const video = media.make("v.ts", ...videoInput(), ...x264);
    const audio = media.make("a.ts", ...audioInput(2.02), ...aac);
    const recorder = createRecorder();
    const timelines = new Timelines();
    const sources = [video, audio].map((bytes) => ({
      bytes,
      demuxer: createMpegTsDemuxer({ sink: recorder, timelines, kinds }),
    }));
    const times = 30;
    for (let i = 0; i < times; i++) {
      for (const { bytes, demuxer } of sources) demuxer.read(bytes, start);
    }
    for (const { demuxer } of sources) demuxer.flush();
    const pictures = recorder.track("video").samples;
    const frames = recorder.track("audio").samples;
    const lead = (i: number) =>
      pictures[(i * pictures.length) / times]!.pts / 90_000 - frames[(i * frames.length) / times]!.pts / 44_100;
    expect(Math.abs(lead(times - 1) - lead(0))).toBeLessThan(0.03);
  });

  it("sets another format if the video changes its size, in a file that decodes", () => {
    const large = media.make("large.ts", ...videoInput(2, "320x240"), ...audioInput(2), ...x264, ...aac);
    const sink = new Mp4Writer({ path: media.path("sizes.mp4"), expectedS: null });
    const demuxer = createMpegTsDemuxer({ sink, timelines: new Timelines(), kinds });
    demuxer.read(source, start);
    demuxer.read(large, { timeline: 1, offsetS: null });
    demuxer.flush();
    sink.finish();
    expect(probeStreams(media.path("sizes.mp4"), "nb_frames")[0]).toBe("100");
    expect(decodedMd5(media.path("sizes.mp4"), "video")).toMatch(/^MD5=/);
    const { formats } = demux([source, large]).track("video");
    expect(formats.map(({ width }) => width)).toEqual([160, 320]);
  });
});
