import { describe, expect, it } from "vitest";
import { createMpegTsDemuxer } from "../../src/remux/mpeg-ts/demuxer.ts";
import { nullSink, type TrackKind } from "../../src/remux/samples.ts";
import { Timelines } from "../../src/remux/timelines.ts";
import { adtsFrames, audioPid, avcPicture, createPacketMaker, videoPid } from "./ts-packet-maker.ts";
import { createRecorder, demux } from "./ts-recorder.ts";

const avc = { pid: videoPid, streamType: 0x1b };
const aac = { pid: audioPid, streamType: 0x0f };
const otherPid = 300;
const moved = { pid: otherPid, streamType: 0x0f };

describe("the program of a transport stream", () => {
  it("is followed when its map changes", () => {
    const { tables, pes } = createPacketMaker();
    const audio = demux([
      tables([aac]),
      pes(audioPid, 0, adtsFrames(2)),
      tables([moved]),
      pes(otherPid, 3840, adtsFrames(2)),
      pes(audioPid, 0, adtsFrames(2)),
    ]).track("audio");
    expect(audio.samples.map(({ dts }) => dts)).toEqual([0, 1024, 2048, 3072]);
    expect(audio.formats.length).toBe(1);
  });

  it("has audio that is a description, or effects alone, taken last", () => {
    const language = (type: number) => Buffer.from([0x0a, 4, ...Buffer.from("eng"), type]);
    const supplementary = (kind: number) => Buffer.from([0x7f, 2, 0x06, 0x80 | (kind << 2)]);
    const taken = (first: Buffer, second: Buffer) => {
      const { tables, pes } = createPacketMaker();
      const map = tables([
        { ...aac, descriptors: first },
        { ...moved, descriptors: second },
      ]);
      const media = [pes(audioPid, 0, adtsFrames(2)), pes(otherPid, 0, adtsFrames(3))];
      return demux([map, ...media]).track("audio").samples.length === 2 ? "first" : "second";
    };
    const main = language(0);
    expect(taken(main, main)).toBe("first");
    for (const other of [language(1), language(3), supplementary(1)]) {
      expect(taken(other, main)).toBe("second");
      expect(taken(main, other)).toBe("first");
      expect(taken(other, other)).toBe("first");
    }
    // For people who hear badly it is the programme, and so is what is not classified.
    for (const other of [language(2), supplementary(0), Buffer.from([0x0a, 3, ...Buffer.from("eng")])]) {
      expect(taken(other, main)).toBe("first");
    }
  });

  it("is followed when its map comes on the PID of a stream before, and back", () => {
    const [first, second] = [createPacketMaker(otherPid), createPacketMaker(audioPid)];
    const segment = (maker: typeof first, pid: number, time: number) => [
      maker.tables([{ ...aac, pid }]),
      maker.pes(pid, time, adtsFrames(2)),
    ];
    const stream = [
      ...segment(first, audioPid, 0),
      ...segment(second, otherPid, 3840),
      ...segment(first, audioPid, 7680),
    ];
    const dropped: string[] = [];
    const { samples } = demux(stream, ["audio"], (kind) => dropped.push(kind)).track("audio");
    expect(samples.map(({ dts }) => dts)).toEqual([0, 1024, 2048, 3072, 4096, 5120]);
    expect(dropped).toEqual([]);
  });

  it("keeps its streams if the association lists their PIDs as those of other programs", () => {
    const { programs, pes } = createPacketMaker();
    const shared = { ...aac, pid: 4097 };
    const stream = [0, 3840, 7680].flatMap((time) => [
      programs([[shared], []]).subarray(0, 2 * 188),
      pes(shared.pid, time, adtsFrames(2)),
    ]);
    const { samples } = demux(stream).track("audio");
    expect(samples).toHaveLength(6);
  });

  it("stays the same if the association lists its own PID, or those of no program", () => {
    const { tables, pes, packet } = createPacketMaker();
    const own = createPacketMaker(0);
    const stream = [tables([aac]), pes(audioPid, 0, adtsFrames(2)), own.tables([]), tables([aac])];
    stream.push(pes(audioPid, 3840, adtsFrames(2)), packet(otherPid, Buffer.alloc(184), true));
    expect(demux(stream).track("audio").samples).toHaveLength(4);
  });

  it("is the first one that has media", () => {
    const { tables, programs, pes } = createPacketMaker();
    const stream = [
      programs([[{ pid: 500, streamType: 0x15 }], [aac], [{ pid: otherPid, streamType: 0x0f }]]),
      pes(audioPid, 0, adtsFrames(2)),
      pes(otherPid, 0, adtsFrames(3)),
      tables([aac]),
    ];
    expect(demux(stream).track("audio").samples.length).toBe(2);
  });

  it("lacks what only another one has: the media list that", () => {
    const { programs, pes } = createPacketMaker();
    const listed = (...maps: Parameters<typeof programs>[0]): Set<TrackKind> => {
      const kinds = new Set<TrackKind>();
      const onTracks = (found: { kinds: readonly TrackKind[] }) => found.kinds.forEach((kind) => kinds.add(kind));
      const wanted = { sink: nullSink, timelines: new Timelines(), kinds: ["video", "audio"] as const };
      const demuxer = createMpegTsDemuxer({ ...wanted, onTracks });
      demuxer.read(Buffer.concat([programs(maps), pes(audioPid, 0, adtsFrames(2))]), { timeline: 0, offsetS: null });
      return kinds;
    };
    expect(listed([aac], [avc, moved])).toEqual(new Set(["audio", "video"]));
    expect(listed([aac], [moved])).toEqual(new Set(["audio"]));
  });

  it("is the first one also if others have their maps on the same PID", () => {
    const { programs, pes } = createPacketMaker(4096, 0);
    const maps = programs([[aac], [{ pid: otherPid, streamType: 0x0f }]]);
    const stream = [0, 3840].flatMap((time) => [
      maps,
      pes(audioPid, time, adtsFrames(2)),
      pes(otherPid, time, adtsFrames(3)),
    ]);
    expect(
      demux(stream)
        .track("audio")
        .samples.map(({ dts }) => dts),
    ).toEqual([0, 1024, 2048, 3072]);
  });

  it.each([
    { what: "its map has another number than the association", first: [[aac]], next: [[], [moved]], from: 2 },
    { what: "it is no longer associated with a PID that it shared", first: [[], [aac]], next: [[moved]], from: 0 },
  ])("is followed when $what", ({ first, next, from }) => {
    const [before, after] = [createPacketMaker(4096, 0), createPacketMaker(4096, 0)];
    const audio = demux([
      before.programs(first),
      before.pes(audioPid, 0, adtsFrames(2)),
      after.programs(next).subarray(from * 188),
      after.pes(otherPid, 3840, adtsFrames(2)),
    ]).track("audio");
    expect(audio.samples.map(({ dts }) => dts)).toEqual([0, 1024, 2048, 3072]);
  });

  it.each([
    { what: "audio of another codec", video: avcPicture(true), audio: Buffer.alloc(400, 0x21), drops: ["audio"] },
    { what: "video of another codec", video: adtsFrames(2), audio: adtsFrames(2), drops: ["video"] },
    { what: "no bytes", video: avcPicture(true), audio: Buffer.alloc(0), drops: [] },
  ])("tells if a stream has nothing of its type: $what", ({ video, audio, drops }) => {
    const { tables, pes } = createPacketMaker();
    const dropped: string[] = [];
    const stream = [tables([avc, aac]), pes(videoPid, 0, video), pes(audioPid, 0, audio)];
    demux(stream, ["video", "audio"], (kind) => dropped.push(kind));
    expect(dropped).toEqual(drops);
  });

  it.each([
    { what: "audio, if it has no other", streamType: 0x06, others: [], found: ["video", "audio"] },
    { what: "no audio, if it has other", streamType: 0x06, others: [{ ...aac, pid: 300 }], found: ["video", "audio"] },
    { what: "private, with audio", streamType: 0x06, id: 0xbd, others: [], found: ["video", "audio"] },
    { what: "private, with other data", streamType: 0x06, id: 0xbd, data: true, others: [], found: ["video"] },
    { what: "metadata", streamType: 0x15, id: 0xbd, others: [], found: ["video"] },
  ])(
    "tells of a stream that it does not name, and whose packets are $what",
    ({ streamType, id = 0xc0, data = false, others, found }) => {
      const { tables, pes } = createPacketMaker();
      const unnamed = pes(audioPid, 0, data ? Buffer.alloc(60, "KLV metadata") : adtsFrames(2));
      unnamed[unnamed.indexOf("000001c0", "hex") + 3] = id;
      const streams = [avc, { pid: audioPid, streamType }, ...others];
      const kinds: TrackKind[] = [];
      const drops: TrackKind[] = [];
      const demuxer = createMpegTsDemuxer({
        sink: nullSink,
        timelines: new Timelines(),
        kinds: ["video", "audio"],
        onTracks: (tracks) => kinds.push(...tracks.kinds),
        onDrop: (kind) => drops.push(kind),
      });
      const stream = [tables(streams), pes(videoPid, 0, avcPicture(true)), unnamed, unnamed];
      demuxer.read(Buffer.concat(stream), { timeline: 0, offsetS: null });
      demuxer.flush();
      expect({ kinds, drops }).toEqual({ kinds: found, drops: [] });
    },
  );

  it("has the types of Blu-ray discs if it is registered as theirs, and no audio of such a type else", () => {
    const read = (registration: string) => {
      const { programs, pes } = createPacketMaker();
      const map = programs([[avc, { pid: audioPid, streamType: 0x80 }]], Buffer.from(registration));
      return () => demux([map, pes(videoPid, 0, avcPicture(true))]).tracks.length;
    };
    expect(read("\x05\x04HDMV")).toThrow("MPEG-TS with PCM (stream type 0x80) cannot be put into MP4");
    expect(read("\x05\x04CUEI")()).toBe(1);
  });

  it("is read again for another timeline, into the same tracks", () => {
    const { tables, pes } = createPacketMaker();
    const recorder = createRecorder();
    const timelines = new Timelines();
    const demuxer = createMpegTsDemuxer({ sink: recorder, timelines, kinds: ["video", "audio"] });
    const first = [tables([avc, aac]), pes(videoPid, 0, avcPicture(true)), audio(audioPid)];
    const other = [
      { ...aac, pid: videoPid },
      { ...avc, pid: audioPid },
    ];
    const second = [tables(other), audio(videoPid), pes(audioPid, 0, avcPicture(true))];
    function audio(pid: number): Buffer {
      return pes(pid, 0, adtsFrames(2));
    }
    demuxer.read(Buffer.concat(first), { timeline: 0, offsetS: null });
    demuxer.read(Buffer.concat(second), { timeline: 1, offsetS: null });
    demuxer.flush();
    const times = recorder.tracks.map(({ samples }) => samples.map(({ dts }) => dts));
    const endOfAudio = 3840;
    expect(times).toEqual([
      [0, endOfAudio],
      [0, 1024, 2048, 3072],
    ]);
  });

  it("must keep its codecs, also on another timeline", () => {
    const { tables, pes } = createPacketMaker();
    const options = {
      sink: createRecorder(),
      timelines: new Timelines(),
      kinds: ["audio"],
    } as const;
    const demuxer = createMpegTsDemuxer(options);
    const mp3 = Buffer.alloc(417);
    mp3.set([0xff, 0xfb, 0x90, 0x00]);
    const first = [tables([aac]), pes(audioPid, 0, adtsFrames(2))];
    const second = [tables([{ ...aac, streamType: 3 }]), pes(audioPid, 0, Buffer.concat([mp3, mp3]))];
    demuxer.read(Buffer.concat(first), { timeline: 0, offsetS: null });
    demuxer.read(Buffer.concat(second), { timeline: 1, offsetS: null });
    expect(() => demuxer.flush()).toThrow(
      expect.objectContaining({
        code: "format_unavailable",
        message: expect.stringMatching(/from AAC to MPEG audio/),
      }),
    );
  });

  it("may be named after its first packets", () => {
    const { tables, pes } = createPacketMaker();
    const before = [pes(videoPid, 0, avcPicture(true)), pes(audioPid, 0, adtsFrames(2))];
    const after = [pes(videoPid, 3600, avcPicture(false)), pes(audioPid, 3840, adtsFrames(2))];
    const all = demux([Buffer.concat(before), tables([avc, aac]), ...after]);
    expect(all.track("video").samples.map(({ dts }) => dts)).toEqual([0, 3600]);
    expect(all.track("audio").samples.length).toBe(4);
  });

  it("must be named within 16 MiB", () => {
    const { pes } = createPacketMaker();
    const unnamed = pes(videoPid, 0, Buffer.alloc(1 << 20));
    expect(() => demux(Array.from({ length: 17 }, () => unnamed))).toThrow(/no program map in/);
  });

  it("may have streams that change to other times one after the other", () => {
    const { tables, pes } = createPacketMaker();
    const second = 90_000;
    const all = demux([
      tables([avc, aac]),
      pes(videoPid, 5 * second, avcPicture(true)),
      pes(audioPid, 5 * second, adtsFrames(2)),
      pes(videoPid, 5 * second + 3600, avcPicture(false)),
      pes(videoPid, second, avcPicture(true)),
      pes(audioPid, 5 * second + 3840, adtsFrames(2)),
      pes(videoPid, second + 3600, avcPicture(false)),
      pes(audioPid, second, adtsFrames(2)),
    ]);
    const video = all.track("video").samples.map(({ dts }) => dts - 5 * second);
    const audio = all.track("audio").samples.map(({ dts }) => dts - 5 * 48_000);
    const seam = 2 * 3840;
    expect(video).toEqual([0, 3600, seam, seam + 3600]);
    expect(audio).toEqual([0, 1024, 2048, 3072, 4096, 5120]);
  });

  it.each([900_000_000, 0])("stays in sync after a damaged time: %s", (damaged) => {
    const { tables, pes } = createPacketMaker();
    const second = 90_000;
    const right = [0, 1, 2, 3, 4].map((i) => 5 * second + i * 3600);
    const times = right.with(2, damaged);
    const { samples } = demux([
      tables([avc, aac]),
      pes(audioPid, 5 * second, adtsFrames(2)),
      ...times.map((pts, i) => pes(videoPid, pts, avcPicture(i === 0))),
      pes(audioPid, 5 * second + 3840, adtsFrames(2)),
    ]).track("video");
    expect(samples.map(({ dts }) => dts)).toEqual(right);
  });

  const wrapS = 2 ** 33 / 90_000;
  /** Demuxes video and audio from two sources that begin at these times, seconds; returns where they are presented. */
  const demuxApart = (order: readonly { stream: typeof avc; startS: number; offsetS: number | null }[]) => {
    const recorder = createRecorder();
    const timelines = new Timelines();
    for (const { stream, startS, offsetS } of order) {
      const { tables, pes } = createPacketMaker();
      const kind = stream === avc ? "video" : "audio";
      const demuxer = createMpegTsDemuxer({ sink: recorder, timelines, kinds: [kind] });
      const media = kind === "video" ? avcPicture(true) : adtsFrames(2);
      const pts = Math.round(startS * 90_000) % 2 ** 33;
      demuxer.read(Buffer.concat([tables([stream]), pes(stream.pid, pts, media)]), { timeline: 0, offsetS });
      demuxer.flush();
    }
    return {
      videoS: recorder.track("video").samples[0]!.pts / 90_000,
      audioS: recorder.track("audio").samples[0]!.pts / 48_000,
    };
  };

  it.each([
    [-1, 0.5],
    [0.5, -1],
    [-2, -1],
  ])("stays in sync with another source if the clock wraps before one of them begins: %s and %s s", (video, audio) => {
    const order = [
      { stream: avc, startS: wrapS + video, offsetS: null },
      { stream: aac, startS: wrapS + audio, offsetS: null },
    ];
    for (const sources of [order, order.toReversed()]) {
      const { videoS, audioS } = demuxApart(sources);
      expect(audioS - videoS).toBeCloseTo(audio - video, 3);
    }
  });

  it("is where its manifest says, however far its times are from those of another source", () => {
    const { videoS, audioS } = demuxApart([
      { stream: avc, startS: wrapS - 1, offsetS: 1 - wrapS },
      { stream: aac, startS: 2, offsetS: 0 },
    ]);
    expect([videoS, audioS]).toEqual([expect.closeTo(0, 3), expect.closeTo(2, 3)]);
  });

  it("may start while its times wrap around", () => {
    const { tables, pes } = createPacketMaker();
    const wrap = 2 ** 33;
    const segments = [
      pes(videoPid, 0, avcPicture(true)),
      pes(audioPid, wrap - 1920, adtsFrames(2)),
      pes(videoPid, 3600, avcPicture(false)),
    ];
    const result = demux([tables([avc, aac]), ...segments]);
    expect(result.track("video").samples.map(({ pts }) => pts)).toEqual([wrap, wrap + 3600]);
    expect(result.track("audio").samples[0]!.pts / 48_000).toBeCloseTo((wrap - 1920) / 90_000, 3);
  });

  it("does not lose the packet after one that is cut off at the end of a segment", () => {
    const { tables, pes } = createPacketMaker();
    const whole = [tables([avc]), pes(videoPid, 0, avcPicture(true))];
    const cutOff = createPacketMaker().pes(videoPid, 3600, avcPicture(false)).subarray(0, 100);
    const next = pes(videoPid, 7200, avcPicture(false, 1000));
    const { samples } = demux([Buffer.concat([...whole, cutOff]), next]).track("video");
    expect(samples.map(({ dts }) => dts)).toEqual([0, 7200]);
  });

  it("may have pictures without a time, which keep the distance of those before", () => {
    const { tables, pes } = createPacketMaker();
    const times = [0, 3000, null, null, 12_000];
    const pictures = times.map((pts, i) => pes(videoPid, pts, avcPicture(i === 0)));
    const { samples } = demux([tables([avc]), ...pictures]).track("video");
    expect(samples.map(({ dts }) => dts)).toEqual([0, 3000, 6000, 9000, 12_000]);
  });

  it("may have several pictures in one packet, or one in several packets", () => {
    const { tables, pes } = createPacketMaker();
    const two = Buffer.concat([avcPicture(true), avcPicture(false)]);
    const long = avcPicture(false, 1000);
    const { samples } = demux([
      tables([avc]),
      pes(videoPid, 0, two),
      pes(videoPid, 7200, long.subarray(0, 500)),
      pes(videoPid, null, long.subarray(500)),
    ]).track("video");
    expect(samples.map(({ dts, data }) => [dts, data.length])).toEqual([
      [0, 54],
      [3600, 54],
      [7200, 1004],
    ]);
  });
});
