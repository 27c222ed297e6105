import { expect, test } from "vitest";
import { PageText } from "../../../../src/resolvers/page/markup/charset.ts";

function decode(bytes: Uint8Array, contentType: string | null = null): string {
  const page = new PageText(bytes, contentType);
  return page.decode(page.text);
}

const utf8 = (text: string) => new TextEncoder().encode(text);
const latin = (text: string) => Buffer.from(text, "latin1");

test("UTF-8 is the default", () => {
  const text = "<title>Grüße aus Köln 日本 🎬</title>";
  expect(decode(utf8(text), "text/html")).toBe(text);
});

test("a byte order mark takes precedence over the content type and is not text", () => {
  expect(decode(utf8("\uFEFFé"), "text/html; charset=windows-1252")).toBe("é");
  const utf16 = Buffer.from("\uFEFF<p>é", "utf16le");
  expect(decode(utf16, "text/html; charset=utf-8")).toBe("<p>é");
});

test("the content type takes precedence over a meta", () => {
  const page = latin('<meta charset="utf-8"><title>caf\xE9</title>');
  const text = decode(page, 'text/html; x=1; Charset="ISO-8859-1"');
  expect(text).toContain("café");
});

test.each([
  '<meta charset="windows-1251">',
  "<meta http-equiv=Content-Type content='text/html; charset=windows-1251'>",
  '<?xml version="1.0" encoding="windows-1251"?>',
])("without a charset in the content type %s states it", async (declaration) => {
  const page = Buffer.concat([latin(declaration), Buffer.from([0xcf, 0xf0, 0xe8])]);
  expect(decode(page, "text/html")).toBe(`${declaration}При`);
});

test("a meta after the first 1,024 bytes counts up to the end of the head", () => {
  const comment = `<head><!--${"x".repeat(5_000)}-->`;
  const late = latin(`${comment}<meta charset="windows-1252"></head>caf\xE9`);
  expect(decode(late)).toContain("café");
  const body = latin(`${comment}</head><script>"<meta charset='windows-1252'>"</script>caf\xE9`);
  expect(decode(body)).toContain("caf\uFFFD");
});

test("an unknown charset is ignored", () => {
  const page = latin('<meta charset="windows-1252">caf\xE9');
  expect(decode(page, "text/html; charset=klingon")).toContain("café");
  expect(decode(utf8("café"), "text/html; charset=")).toBe("café");
});

test("encodings that cannot be decoded are read as others", () => {
  expect(decode(utf8("<p>a"), "text/html; charset=hz-gb-2312")).toBe("<p>a");
  const text = decode(latin("caf\xE9"), "text/html; charset=x-user-defined");
  expect(text).toBe("café");
});

test("invalid bytes become U+FFFD, also a truncated end", () => {
  const page = Buffer.from([0x61, 0xff, 0x62, 0xf0, 0x9f, 0x8e]);
  expect(decode(page)).toBe("a\uFFFDb\uFFFD");
});

test("parts are decoded as the whole is, valid or not", () => {
  const parts = ["Grüße", "日本", "\uFEFF🎬", "\xED\xA0\x80", "\xC0\xAF", "\xE2\x82", "\xF5\x80"];
  const bytes = parts.map((part, index) => (index < 3 ? Buffer.from(part) : latin(part)));
  const whole = Buffer.concat(bytes.flatMap((each) => [latin("<p>"), each]));
  const page = new PageText(whole, null);
  const decoded = page.text.split("<p>").map((part) => page.decode(part));
  expect(decoded.join("<p>")).toBe(new TextDecoder("utf-8").decode(whole));
});

test("legacy multi-byte text is decoded", () => {
  const shiftJis = Buffer.from([0x93, 0xfa, 0x96, 0x7b]);
  expect(decode(shiftJis, "text/html; charset=Shift_JIS")).toBe("日本");
});

test("an empty page has no text", () => {
  expect(decode(new Uint8Array())).toBe("");
});
