import { describe, expect, it } from "vitest";
import { createPackedAudioDemuxer } from "../../src/remux/packed-audio/demuxer.ts";
import { decryptSamples } from "../../src/remux/sample-encryption.ts";
import { Timelines } from "../../src/remux/timelines.ts";
import { encryptBlocks, encryptFrames, key } from "./sample-encryptor.ts";
import { adtsFrames, audioPid, avcPicture, createPacketMaker, videoPid } from "./ts-packet-maker.ts";
import { createRecorder, demux, start } from "./ts-recorder.ts";

const [avcType, adtsType, avcOfSamples, adtsOfSamples] = [0x1b, 0x0f, 0xdb, 0xcf];

/** Of the pictures below: a slice of 404 bytes, of which the blocks at 32, 192 and 352 are encrypted, or of 368, of which the last one is not. */
const slices = new Map([
  [404, [32, 192, 352]],
  [368, [32, 192]],
  [48, []],
]);

/** Returns a picture whose slice has emulation prevention, which is added again after it was encrypted. */
function picture(size: number, isEncrypted: boolean): Buffer {
  const whole = avcPicture(true, size);
  const at = whole.length - size;
  const slice = whole.subarray(at);
  if (size > 48) slice.set([0, 0, 3, 1, 0, 0, 3], 60);
  if (!isEncrypted) return whole;
  const blocks = encryptBlocks(Buffer.from(slice), slices.get(size)!).toString("latin1");
  const escaped = blocks.replaceAll(/\0\0(?=[\0-\x03])/g, "\0\0\x03");
  return Buffer.concat([whole.subarray(0, at), Buffer.from(escaped, "latin1")]);
}

/** Makes a segment of three pictures and nine frames of sound. */
function makeSegment(isEncrypted: boolean, types = isEncrypted ? [avcOfSamples, adtsOfSamples] : [avcType, adtsType]) {
  const maker = createPacketMaker();
  const [video = 0, audio = 0] = types;
  const parts = [...slices.keys()].flatMap((size, i) => {
    const frames = isEncrypted ? encryptFrames(adtsFrames(3), 100) : adtsFrames(3);
    return [
      maker.pes(videoPid, 90_000 + 3600 * i, picture(size, isEncrypted)),
      maker.pes(audioPid, 90_000 + 5760 * i, frames),
    ];
  });
  const tables = maker.tables([
    { pid: videoPid, streamType: video },
    { pid: audioPid, streamType: audio },
  ]);
  return Buffer.concat([tables, ...parts]);
}

const clear = demux([makeSegment(false)]);

it("H.264 and AAC of MPEG-TS whose samples are encrypted become what they were", () => {
  expect(clear.track("video").samples).toHaveLength(3);
  expect(clear.track("audio").samples).toHaveLength(9);
  expect(demux([decryptSamples(makeSegment(true), key)]).tracks).toEqual(clear.tracks);
});

it("packets that are sent twice are read once", () => {
  const segment = makeSegment(true);
  const twice = Array.from({ length: segment.length / 188 }, (_, i) => {
    const packet = segment.subarray(188 * i, 188 * (i + 1));
    return [packet, packet];
  });
  expect(demux([decryptSamples(Buffer.concat(twice.flat()), key)]).tracks).toEqual(clear.tracks);
});

it("streams that the program map names as clear stay as they are, and so do the bytes that were given", () => {
  const segment = makeSegment(true, [avcType, adtsType]);
  expect(decryptSamples(segment, key)).toEqual(segment);
  const encrypted = makeSegment(true);
  const before = Buffer.from(encrypted);
  decryptSamples(encrypted, key);
  expect(encrypted).toEqual(before);
});

it("AAC without a container is decrypted after its tags", () => {
  const tag = Buffer.from([0x49, 0x44, 0x33, 4, 0, 0, 0, 0, 0, 0]);
  const recorder = createRecorder();
  const demuxer = createPackedAudioDemuxer({ sink: recorder, timelines: new Timelines() });
  demuxer.read(decryptSamples(Buffer.concat([tag, encryptFrames(adtsFrames(3), 100)]), key), start);
  demuxer.flush();
  expect(recorder.track("audio").samples.map(({ data }) => [...data])).toEqual(
    Array.from({ length: 3 }, () => [...adtsFrames(1).subarray(7)]),
  );
});

/** Returns a syncframe (ETSI TS 102 366 §4.3, §E.1.2) with these bytes after its first two, and no real audio. */
function syncframe(size: number, head: readonly number[]): Buffer {
  const frame = Buffer.alloc(size, 0x21);
  frame.set([0x0b, 0x77, ...head]);
  return frame;
}

const ofAc3 = syncframe(128, [0, 0, 0, 0x40, 0x40]);
/** Six blocks of two channels; more channels depend on it. */
const ofEac3 = syncframe(100, [0, 49, 0x34, 0x80]);
const dependent = syncframe(68, [0x40, 33, 0x34, 0x80]);

/** Encrypts all whole blocks after the first 16 bytes. */
function encryptSyncframe(frame: Buffer): Buffer {
  const starts = Array.from({ length: Math.floor(frame.length / 16) - 1 }, (_, i) => 16 + 16 * i);
  return encryptBlocks(Buffer.from(frame), starts);
}

describe.each([
  ["AC-3", [0x81, 0xc1], [ofAc3, ofAc3, ofAc3]],
  ["E-AC-3 of 7.1 channels", [0x87, 0xc2], [ofEac3, dependent, ofEac3, dependent]],
] as const)("%s", (_, [clearType, typeOfSamples], frames) => {
  it("in MPEG-TS is decrypted in each syncframe", () => {
    const segment = (streamType: number, parts: readonly Buffer[]) => {
      const maker = createPacketMaker();
      const tables = maker.tables([{ pid: audioPid, streamType }]);
      return Buffer.concat([tables, maker.pes(audioPid, 90_000, Buffer.concat(parts))]);
    };
    const { tracks, track } = demux([segment(clearType, frames)]);
    expect(Buffer.concat(track("audio").samples.map(({ data }) => data))).toEqual(Buffer.concat(frames));
    const encrypted = segment(typeOfSamples, frames.map(encryptSyncframe));
    expect(demux([decryptSamples(encrypted, key)]).tracks).toEqual(tracks);
  });

  it("without a container is decrypted in each syncframe", () => {
    expect(decryptSamples(Buffer.concat(frames.map(encryptSyncframe)), key)).toEqual(Buffer.concat(frames));
  });
});

it("a segment that begins within a sample is refused", () => {
  const segment = makeSegment(true);
  const tables = segment.subarray(0, 2 * 188);
  expect(() => decryptSamples(Buffer.concat([tables, segment.subarray(3 * 188)]), key)).toThrow(
    "a segment whose samples are encrypted begins within one of them",
  );
});

it("segments of other containers stay as they are", () => {
  const fragment = Buffer.from("\0\0\0\x18stypmsdh");
  expect(decryptSamples(fragment, key)).toBe(fragment);
});
