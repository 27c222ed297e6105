import { describe, expect, it } from "vitest";
import { createMpegTsDemuxer } from "../../src/remux/mpeg-ts/demuxer.ts";
import { pidOf } from "../../src/remux/mpeg-ts/pids.ts";
import type { SegmentTiming, TrackKind } from "../../src/remux/samples.ts";
import { Timelines } from "../../src/remux/timelines.ts";
import { adtsFrames, audioPid, avcPicture, createPacketMaker, videoPid } from "./ts-packet-maker.ts";
import { audioInput, createMediaFolder, hasFfmpeg, videoInput } from "./ts-media.ts";
import { createRecorder, cut, demux, start } from "./ts-recorder.ts";

const frameTicks = (frames: number) => Math.round((frames * 1024 * 90_000) / 48_000);

/** Demuxes segments, and returns which kinds are left out. @param durationS By their list. */
function dropsOf(segments: readonly Buffer[], durationS = 2): TrackKind[] {
  const drops: TrackKind[] = [];
  const onDrop = (kind: TrackKind) => void drops.push(kind);
  const options = { sink: createRecorder(), timelines: new Timelines(), onDrop };
  const demuxer = createMpegTsDemuxer({ ...options, kinds: ["video", "audio"] });
  const timing = (): SegmentTiming => ({ ...start, durationS });
  for (const segment of segments) demuxer.read(segment, timing());
  demuxer.flush();
  return drops;
}

/** Returns PES packets of one frame each that start at these frames; their counters go on. */
function audioAt(frames: readonly number[], maker = createPacketMaker()): Buffer {
  const aac = { pid: audioPid, streamType: 0x0f };
  const packets = frames.map((frame) => maker.pes(audioPid, 90_000 + frameTicks(frame), adtsFrames(1)));
  return Buffer.concat([maker.tables([aac]), ...packets]);
}

const count = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);

describe("audio of MPEG-TS whose counters go on where PES packets were removed", () => {
  it.each([
    ["one frame", [...count(0, 40), ...count(41, 60)]],
    ["four frames", [...count(0, 40), ...count(44, 60)]],
  ])("tells that %s is missing", (_, frames) => {
    expect(dropsOf([audioAt(frames)])).toEqual(["audio"]);
  });

  it("is presented when its timestamps say, if one frame is missing", () => {
    const { samples } = demux([audioAt([...count(0, 40), ...count(41, 60)])], ["audio"]).track("audio");
    expect(samples.at(-1)!.dts - samples[0]!.dts).toBe(59 * 1024);
  });

  it("tells nothing where the timestamps drift by a frame, jump by a part of one, or are not exact", () => {
    const drifting = count(0, 400).map((frame) => frame * 1.01);
    const jumping = [...count(0, 40), ...count(40, 80).map((frame) => frame + 1.4)];
    const inexact = count(0, 80).map((frame) => frame + [0, 1, 0.5, 2][frame % 4]!);
    for (const frames of [drifting, jumping, inexact]) expect(dropsOf([audioAt(frames)])).toEqual([]);
  });

  it("tells nothing where a segment begins a frame later", () => {
    const maker = createPacketMaker();
    const segments = [count(0, 94), count(95, 189), count(190, 284)].map((frames) => audioAt(frames, maker));
    expect(dropsOf(segments)).toEqual([]);
    // Some lists round short segments to 0 s.
    expect(dropsOf(segments, 0)).toEqual([]);
  });

  it("tells nothing where other times begin within a segment, a whole number of frames after the audio before", () => {
    const maker = createPacketMaker();
    const streams = [
      { pid: videoPid, streamType: 0x1b },
      { pid: audioPid, streamType: 0x0f },
    ];
    /** The audio of the first one ends six frames before its video. */
    const joined = [0, frameTicks(6000)].map((from) => [
      ...count(0, 50).map((picture) => maker.pes(videoPid, 90_000 + from + picture * 3840, avcPicture(picture === 0))),
      ...count(0, 94).map((frame) => maker.pes(audioPid, 90_000 + from + frameTicks(frame), adtsFrames(1))),
    ]);
    expect(dropsOf([Buffer.concat([maker.tables(streams), ...joined.flat()])])).toEqual([]);
  });
});

describe.skipIf(!hasFfmpeg)("H.264 in MPEG-TS whose counters go on where PES packets were removed", () => {
  const media = createMediaFolder();

  /** Returns the packets without the PES packet `index` of video. */
  function without(bytes: Buffer, index: number): Buffer {
    let unit = -1;
    let removed = 0;
    return Buffer.concat(
      cut(bytes, () => 188).flatMap((packet) => {
        if (pidOf(packet, 0) !== videoPid) return [packet];
        if ((packet[1]! & 0x40) !== 0) unit += 1;
        removed += unit === index ? 1 : 0;
        const counted = Buffer.from(packet);
        counted[3] = (packet[3]! & 0xf0) | ((packet[3]! - removed) & 0x0f);
        return unit === index ? [] : [counted];
      }),
    );
  }

  const make = (name: string, ...options: readonly string[]) =>
    media.make(`${name}.ts`, ...videoInput(4), ...audioInput(4), "-c:v", "libx264", "-g", "25", ...options);

  it.each([
    ["a picture that others refer to", 40],
    ["an IDR picture", 50],
    ["an IDR picture after a number that begins again", 75],
  ])("tells that %s is missing", (_, index) => {
    const whole = make("references", "-bf", "0");
    expect(dropsOf([whole])).toEqual([]);
    expect(dropsOf([without(whole, index)])).toEqual(["video"]);
  });

  it.each([
    ["pyramids of B-frames", "bframes=8:b-pyramid=normal:b-adapt=0"],
    ["fields", "tff=1:bframes=2"],
    ["open groups of pictures", "open-gop=1:bframes=3:b-adapt=0"],
    ["intra refresh", "intra-refresh=1:bframes=0"],
    ["one reference", "ref=1:bframes=0"],
  ])("tells nothing of a whole stream with %s", (_, parameters) => {
    const whole = make("right", "-x264-params", `${parameters}:scenecut=0`);
    expect(dropsOf([whole])).toEqual([]);
  });
});
