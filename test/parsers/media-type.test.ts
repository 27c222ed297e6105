import { expect, test } from "vitest";
import { mediaTypeOf, sniffMedium } from "../../src/parsers/media-type.ts";

const at = (path: string) => new URL(path, "https://example.com/");

test.each([
  ["video/mp4", "video", "mp4"],
  ['VIDEO/MP4; codecs="avc1.42e01e, mp4a.40.2"', "video", "mp4"],
  ["video/quicktime", "video", "mov"],
  ["video/webm", "video", "webm"],
  ["video/x-matroska", "video", "mkv"],
  ["video/mp2t", "video", "ts"],
  ["audio/mpeg", "audio", "mp3"],
  ["audio/mp4", "audio", "m4a"],
  ["audio/ogg", "audio", "ogg"],
  ["audio/webm", "audio", "webm"],
  ["application/vnd.apple.mpegurl", "hls", "m3u8"],
  ["application/x-mpegURL", "hls", "m3u8"],
  ["audio/mpegurl", "hls", "m3u8"],
  ["application/dash+xml", "dash", "mpd"],
  ["application/x-shockwave-flash", "flash", "swf"],
  ["image/jpeg", "image", "jpg"],
  ["text/html; charset=utf-8", "page", "html"],
  ["application/xhtml+xml", "page", "xhtml"],
  ["video/x-new-thing", "video", null],
  ["application/json", "unknown", null],
])("%s is %s with the extension %s, whatever the path", (contentType, kind, ext) => {
  expect(mediaTypeOf(contentType, at("/watch"))).toMatchObject({ kind, ext });
});

test("the media type has no parameters and is in lower case", () => {
  expect(mediaTypeOf("Video/MP4;codecs=avc1", at("/")).mime_type).toBe("video/mp4");
});

test.each([
  null,
  "",
  "nonsense",
  "application/octet-stream",
  "text/plain",
  "binary/octet-stream",
  "text/vnd.trolltech.linguist",
])("with the type %j the path's extension decides", (contentType) => {
  expect(mediaTypeOf(contentType, at("/v/Clip.MP4?x=.mpd#a.swf"))).toEqual({
    kind: "video",
    ext: "mp4",
    mime_type: "video/mp4",
  });
  expect(mediaTypeOf(contentType, at("/clip.webm"))).toMatchObject({ kind: "video" });
  expect(mediaTypeOf(contentType, at("/book.m4b"))).toMatchObject({ kind: "audio", mime_type: "audio/mp4" });
  expect(mediaTypeOf(contentType, at("/live.m3u8"))).toMatchObject({ kind: "hls" });
  expect(mediaTypeOf(contentType, at("/main.mpd"))).toMatchObject({ kind: "dash" });
});

test("the kind is unknown if neither type nor path tell it", () => {
  expect(mediaTypeOf(null, at("/watch?v=1.mp4"))).toEqual({
    kind: "unknown",
    ext: null,
    mime_type: null,
  });
  expect(mediaTypeOf(null, at("/a.mp4/constructor"))).toMatchObject({ kind: "unknown" });
  expect(mediaTypeOf(null, at("/video/mp4"))).toMatchObject({ kind: "unknown" });
});

test("a stated type takes precedence over the path", () => {
  expect(mediaTypeOf("text/html", at("/clip.mp4"))).toMatchObject({ kind: "page", ext: "html" });
});

const zeros = (count: number) => "\0".repeat(count);

test.each([
  ["mp4", "\0\0\0\x20ftypisom"],
  ["mp4", "\0\0\0\x08wide"],
  ["mp4", "\0\x01\0\0mdat"],
  ["mp4", "\0\0\0\x14pnot"],
  ["mov", "\0\0\0\x14ftypqt  "],
  ["m4a", "\0\0\0\x20ftypM4A "],
  ["m4a", "\0\0\0\x20ftypM4B "],
  ["mkv", "\x1A\x45\xDF\xA3\xA3\x42\x86\x81\x01\x42\x82\x88matroska"],
  ["webm", "\x1A\x45\xDF\xA3\x9F\x42\x86\x81\x01\x42\x82\x84webm"],
  ["ogv", `OggS${zeros(24)}\x80theora`],
  ["ogv", `OggS${zeros(24)}OVP80\x01\x01`],
  ["ogg", `OggS${zeros(24)}OpusHead`],
  ["avi", "RIFF....AVI LIST"],
  ["wav", "RIFF....WAVEfmt "],
  ["wav", "RF64....WAVEds64"],
  ["aiff", "FORM....AIFCFVER"],
  ["au", ".snd\0\0\0\x18"],
  ["caf", "caff\0\x01\0\0desc"],
  ["w64", "riff\x2E\x91\xCF\x11\xA5\xD6\x28\xDB\x04\xC1\0\0\0\x10\0\0\0\0\0\0wave"],
  ["mpg", "\0\0\x01\xBA"],
  ["mpg", "\0\0\x01\xB3"],
  ["ts", `G${zeros(187)}G${zeros(187)}G`],
  ["ts", `\xFF\xFB..G${zeros(191)}G${zeros(191)}G`],
  ["mp3", "ID3\x04"],
  ["mp3", "\xFF\xFB"],
  ["aac", "\xFF\xF1"],
] as const)("a file is %s by its first bytes: %j", (ext, start) => {
  expect(sniffMedium(Buffer.from(start, "latin1"))?.ext).toBe(ext);
});

test.each([
  "",
  "<!doctype html>",
  "\x89PNG\r\n\x1A\n",
  "RIFF....WEBPVP8 ",
  ".snd is a text",
  "\0\0\0\x20free",
  `G${zeros(187)}G`,
  "%PDF-1.7",
])("a file is no medium by its first bytes: %j", (start) => {
  expect(sniffMedium(Buffer.from(start, "latin1"))).toBeUndefined();
});
