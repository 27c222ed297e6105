import { describe, expect, it } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import { maxUrlLength, parseHttpUrl } from "../../src/net/http-url.ts";

function messageFor(text: string): string {
  try {
    parseHttpUrl(text);
  } catch (error) {
    if (error instanceof ServiceError && error.code === "invalid_url") return error.message;
    throw error;
  }
  throw new Error(`${text} passed`);
}

describe("parseHttpUrl", () => {
  it.each([
    ["https://example.com/watch?v=1#t=2", "https://example.com/watch?v=1#t=2"],
    ["HTTP://Example.COM", "http://example.com/"],
    ["  https://example.com/a b  ", "https://example.com/a%20b"],
    ["https://bücher.example/ü", "https://xn--bcher-kva.example/%C3%BC"],
    ["http://127.1/", "http://127.0.0.1/"],
  ])("parses %j", (text, href) => {
    expect(parseHttpUrl(text).href).toBe(href);
  });

  it.each([
    ["", "the URL is empty; give the URL of a page"],
    ["  ", "the URL is empty; give the URL of a page"],
    ["/watch/1", 'the URL must begin with https:// or http://, got "/watch/1"'],
    ["//example.com/", 'the URL must begin with https:// or http://, got "//example.com/"'],
    ["example.com/1", 'the URL must begin with https:// or http://, got "example.com/1"'],
    ["example.com:8080/1", 'the URL must begin with https:// or http://, got "example.com:8080/1"'],
    ["localhost:8080/1", 'the URL must begin with https:// or http://, got "localhost:8080/1"'],
    ["http://", 'the URL is not a valid URL, got "http://"'],
    ["http://[::1", 'the URL is not a valid URL, got "http://[::1"'],
    ["ftp://example.com/", 'the URL must begin with https:// or http://, got "ftp://example.com/"'],
    ["ftp://[", 'the URL must begin with https:// or http://, got "ftp://["'],
    ["javascript:alert(1)", 'the URL must begin with https:// or http://, got "javascript:alert(1)"'],
    ["file:///etc/passwd", 'the URL must begin with https:// or http://, got "file:///etc/passwd"'],
    ["https://exa\nmple.com/", 'the URL must not contain control characters, got "https://exa\\nmple.com/"'],
    ["https://example.com/\t", 'the URL must not contain control characters, got "https://example.com/\\t"'],
    [
      "https://example.com/\r\nX: y",
      'the URL must not contain control characters, got "https://example.com/\\r\\nX: y"',
    ],
    ["https://example.com/\u0000", 'the URL must not contain control characters, got "https://example.com/\\u0000"'],
  ])("refuses %j with the rule and the value", (text, message) => {
    expect(messageFor(text)).toBe(message);
  });

  it.each([
    "https://user:hunter2@example.com/",
    "https:\\\\user:hunter2@example.com/",
    "http:user:hunter2@example.com/",
    "http://user:p@hunter2@example.com/",
    "http://user:hunter2@/",
    "http://user:hunter2@exa mple.com/",
    "ftp://user:hunter2@example.com/",
    "https://user:hunter2@exa\nmple.com/",
    "user:hunter2@example.com",
    "https://hunter2@example.com/",
  ])("refuses %j without the password in the message", (text) => {
    const message = messageFor(text);
    expect(message).not.toContain("hunter2");
    expect(message).toMatch(/got "…@/);
  });

  it("accepts 8192 characters and refuses more, as written and percent-encoded", () => {
    const start = "https://example.com/";
    const longest = start + "a".repeat(maxUrlLength - start.length);
    expect(parseHttpUrl(longest).href).toHaveLength(8192);
    const rule = "the URL must be at most 8192 characters long, percent-encoded; it has";
    expect(messageFor(`${longest}a`)).toBe(`${rule} 8193`);
    expect(messageFor(`${start}${"ü".repeat(2000)}`)).toBe(`${rule} 12020`);
    expect(messageFor("x".repeat(10_000_000))).toBe(`${rule} 10000000`);
  });

  it("shows only the start of a long value", () => {
    expect(messageFor(`ftp://example.com/${"a".repeat(8000)}`).length).toBeLessThan(200);
  });
});
