import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { ascii, box, firstBox, fullBox, u16, u32, u64 } from "../../src/remux/mp4/boxes.ts";
import { ids } from "../../src/remux/matroska/elements.ts";
import { element, text, unsigned } from "../../src/remux/matroska/write-elements.ts";
import { openFile } from "../../src/remux/open-file.ts";
import { listOwnTracks, openOwnTracks } from "../../src/subtitles/tracks/own-tracks.ts";
import { readTimedText, readTimedTextFormat } from "../../src/subtitles/tracks/timed-text-sample.ts";
import { makeFolder } from "../folder.ts";
import { textInit, textSegment, vttSample } from "./mp4.ts";

interface Block {
  ms: number;
  lastsMs?: number;
  payload: Uint8Array | string;
  addition?: string;
}

/** A Matroska file with one track of text; a block without a duration is a SimpleBlock. */
function mkv(codec: string, blocks: readonly Block[], ...more: Uint8Array[]): Uint8Array {
  const entry = element(
    ids.trackEntry,
    element(ids.trackNumber, unsigned(1)),
    element(ids.trackType, unsigned(17)),
    element(ids.codecId, text(codec)),
    ...more,
  );
  const written = blocks.map(({ ms, lastsMs, payload, addition }) => {
    const content = Buffer.concat([Uint8Array.of(0x81), u16(ms), Uint8Array.of(0), Buffer.from(payload)]);
    if (lastsMs === undefined) return element(ids.simpleBlock, content);
    const added = addition === undefined ? [] : [element(ids.blockAdditional, text(addition))];
    const additions = added.map((each) => element(ids.blockAdditions, element(ids.blockMore, each)));
    return element(
      ids.blockGroup,
      element(ids.block, content),
      element(ids.blockDuration, unsigned(lastsMs)),
      ...additions,
    );
  });
  const cluster = element(ids.cluster, element(ids.timestamp, unsigned(0)), ...written);
  const head = element(0x1a45dfa3, element(ids.docType, text("matroska")));
  return Buffer.concat([head, element(ids.segment, element(ids.tracks, entry), cluster)]);
}

/** `further`: files that continue the first one. */
async function cuesOf(bytes: Uint8Array, ...further: Uint8Array[]): Promise<string[]> {
  const folder = makeFolder();
  const path = (i: number) => join(folder, `file-${i}`);
  for (const [i, each] of [bytes, ...further].entries()) writeFileSync(path(i), each);
  using opened = new DisposableStack();
  const open = (i: number) => opened.use(openFile(path(i)));
  const files = [open(0), ...further.map((_, i) => open(i + 1))] as const;
  const readers = await openOwnTracks(files, listOwnTracks(path(0)), new AbortController().signal);
  return [...readers.values()].flatMap((read) =>
    [...read(() => {})].map((cue) => `${cue.startS}-${cue.endS} ${cue.settings}|${cue.text}`),
  );
}

describe("text of Matroska", () => {
  it("is SubRip, with its faces and alignments; a block without a duration lasts until the next one", async () => {
    const blocks = [
      { ms: 1000, payload: "<i>One</i> & two\r\n\r\n3" },
      { ms: 2000, lastsMs: 500, payload: "{\\an8}Top" },
    ];
    const found = ["1-2 |<i>One</i> &amp; two\n3", "2-2.5 line:1|Top"];
    expect(await cuesOf(mkv("S_TEXT/UTF8", blocks))).toEqual(found);
  });

  it("is SubStation Alpha, with the styles of its header, in the order of the Matroska fields", async () => {
    const header = [
      "[Script Info]",
      "[V4+ Styles]",
      "Format: Name, PrimaryColour, Alignment",
      "Style: Default,&H0000FFFF,8",
      "[Events]",
      "Format: Start, End, Text",
    ].join("\r\n");
    const blocks = [{ ms: 1001, lastsMs: 1232, payload: "0,0,Default,,0,0,0,,Bonjour, {\\i1}toi{\\i0}\\Nlà" }];
    expect(await cuesOf(mkv("S_TEXT/ASS", blocks, element(ids.codecPrivate, text(header))))).toEqual([
      "1.001-2.233 line:1|<c.colorffff00>Bonjour, <i>toi</i>\nlà</c>",
    ]);
  });

  it("is WebVTT, whose settings are beside the text, and whose header has styles and regions", async () => {
    const header =
      "WEBVTT\n\nSTYLE\n::cue(.y) { color: yellow }\n\nREGION\nid:a\nwidth:50%\nviewportanchor:0%,0%\nregionanchor:0%,0%";
    const blocks = [
      { ms: 0, lastsMs: 500, payload: "<c.y>One</c>", addition: "line:2 align:left\nid\nNOTE" },
      { ms: 600, lastsMs: 100, payload: "Two", addition: "region:a" },
      { ms: 700, lastsMs: 100, payload: "Three" },
    ];
    expect(await cuesOf(mkv("S_TEXT/WEBVTT", blocks, element(ids.codecPrivate, text(header))))).toEqual([
      "0-0.5 line:2 align:left|<c.y.colorffff00>One</c>",
      expect.stringMatching(/^0\.6-0\.7 line:\d position:25% size:50%\|Two$/),
      "0.7-0.8 |Three",
    ]);
  });

  it("is WebVTT of WebM, after an identifier and settings", async () => {
    const blocks = [{ ms: 0, lastsMs: 500, payload: "id\nline:2\nOne\ntwo" }];
    expect(await cuesOf(mkv("D_WEBVTT/SUBTITLES", blocks))).toEqual(["0-0.5 line:2|One\ntwo"]);
  });

  it("has times within its cues, which count from the block in Matroska, and from the start in WebM", async () => {
    const payload = "One<00:00.500><c> two</c>";
    const matroska = [{ ms: 1_000, lastsMs: 900, payload }];
    expect(await cuesOf(mkv("S_TEXT/WEBVTT", matroska))).toEqual(["1-1.9 |One<00:00:01.500><c> two</c>"]);
    const webm = [{ ms: 200, lastsMs: 900, payload: `id\n\n${payload}` }];
    expect(await cuesOf(mkv("D_WEBVTT/SUBTITLES", webm))).toEqual([`0.2-1.1 |${payload}`]);
  });

  const encoded = (...parts: Uint8Array[]) => element(ids.encodings, element(ids.encoding, ...parts));
  const compressed = (algorithm: number, settings = "") =>
    encoded(
      element(
        ids.compression,
        element(ids.compressionAlgorithm, unsigned(algorithm)),
        element(ids.compressionSettings, text(settings)),
      ),
    );

  it.each([
    ["with zlib", deflateSync("One"), compressed(0)],
    ["with what is the default", deflateSync("One"), encoded(element(ids.compression))],
    ["by leaving out the start that all blocks have", "ne", compressed(3, "O")],
  ])("is read if it is compressed %s", async (_, payload, encoding) => {
    expect(await cuesOf(mkv("S_TEXT/UTF8", [{ ms: 0, lastsMs: 500, payload }], encoding))).toEqual(["0-0.5 |One"]);
  });

  it.each([
    ["encrypted", "One", encoded(element(ids.encryption))],
    ["encoded several times", "One", element(ids.encodings, element(ids.encoding), element(ids.encoding))],
    ["compressed with another algorithm", "One", compressed(1)],
    ["damaged", deflateSync("One, two, three").subarray(0, 9), compressed(0)],
    ["longer than subtitles may be", deflateSync(Buffer.alloc(33 << 20)), compressed(0)],
  ])("is refused if it is %s", async (_, payload, encoding) => {
    const file = mkv("S_TEXT/UTF8", [{ ms: 0, lastsMs: 500, payload }], encoding);
    await expect(cuesOf(file)).rejects.toMatchObject({ code: "upstream_invalid" });
  });
});

describe("timed text of MP4", () => {
  const style = (faces: number, rgb: string, from = 0, to = 0) =>
    Buffer.concat([u16(from, to, 1), Uint8Array.of(faces, 16), Buffer.from(`${rgb}ff`, "hex")]);
  const entry = (column: number, row: number, edges: number[], look = style(0, "ffffff")) =>
    box("tx3g", new Uint8Array(6), u16(1), u32(0), Uint8Array.of(column, row), new Uint8Array(4), u16(...edges), look);
  const picture = { left: 0, top: 0, width: 1000, height: 1000 };
  const sample = (written: string | Uint8Array, ...parts: Uint8Array[]) => {
    const bytes = Buffer.from(written);
    return Buffer.concat([u16(bytes.length), bytes, ...parts]);
  };
  const read = (bytes: Uint8Array, described = entry(1, 255, [0, 0, 0, 0]), frame = picture) =>
    readTimedText(bytes, readTimedTextFormat(described, firstBox(described), frame));

  it("has faces and colours, which are those of its track where it states none", () => {
    const styles = box("styl", u16(2), style(2, "ff0000", 1, 3), style(1, "ffffff", 4, 9));
    expect(read(sample("a🎬c<d\r\ne", styles))?.text).toBe("a<i><c.colorff0000>🎬c</c></i>&lt;<b>d\ne</b>");
    const yellow = entry(1, 255, [0, 0, 0, 0], style(4, "ffff00"));
    expect(read(sample("ab", box("styl", u16(1), style(0, "ffffff", 0, 1))), yellow)?.text).toBe(
      "a<u><c.colorffff00>b</c></u>",
    );
  });

  it.each([
    ["at the bottom in the centre", entry(1, 255, [0, 0, 0, 0]), ""],
    ["at the top", entry(1, 0, [0, 0, 0, 0]), "line:1"],
    ["at the top on the right", entry(255, 0, [0, 0, 0, 0]), "line:1 position:95% size:90% align:right"],
    ["in a box", entry(0, 0, [200, 100, 400, 500]), "line:3 position:10% size:40% align:left"],
    ["in a box at the bottom", entry(1, 255, [850, 0, 1000, 1000]), ""],
  ])("is placed as its track says: %s", (_, described, settings) => {
    expect(read(sample("a"), described)?.settings).toBe(settings);
  });

  it("is placed as its sample says, in the frame of its track", () => {
    const top = sample("a", box("tbox", u16(0, 0, 100, 1000)));
    expect(read(top, entry(1, 255, [850, 0, 1000, 1000]))?.settings).toBe("line:1");
    expect(read(top, entry(1, 255, [0, 0, 0, 0]), { ...picture, top: 500 })?.settings).toBe("line:9");
  });

  it("may be UTF-16, and cut off, or have damaged boxes after it", () => {
    expect(read(sample(Buffer.from([0xfe, 0xff, 0, 0x41])))?.text).toBe("A");
    expect(read(sample("abc").subarray(0, 4))?.text).toBe("ab");
    expect(read(sample("abc", u32(4), u32(0)))?.text).toBe("abc");
    expect(read(sample("abc", box("styl", u16(9), style(1, "ffffff", 0, 1).subarray(0, 8))))?.text).toBe("abc");
    expect([read(sample("")), read(Uint8Array.of(0))]).toEqual([null, null]);
  });
});

describe("text of fragmented MP4", () => {
  const shown = (ms: number, ...texts: string[]) => ({ ms, data: vttSample(...texts) });
  const second = textSegment(1_000, [shown(500, "Two"), shown(500), shown(1_000, "Three")]);

  it("is WebVTT in the samples of all fragments; one that goes on in the next is a single cue", async () => {
    const first = textSegment(0, [shown(250), shown(750, "One", "Two")]);
    const found = ["0.25-1 |One", "0.25-1.5 |Two", "2-3 |Three"];
    expect(await cuesOf(Buffer.concat([textInit("wvtt"), first, second]))).toEqual(found);
    expect(await cuesOf(Buffer.concat([textInit("wvtt"), first]), second)).toEqual(found);
  });

  it("is presented as the edit list of its track says", async () => {
    expect(await cuesOf(Buffer.concat([textInit("wvtt", 500), second]))).toEqual(["0.5-1 |Two", "1.5-2.5 |Three"]);
  });

  it("has times within its cues, which count as the time says that a cue has for the start of its sample", async () => {
    const payload = "One<00:00:10.500> two";
    const parts = [box("ctim", text("00:00:10.000")), box("payl", text(payload))];
    const timed = { ms: 900, data: box("vttc", ...parts) };
    const untimed = { ms: 900, data: vttSample(payload) };
    const found = (each: string) => [`1-1.9 |One<00:00:${each}> two`];
    expect(await cuesOf(Buffer.concat([textInit("wvtt"), textSegment(1_000, [timed])]))).toEqual(found("01.500"));
    expect(await cuesOf(Buffer.concat([textInit("wvtt"), textSegment(1_000, [untimed])]))).toEqual(found("10.500"));
    const edited = [textInit("wvtt", 500), textSegment(1_500, [untimed])];
    expect(await cuesOf(Buffer.concat(edited))).toEqual(found("10.000"));
  });

  it("is TTML, whose times are those of the track", async () => {
    const document = `<tt xmlns="http://www.w3.org/ns/ttml"><body><div><p begin="1.5s" end="9s">A</p></div></body></tt>`;
    const segment = textSegment(1_000, [{ ms: 1_000, data: Buffer.from(document) }]);
    expect(await cuesOf(Buffer.concat([textInit("stpp"), segment]))).toEqual(["1.5-2 |A"]);
  });

  it("is that of the fragments before one that is cut off, and none of fragments of other tracks", async () => {
    const whole = Buffer.concat([textInit("wvtt"), textSegment(0, [shown(1_000, "One")])]);
    expect(await cuesOf(Buffer.concat([whole, second.subarray(0, -1)]))).toEqual(["0-1 |One"]);
    const other = Buffer.from(second);
    other.writeUInt32BE(2, other.indexOf("tfhd") + 8);
    expect(await cuesOf(Buffer.concat([whole, other]))).toEqual(["0-1 |One"]);
  });
});

describe("the tracks of subtitles that a file lists", () => {
  function listed(bytes: Uint8Array) {
    const path = join(makeFolder(), "file");
    writeFileSync(path, bytes);
    return listOwnTracks(path).map(({ number, language, role, codec }) => [number, language, role, codec]);
  }

  it.each([
    ["no flag", "S_TEXT/UTF8", [], "subtitles"],
    ["flags that are not set", "S_TEXT/UTF8", [element(ids.flagForced, unsigned(0))], "subtitles"],
    ["FlagForced", "S_TEXT/UTF8", [element(ids.flagForced, unsigned(1))], "forced"],
    ["FlagHearingImpaired", "S_TEXT/UTF8", [element(ids.flagHearingImpaired, unsigned(1))], "captions"],
    ["captions of WebM", "D_WEBVTT/CAPTIONS", [], "captions"],
    ["no subtitles of WebM", "D_WEBVTT/METADATA", [], undefined],
  ])("have their role in Matroska: %s", (_, codec, flags, role) => {
    const found = listed(mkv(codec, [], ...flags));
    expect(found.map(([, , each]) => each)).toEqual(role === undefined ? [] : [role]);
  });

  const tx3g = (flags: number) => box("tx3g", new Uint8Array(6), u16(1), u32(flags), new Uint8Array(26));
  const kind = (value: string) => box("udta", fullBox("kind", 0, 0, ascii(`urn:mpeg:dash:role:2011\0${value}\0`)));

  /** An MP4 with a German track 7; `version`: of its headers. */
  function mp4(handler: string, entry: Uint8Array, { version = 0, data = [] as Uint8Array[] } = {}): Uint8Array {
    const times = version === 1 ? u64(0, 0) : u32(0, 0);
    const duration = version === 1 ? u64(0) : u32(0);
    const media = box(
      "mdia",
      fullBox("mdhd", version, 0, times, u32(1000), duration, u16(0x10b5, 0)),
      fullBox("hdlr", 0, 0, u32(0), ascii(handler), u32(0, 0, 0), new Uint8Array(1)),
      box("minf", box("stbl", fullBox("stsd", 0, 0, u32(1), entry))),
    );
    const track = fullBox("tkhd", version, 0, times, u32(7, 0), duration, new Uint8Array(60));
    return Buffer.concat([box("ftyp", ascii("isom"), u32(0)), box("moov", box("trak", track, media, ...data))]);
  }

  it.each([
    ["nothing of it", mp4("sbtl", tx3g(0)), "subtitles", "3GPP timed text"],
    ["headers of version 1", mp4("sbtl", tx3g(0), { version: 1 }), "subtitles", "3GPP timed text"],
    ["the flags that all samples are forced", mp4("sbtl", tx3g(0xc000_0000)), "forced", "3GPP timed text"],
    ["the flag that some samples are", mp4("sbtl", tx3g(0x4000_0000)), "subtitles", "3GPP timed text"],
    ["a kind that is forced", mp4("text", box("wvtt"), { data: [kind("forced-subtitle")] }), "forced", "WebVTT"],
    ["a kind that is captions", mp4("text", box("wvtt"), { data: [kind("caption")] }), "captions", "WebVTT"],
    ["a handler of closed captions", mp4("clcp", box("c608")), "captions", "CEA-608 captions"],
  ])("have their number, language and role in MP4, which states %s", (_, file, role, codec) => {
    expect(listed(file)).toEqual([[7, "de", role, codec]]);
  });

  it("are none of MP4 that are no text, or whose track lacks a box", () => {
    expect(listed(mp4("vide", box("avc1")))).toEqual([]);
    const damaged = Buffer.from(mp4("sbtl", tx3g(0)));
    damaged.write("free", damaged.indexOf("mdhd"), "latin1");
    expect(listed(damaged)).toEqual([]);
  });
});
