import { describe, expect, it } from "vitest";
import { ascii, box } from "../../src/remux/mp4/boxes.ts";
import { readFileHeader } from "../../src/remux/file-header.ts";
import { readMedium } from "../media/rendition.ts";
import { createIntegers } from "../random.ts";

const names = ["index-first.mp4", "aac.m4a", "muxed.m4s", "locked.m4s", "h264-aac.mkv", "vp9-opus.webm", "audio.webm"];

/** Returns an element of Matroska with this id; content in hexadecimal or as bytes. */
function element(id: string, ...content: (string | Uint8Array)[]): Buffer {
  const body = Buffer.concat(content.map((part) => (typeof part === "string" ? Buffer.from(part, "hex") : part)));
  return Buffer.concat([Buffer.from(id, "hex"), Buffer.from([0x80 | body.length]), body]);
}

describe("the header of a media file", () => {
  it.each([
    ["aac.m4a", { duration: 6, vcodec: "none", acodec: "mp4a.40.2", width: null, fps: null }],
    ["muxed.m4s", { duration: null, vcodec: "avc1.64000c", acodec: "mp4a.40.2", height: 90 }],
    ["single-video.mp4", { vcodec: "avc1.64000c", acodec: "none", width: 160 }],
    ["locked.m4s", { vcodec: null, acodec: "none", width: 160 }],
    ["video.webm", { container: "webm", vcodec: "vp9", acodec: "none", fps: 25 }],
    ["audio.webm", { container: "webm", vcodec: "none", acodec: "opus", width: null }],
    ["h264-aac.mkv", { container: "matroska", vcodec: "avc1.64000c", acodec: "mp4a.40.2" }],
  ])("is read: %s", (name, header) => {
    expect(readFileHeader(readMedium(name))).toMatchObject(header);
  });

  it("is read of a file of QuickTime that begins with a preview of itself", () => {
    const file = readMedium("index-first.mp4");
    const preview = box("pnot", new Uint8Array(12));
    expect(readFileHeader(Buffer.concat([preview, file]))).toEqual(readFileHeader(file));
    expect(readFileHeader(Buffer.concat([box("note", new Uint8Array(12)), file]))).toBeUndefined();
  });

  it("is read of a file that is shown turned as it is shown", () => {
    const turned = Buffer.from(readMedium("index-first.mp4"));
    const tkhd = turned.indexOf("tkhd");
    const quarter = [0, 0x10000, 0, -0x10000, 0, 0, 0, 0, 0x40000000];
    for (const [i, value] of quarter.entries()) turned.writeInt32BE(value, tkhd + 44 + i * 4);
    expect(readFileHeader(turned)).toMatchObject({ width: 90, height: 160 });
  });

  it.each([
    ["the displayed size", [], { width: 1024, height: 576 }],
    ["the coded size, if the displayed one is a ratio", [element("54b2", "03")], { width: 720, height: 576 }],
  ])("of WebM states %s", (_, more, size) => {
    const coded = [element("b0", "02d0"), element("ba", "0240")];
    const displayed = [element("54b0", "0400"), element("54ba", "0240")];
    const video = element("e0", ...coded, ...displayed, ...more);
    const track = element("ae", element("83", "01"), element("86", ascii("V_VP9")), video);
    const file = Buffer.concat([
      element("1a45dfa3", element("4282", ascii("webm"))),
      element("18538067", element("1654ae6b", track)),
    ]);
    expect(readFileHeader(file)).toMatchObject({ container: "webm", vcodec: "vp9", ...size });
  });

  it.each(names)("of a part of a file states nothing that the file does not: %s", (name) => {
    const file = readMedium(name).subarray(0, 4_000);
    const whole: Record<string, unknown> = { ...readFileHeader(readMedium(name)) };
    const wrong: unknown[] = [];
    for (let length = 0; length <= file.length; length++) {
      const header = readFileHeader(file.subarray(0, length)) ?? {};
      for (const [field, value] of Object.entries(header)) {
        const isCutType = length < 64 && field === "container";
        const isCutCodec = value === "avc1" && field === "vcodec";
        if (value === null || isCutType || isCutCodec) continue;
        if (value !== whole[field]) wrong.push([length, field, value]);
      }
    }
    expect(wrong).toEqual([]);
  });

  it.each(names)("of damaged bytes has valid values or none: %s", (name) => {
    const random = createIntegers(1);
    const file = readMedium(name).subarray(0, 4_000);
    const invalid: unknown[] = [];
    for (let round = 0; round < 3_000; round++) {
      const damaged = Buffer.from(file);
      for (let i = random(4); i >= 0; i--) {
        const value = [0, 1, 0x7f, 0x80, 0xff, random(256)][random(6)]!;
        damaged[random(damaged.length)] = value;
      }
      const { duration, width, height, fps, vcodec, acodec } = readFileHeader(damaged) ?? {};
      const numbers = [duration ?? 1, width ?? 1, height ?? 1, fps ?? 1];
      const codecs = [vcodec ?? "", acodec ?? ""];
      invalid.push(...numbers.filter((value) => !Number.isFinite(value) || value <= 0));
      invalid.push(...codecs.filter((codec) => !/^[\w.-]{0,20}$/.test(codec)));
    }
    expect(invalid).toEqual([]);
  });

  it("of nested, tiny and endless boxes and elements is unknown", () => {
    let nested: Uint8Array = Buffer.alloc(0);
    for (let i = 0; i < 8_000; i++) nested = box("moov", nested);
    const tiny = box("moov", ...Array.from({ length: 8_000 }, () => box("trak")));
    const endless = Buffer.from("0000000c6d6f6f76000000007472616b", "hex");
    const segment = Buffer.from("1a45dfa38018538067ff1654ae6bff", "hex");
    const elements = Buffer.concat([segment, Buffer.alloc(65_000, Buffer.from("ae80", "hex"))]);
    for (const bytes of [nested, tiny, endless, elements]) {
      expect(readFileHeader(bytes)).toMatchObject({ duration: null, vcodec: null, acodec: null });
    }
  });

  it("is undefined for other files", () => {
    expect(readFileHeader(Buffer.from("<!doctype html>"))).toBeUndefined();
    expect(readFileHeader(Buffer.alloc(0))).toBeUndefined();
  });
});
