import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { readOwnSubtitles } from "../../src/engines/native/inspect/own-subtitles.ts";
import { element, text, unsigned } from "../../src/remux/matroska/writer.ts";
import { ids } from "../../src/remux/matroska/elements.ts";
import { ascii, box, fullBox, u16, u32 } from "../../src/remux/mp4/boxes.ts";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import { openEntry } from "../contracts/engine/harness.ts";
import { readMedium } from "../media/rendition.ts";
import { resource } from "../media/resources.ts";

const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
afterAll(() => engine.close());

const folder = mkdtempSync(join(tmpdir(), "own-subtitles-"));
afterAll(() => rmSync(folder, { recursive: true }));

const read = (bytes: Uint8Array) => {
  const path = join(folder, "file");
  writeFileSync(path, bytes);
  return readOwnSubtitles(path).map(({ language, codec }) => `${language}: ${codec}`);
};

const packed = (tag: string) => ascii(tag).reduce((code, letter) => code * 32 + letter - 0x60, 0);

function trak(id: number, handler: string, entry: string, language: string, ...more: Uint8Array[]): Uint8Array {
  const table = box("stbl", fullBox("stsd", 0, 0, u32(1), box(entry, new Uint8Array(8))));
  const media = box(
    "mdia",
    fullBox("mdhd", 0, 0, u32(0, 0, 1000, 0), u16(packed(language), 0)),
    fullBox("hdlr", 0, 0, u32(0), ascii(handler), u32(0, 0, 0), new Uint8Array(1)),
    box("minf", table),
  );
  return box("trak", fullBox("tkhd", 0, 0, u32(0, 0, id)), media, ...more);
}

const mkv = (...tracks: [type: number, codec: string, language: string][]) =>
  Buffer.concat([
    element(0x1a45dfa3, element(0x4282, text("matroska"))),
    element(
      ids.segment,
      element(
        ids.tracks,
        ...tracks.map(([type, codec, language], index) =>
          element(
            ids.trackEntry,
            element(ids.trackNumber, unsigned(index + 1)),
            element(ids.trackType, unsigned(type)),
            element(ids.codecId, text(codec)),
            element(ids.language, text(language)),
          ),
        ),
      ),
    ),
  ]);

describe("the subtitles within a media file", () => {
  it("are those of an MP4, of text and of pictures, but not its chapters", () => {
    const chapters = box("tref", box("chap", u32(4)));
    const moov = box(
      "moov",
      trak(1, "vide", "avc1", "und", chapters),
      trak(2, "sbtl", "tx3g", "eng"),
      trak(3, "subp", "mp4s", "und"),
      trak(4, "text", "text", "eng"),
      trak(5, "text", "wvtt", "deu"),
    );
    const found = ["en: 3GPP timed text", "null: VobSub pictures", "de: WebVTT"];
    expect(read(Buffer.concat([box("ftyp", ascii("isom"), u32(0)), moov]))).toEqual(found);
  });

  it("are those of Matroska and WebM, of old ones too, but not their chapters", () => {
    const file = mkv(
      [1, "V_VP9", "eng"],
      [17, "S_TEXT/UTF8", "eng"],
      [17, "S_HDMV/PGS", "ger"],
      [17, "D_WEBVTT/SUBTITLES", "fre"],
      [17, "D_WEBVTT/CHAPTERS", "eng"],
      [17, "S_NEW<1>", "eng"],
    );
    expect(read(file)).toEqual(["en: SubRip", "de: PGS pictures", "fr: WebVTT", "en: S_NEW?1?"]);
  });

  it.each(["index-first.mp4", "h264-aac.mkv", "vp9-opus.webm", "muxed.m4s"])("are none in %s", (name) => {
    expect(read(readMedium(name))).toEqual([]);
  });

  it("are none in a file that is damaged, or of another kind", () => {
    const moov = box("moov", trak(2, "sbtl", "tx3g", "eng"));
    expect(read(moov.subarray(0, moov.length - 20))).toEqual([]);
    expect(read(mkv([17, "S_TEXT/UTF8", "eng"]).subarray(0, 20))).toEqual([]);
    expect(read(Buffer.from("WEBVTT"))).toEqual([]);
    expect(read(Buffer.alloc(0))).toEqual([]);
  });

  it.each([
    ["as published", []],
    ["of which a part is fetched", [{ startS: 0, endS: 1 }]],
  ])("are reported of a file %s", async (_, ranges) => {
    const file = Buffer.from(readMedium("index-last.mp4"));
    const added = trak(9, "sbtl", "tx3g", "eng");
    const moov = file.lastIndexOf("moov") - 4;
    file.writeUInt32BE(file.length - moov + added.length, moov);
    const film = new Map([["a.mp4", resource("video/mp4", Buffer.concat([file, added]))]]);
    await using harness = await openEntry(() => engine, film, "a.mp4");
    const { ownSubtitles } = await harness.download({ ranges });
    expect(ownSubtitles).toEqual([{ language: "en", codec: "3GPP timed text" }]);
  });
});
