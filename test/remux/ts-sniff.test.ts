import { describe, expect, it } from "vitest";
import { sniffContainer } from "../../src/remux/sniff.ts";
import { adtsFrames, createPacketMaker } from "./ts-packet-maker.ts";

const { tables } = createPacketMaker();
const stream = Buffer.concat([tables([{ pid: 256, streamType: 0x1b }]), tables([{ pid: 256, streamType: 0x1b }])]);
const pictures = ["ffd8ffe0", "89504e47", "47494638", "424d0000"].map((head) =>
  Buffer.concat([Buffer.from(head, "hex"), Buffer.alloc(50_000, "picture")]),
);
const dots = Buffer.alloc(3000, ".");
const near = Buffer.concat(
  ["G", "G"].map((letter) => Buffer.from(letter.padEnd(188, "."))),
  300,
);
/** Of which every other frame begins a packet's length after the last one. */
const tone = adtsFrames(50, 94).map((byte, at) => (at % 94 === 10 ? "G".charCodeAt(0) : byte));
const emptyTag = Buffer.from([0x49, 0x44, 0x33, 4, 0, 0, 0, 0, 0, 0]);

describe("the container of a segment", () => {
  for (const [what, segment, container] of [
    ["a transport stream", stream, "mpeg-ts"],
    ["a transport stream after garbage", Buffer.concat([Buffer.alloc(300), stream]), "mpeg-ts"],
    ["a transport stream after a tag", Buffer.concat([emptyTag, stream]), "mpeg-ts"],
    ...pictures.map(
      (picture) => ["a transport stream after a picture", Buffer.concat([picture, stream]), "mpeg-ts"] as const,
    ),
    ["a picture", pictures[0]!, null],
    ["a fragment", Buffer.from("\0\0\0\x18stypmsdh"), "mp4"],
    ["an init section", Buffer.from("\0\0\0\x18ftypiso5"), "mp4"],
    ["WebM", Buffer.from("1a45dfa39f428681", "hex"), "webm"],
    ["a cluster of WebM", Buffer.from("1f43b67501ffffff", "hex"), "webm"],
    ["AAC", adtsFrames(2), "packed-audio"],
    ["AAC with letters at the distance of packets", tone, "packed-audio"],
    ["a transport stream after what begins like AAC", Buffer.concat([adtsFrames(1), dots, stream]), "mpeg-ts"],
    ["a single frame after a tag", Buffer.concat([emptyTag, adtsFrames(1)]), "packed-audio"],
    ["AAC that begins within a frame", Buffer.concat([dots.subarray(0, 400), adtsFrames(3)]), "packed-audio"],
    ["only two frames in a row after other bytes", Buffer.concat([dots.subarray(0, 400), adtsFrames(2), dots]), null],
    [
      "a transport stream after an icon",
      Buffer.concat([Buffer.from("0000010001001010", "hex"), dots, stream]),
      "mpeg-ts",
    ],
    ["a program stream with audio", Buffer.concat([Buffer.from("000001ba44", "hex"), adtsFrames(3)]), null],
    ["subtitles", Buffer.from("\uFEFFWEBVTT\n\n"), "webvtt"],
    ["a page", Buffer.from("<!doctype html><p>Good Game in HTML</p>".repeat(50)), null],
    ["a page with letters at the distance of packets near its end", Buffer.concat([dots, near]), null],
    [
      "a page with such letters near the end of what is searched",
      Buffer.concat([Buffer.alloc(4800, "."), near, dots]),
      null,
    ],
    ["a transport stream after as much garbage as is searched", Buffer.concat([Buffer.alloc(4096), stream]), "mpeg-ts"],
    ["Ogg with letters at the distance of packets", Buffer.concat([Buffer.from("OggS\0"), stream]), null],
    ["FLAC with letters at the distance of packets", Buffer.concat([Buffer.from("fLaC"), stream]), null],
    ["nothing", Buffer.alloc(0), null],
    ["zeros", Buffer.alloc(5000), null],
  ] as const) {
    it(`is recognised: ${what}`, () => {
      expect(sniffContainer(segment)).toBe(container);
    });
  }
});
