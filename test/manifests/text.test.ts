import { expect, test } from "vitest";
import { openMpd } from "../../src/manifests/dash/dash.ts";
import { readHls } from "../../src/manifests/hls/hls.ts";
import { readHlsSegments } from "../../src/manifests/hls/segments.ts";
import { decodeManifest, sniffManifest } from "../../src/manifests/text.ts";

const url = new URL("https://media.example.com/films/42/main");

const bigEndian = (text: string) => Buffer.from(text, "utf16le").swap16();

const mpd = (encoding: string) =>
  `<?xml version="1.0" encoding="${encoding}"?>\n<MPD><Period><AdaptationSet mimeType="video/mp4">` +
  '<Representation id="é"><BaseURL>é.mp4</BaseURL></Representation></AdaptationSet></Period></MPD>';

test("an MPD is read in the encoding of its byte order mark, its zero bytes, or its declaration", () => {
  const texts: Record<string, Buffer> = {
    "UTF-8": Buffer.from(mpd("UTF-8")),
    "UTF-8 with a mark": Buffer.from(`\uFEFF${mpd("UTF-8")}`),
    "UTF-16, little end first": Buffer.from(`\uFEFF${mpd("UTF-16")}`, "utf16le"),
    "UTF-16, big end first": bigEndian(`\uFEFF${mpd("UTF-16")}`),
    "UTF-16 without a mark": Buffer.from(mpd("UTF-16"), "utf16le"),
    "UTF-16 without a mark, big end first": bigEndian(mpd("UTF-16")),
    "ISO-8859-1": Buffer.from(mpd("ISO-8859-1"), "latin1"),
    "a declaration that is wrong": Buffer.from(mpd("UTF-16")),
    "a declaration of no encoding": Buffer.from(mpd("x-unknown")),
  };
  for (const [name, bytes] of Object.entries(texts)) {
    const { formats } = openMpd(decodeManifest(bytes), url).listing;
    expect(formats[0]?.url, name).toBe("https://media.example.com/films/42/%C3%A9.mp4");
    expect(sniffManifest(bytes), name).toBe("dash");
  }
});

test("the lines of a playlist end with LF, CRLF, or CR alone", () => {
  const media = [
    "#EXTM3U",
    "#EXT-X-TARGETDURATION:4",
    "#EXTINF:4,",
    "a.ts",
    "#EXTINF:3,a",
    "b.ts",
    "#EXT-X-ENDLIST",
    "",
  ];
  const multivariant = ["#EXTM3U", "#EXT-X-STREAM-INF:BANDWIDTH=400000", "v.m3u8", ""];
  for (const end of ["\n", "\r\n", "\r"]) {
    const { segments, hasEnded } = readHlsSegments(media.join(end), url);
    expect([segments.map((segment) => segment.url.slice(-4)), hasEnded]).toEqual([["a.ts", "b.ts"], true]);
    expect(readHls(media.join(end), url)).toMatchObject({ duration: 7 });
    expect(readHls(multivariant.join(end), url).formats.map(({ format_id }) => format_id)).toEqual(["hls-400"]);
  }
});

test("a CR in a line that ends with LF does not end it", () => {
  const text = "#EXTM3U\n#EXTINF:4,one\rtwo.ts\na.ts\n#EXT-X-ENDLIST";
  expect(readHlsSegments(text, url).segments).toHaveLength(1);
});

test("a manifest is told by its first bytes", () => {
  const sniff = (text: string) => sniffManifest(Buffer.from(text));
  expect(sniff(" \r\n#EXTM3U\r\n")).toBe("m3u8");
  expect(sniff("<!-- <html> --><?pi x?>\n<!DOCTYPE MPD>\n<MPD\n")).toBe("dash");
  expect(sniff('<?xml version="1.0"?><mpd:MPD xmlns:mpd="urn:mpeg:dash:schema:mpd:2011">')).toBe("dash");
  expect(sniff("<html><MPD>")).toBeNull();
  expect(sniff("")).toBeNull();
  expect(sniff("<!--".repeat(100_000))).toBeNull();
  expect(sniff(`${"<!---->".repeat(100)}<MPD>`)).toBe("dash");
  expect(sniff(`${"<!---->".repeat(100)}x`)).toBeNull();
  expect(sniff("<!a".repeat(100))).toBeNull();
});
