import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { embedInMp4 } from "../../src/remux/mp4/embed.ts";
import { element, text, unsigned } from "../../src/remux/matroska/write-elements.ts";
import { ids } from "../../src/remux/matroska/elements.ts";
import { ascii, box, fullBox, u16, u32 } from "../../src/remux/mp4/boxes.ts";
import { createNativeEngine } from "../../src/engines/native/native-engine.ts";
import type { DownloadJob } from "../../src/engines/engine.ts";
import type { SubtitleRole } from "../../src/model/entry.ts";
import { noAdditions } from "../../src/remux/additions.ts";
import { openEntry } from "../contracts/engine/harness.ts";
import { listOwnTracks } from "../../src/subtitles/tracks/own-tracks.ts";
import { readMedium } from "../media/rendition.ts";
import { resource } from "../media/resources.ts";
import { adtsFrames, audioPid, avcPicture, createPacketMaker, videoPid } from "../remux/ts-packet-maker.ts";
import { makeSharedFolder } from "../folder.ts";

const engine = createNativeEngine({ allowNetworks: ["127.0.0.1/32"] });
afterAll(() => engine.close());

const folder = makeSharedFolder();

const read = (bytes: Uint8Array) => {
  const path = join(folder, "file");
  writeFileSync(path, bytes);
  return listOwnTracks(path).map(({ language, codec }) => `${language}: ${codec}`);
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
    expect(ownSubtitles).toMatchObject([{ language: "en", codec: "3GPP timed text", isText: true }]);
  });
});

describe("the subtitles of a transport stream", () => {
  const dvb = Buffer.from("\x59\x10deu\x10\0\x01\0\x01fra\x20\0\x02\0\x02", "latin1");
  const teletext = Buffer.from("\x56\x0feng\x09\0nor\x11\x77ita\x29\x99", "latin1");
  const stream = (descriptors: Buffer) => {
    const maker = createPacketMaker();
    const tables = maker.tables([
      { pid: videoPid, streamType: 0x1b },
      { pid: audioPid, streamType: 0x0f },
      { pid: 258, streamType: 6, descriptors },
    ]);
    const media = Array.from({ length: 50 }, (_, i) => [
      maker.pes(videoPid, 90_000 + 3_600 * i, avcPicture(i % 10 === 0)),
      maker.pes(audioPid, 90_000 + 3_840 * i, adtsFrames(2)),
    ]);
    return resource("video/mp2t", Buffer.concat([tables, ...media.flat()]));
  };
  const playlist = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\na.ts\n#EXT-X-ENDLIST\n";
  const list = resource("application/vnd.apple.mpegurl", Buffer.from(playlist));

  it.each([
    ["a file", "a.ts"],
    ["segments", "a.m3u8"],
  ])("are pictures and pages of teletext, which are named, in %s", async (_, entry) => {
    const found = async (descriptors: Buffer) => {
      const resources = new Map([
        ["a.ts", stream(descriptors)],
        ["a.m3u8", list],
      ]);
      await using harness = await openEntry(() => engine, resources, entry);
      const { ownSubtitles } = await harness.download({ ownSubtitles: "all" });
      return ownSubtitles.map(({ language, codec, isText }) => `${language} ${codec} ${isText}`);
    };
    expect(await found(Buffer.concat([dvb, teletext]))).toEqual([
      "de DVB pictures false",
      "fr DVB pictures false",
      "no teletext false",
      "it teletext false",
    ]);
    expect(await found(Buffer.from("\x0a\x04eng\0", "latin1"))).toEqual([]);
    expect(await found(dvb.subarray(0, 5))).toEqual([]);
  });
});

describe("text within the media that is wanted", () => {
  const track = (
    language: string | null,
    role: SubtitleRole,
    ...cues: [startS: number, endS: number, text: string][]
  ) => ({
    language,
    name: "",
    role,
    automatic: false,
    cues: cues.map(([startS, endS, shown]) => ({ startS, endS, text: shown, settings: "" })),
  });
  const subtitles = [
    track("en", "subtitles", [0.25, 0.75, "<i>One</i> &amp; two"], [1, 1.75, "Three"]),
    track("de", "forced", [1.5, 1.9, "Vier"]),
    track(null, "subtitles", [0, 0.5, "Unknown"]),
  ];
  const film = async () => {
    const [source, target] = [join(folder, "plain.mp4"), join(folder, "texts.mp4")];
    writeFileSync(source, readMedium("index-first.mp4"));
    const signal = new AbortController().signal;
    expect(await embedInMp4(source, target, { ...noAdditions, subtitles }, { durationS: null, signal })).toBe(true);
    return new Map([["a.mp4", resource("video/mp4", readFileSync(target))]]);
  };
  const made = async (change: Partial<DownloadJob>) => {
    await using harness = await openEntry(() => engine, await film(), "a.mp4");
    const { others, warnings, path, sha256 } = await harness.download(change);
    const vtt = others.filter(({ ext }) => ext === "vtt");
    const texts = vtt.map((file) => `${file.language} ${file.role}: ${readFileSync(file.path, "utf8").slice(8)}`);
    const own = listOwnTracks(path).map(({ language, role }) => `${language} ${role}`);
    return { texts, warnings, own, sha256 };
  };
  const unknown = "null subtitles: 00:00:00.000 --> 00:00:00.500\nUnknown\n";
  const one = "00:00:00.250 --> 00:00:00.750\n<i>One</i> &amp; two\n";

  it("becomes files beside the one that is published, which stays as it is", async () => {
    const { texts, warnings, sha256 } = await made({ ownSubtitles: "all" });
    expect(texts).toEqual([
      `en subtitles: ${one}\n00:00:01.000 --> 00:00:01.750\nThree\n`,
      "de forced: 00:00:01.500 --> 00:00:01.900\nVier\n",
      unknown,
    ]);
    expect([warnings, sha256]).toEqual([[], (await made({})).sha256]);
  });

  it("is chosen by its language, and left if that is listed; what has no language may be in any", async () => {
    expect((await made({ ownSubtitles: ["de-AT"] })).texts.map((shown) => shown.slice(0, 4))).toEqual(["de f", "null"]);
    expect((await made({ ownSubtitles: ["fr"] })).texts).toEqual([unknown]);
    expect((await made({ ownSubtitles: [] })).texts).toEqual([]);
    const listed = { language: "en", name: "", role: "subtitles", automatic: false, listings: [] } as const;
    const { texts } = await made({ ownSubtitles: "all", subtitles: [listed] });
    expect(texts.map((shown) => shown.slice(0, 4))).toEqual(["de f", "null"]);
  });

  it("is there once after tags were added to the file", async () => {
    const { texts, own } = await made({ ownSubtitles: "all", embed: "all" });
    expect([texts.length, own]).toEqual([3, ["en subtitles", "de forced", "null subtitles"]]);
  });

  it("is cut and moved with parts of the media, and in the file that is made of them", async () => {
    const { texts, own } = await made({ ownSubtitles: ["en"], ranges: [{ startS: 0.4, endS: 1.6 }] });
    expect(texts[0]).toBe(
      "en subtitles: 00:00:00.000 --> 00:00:00.350\n<i>One</i> &amp; two\n\n00:00:00.600 --> 00:00:01.200\nThree\n",
    );
    expect(own).toEqual(["en subtitles", "null subtitles"]);
  });
});
