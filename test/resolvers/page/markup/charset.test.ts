import { expect, test } from "vitest";
import { PageText } from "../../../../src/resolvers/page/markup/charset.ts";

async function* chunks(bytes: Uint8Array, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function decode(bytes: Uint8Array, contentType: string | null = null, size = 1_000) {
  const page = new PageText(chunks(bytes, size), contentType);
  const read = await Array.fromAsync(page.chunks());
  return { text: page.decode(read.join("")), chunks: read };
}

const utf8 = (text: string) => new TextEncoder().encode(text);
const latin = (text: string) => Buffer.from(text, "latin1");

test("UTF-8 is the default, and a character may be cut anywhere", async () => {
  const text = "<title>Grüße aus Köln 日本 🎬</title>".repeat(20);
  for (const size of [1, 2, 3, 7, 10_000]) {
    expect((await decode(utf8(text), "text/html", size)).text).toBe(text);
  }
});

test("a byte order mark takes precedence over the content type and is not text", async () => {
  expect((await decode(utf8("\uFEFFé"), "text/html; charset=windows-1252")).text).toBe("é");
  const utf16 = Buffer.from("\uFEFF<p>é", "utf16le");
  expect((await decode(utf16, "text/html; charset=utf-8", 1)).text).toBe("<p>é");
});

test("the content type takes precedence over a meta", async () => {
  const page = latin('<meta charset="utf-8"><title>caf\xE9</title>');
  const { text } = await decode(page, 'text/html; x=1; Charset="ISO-8859-1"');
  expect(text).toContain("café");
});

test.each([
  '<meta charset="windows-1251">',
  "<meta http-equiv=Content-Type content='text/html; charset=windows-1251'>",
  '<?xml version="1.0" encoding="windows-1251"?>',
])("without a charset in the content type %s states it", async (declaration) => {
  const page = Buffer.concat([latin(declaration), Buffer.from([0xcf, 0xf0, 0xe8])]);
  expect((await decode(page, "text/html", 5)).text).toBe(`${declaration}При`);
});

test("a meta after the first 1,024 bytes counts up to the end of the head", async () => {
  const comment = `<head><!--${"x".repeat(5_000)}-->`;
  const late = latin(`${comment}<meta charset="windows-1252"></head>caf\xE9`);
  expect((await decode(late)).text).toContain("café");
  const body = latin(`${comment}</head><script>"<meta charset='windows-1252'>"</script>caf\xE9`);
  expect((await decode(body)).text).toContain("caf\uFFFD");
});

test("an unknown charset is ignored", async () => {
  const page = latin('<meta charset="windows-1252">caf\xE9');
  expect((await decode(page, "text/html; charset=klingon")).text).toContain("café");
  expect((await decode(utf8("café"), "text/html; charset=")).text).toBe("café");
});

test("encodings that cannot be decoded are read as others", async () => {
  expect((await decode(utf8("<p>a"), "text/html; charset=hz-gb-2312")).text).toBe("<p>a");
  const { text } = await decode(latin("caf\xE9"), "text/html; charset=x-user-defined");
  expect(text).toBe("café");
});

test("invalid bytes become U+FFFD, also a truncated end", async () => {
  const page = Buffer.from([0x61, 0xff, 0x62, 0xf0, 0x9f, 0x8e]);
  expect((await decode(page, null, 1)).text).toBe("a\uFFFDb\uFFFD");
});

test("parts are decoded as the whole is, valid or not", async () => {
  const parts = ["Grüße", "日本", "\uFEFF🎬", "\xED\xA0\x80", "\xC0\xAF", "\xE2\x82", "\xF5\x80"];
  const bytes = parts.map((part, index) => (index < 3 ? Buffer.from(part) : latin(part)));
  const whole = Buffer.concat(bytes.flatMap((each) => [latin("<p>"), each]));
  const page = new PageText(chunks(whole, 7), null);
  const read = (await Array.fromAsync(page.chunks())).join("");
  const decoded = read.split("<p>").map((part) => page.decode(part));
  expect(decoded.join("<p>")).toBe(new TextDecoder("utf-8").decode(whole));
});

test("legacy multi-byte text is decoded across chunks", async () => {
  const shiftJis = Buffer.from([0x93, 0xfa, 0x96, 0x7b]);
  expect((await decode(shiftJis, "text/html; charset=Shift_JIS", 1)).text).toBe("日本");
});

test("small chunks are joined and large ones cut, without waiting for the whole page", async () => {
  const page = utf8("abcdefgh".repeat(40_000));
  for (const size of [10, 320_000]) {
    const { chunks: decoded, text } = await decode(page, null, size);
    expect(text).toHaveLength(320_000);
    expect(decoded.map((chunk) => chunk.length)).toEqual([65536, 65536, 65536, 65536, 57856]);
  }
  async function* endless() {
    for (;;) yield page;
  }
  for await (const chunk of new PageText(endless(), null).chunks()) {
    expect(chunk).toHaveLength(65536);
    break;
  }
});

test("an empty page yields no text", async () => {
  expect((await decode(new Uint8Array())).chunks).toEqual([]);
});

test("an error of the body rejects the iteration", async () => {
  const lost = new Error("connection lost");
  async function* failing() {
    yield utf8("abc");
    throw lost;
  }
  await expect(Array.fromAsync(new PageText(failing(), null).chunks())).rejects.toBe(lost);
});
