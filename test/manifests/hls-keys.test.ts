import { expect, test } from "vitest";
import { readHlsSegments } from "../../src/manifests/hls/segments.ts";
import { readDataKey } from "../../src/manifests/segments.ts";
import { failure } from "./failure.ts";

const url = new URL("https://media.example.com/films/42/main.m3u8");
const read = (...lines: string[]) =>
  readHlsSegments(["#EXTM3U", "#EXT-X-TARGETDURATION:6", ...lines].join("\n"), url).segments;

const widevine = '#EXT-X-KEY:METHOD=SAMPLE-AES-CTR,URI="data:x",KEYFORMAT="urn:uuid:edef8ba9"';

test("a stated IV is padded to 16 bytes", () => {
  const [segment] = read('#EXT-X-KEY:METHOD=AES-128,URI="k?a=1",IV=0X9Ab', "1.ts");
  expect(segment?.key).toEqual({
    url: "https://media.example.com/films/42/k?a=1",
    iv: "000000000000000000000000000009ab",
  });
});

test("a key may be in the playlist itself", () => {
  const bytes = "000102030405060708090a0b0c0d0e61";
  for (const data of [
    "text/plain;base64,AAECAwQFBgcICQoLDA0OYQ==",
    "text/plain;base64,AAECAwQFBgcICQoLDA0OYQ%3d%3D",
    ",%00%01%02%03%04%05%06%07%08%09%0a%0B%0c%0d%0ea",
  ]) {
    const uri = `data:${data}`;
    const [segment] = read(`#EXT-X-KEY:METHOD=AES-128,URI="${uri}"`, "1.ts");
    expect(segment?.key?.url).toBe(uri);
    expect(readDataKey(uri)?.toString("hex")).toBe(bytes);
  }
  const long = `#EXT-X-KEY:METHOD=AES-128,URI="data:,${"a".repeat(2000)}"`;
  expect(() => read(long, "1.ts")).toThrow(failure("address_blocked", /scheme data:/));
});

test("the default IV is the sequence number of the segment, counting gaps", () => {
  const keys = read(
    "#EXT-X-MEDIA-SEQUENCE:254",
    '#EXT-X-KEY:METHOD=AES-128,URI="k",KEYFORMAT="identity",KEYFORMATVERSIONS="1"',
    "1.ts\n#EXT-X-GAP\n2.ts\n3.ts",
  ).map(({ key }) => key?.iv);
  expect(keys).toEqual(["000000000000000000000000000000fe", "00000000000000000000000000000100"]);
});

test("a key applies up to the next one or METHOD=NONE", () => {
  const key = (name: string) => `#EXT-X-KEY:METHOD=AES-128,URI="${name}"`;
  const segments = read("0", key("a"), "1", "2", key("b"), "3", "#EXT-X-KEY:METHOD=NONE", "4");
  const names = segments.map((segment) => segment.key?.url.split("/").at(-1));
  expect(names).toEqual([undefined, "a", "a", "b", undefined]);
});

test("an init section has the preceding key, whose IV must be stated", () => {
  const map = '#EXT-X-MAP:URI="i.mp4"';
  const [first, second] = read(map, '#EXT-X-KEY:METHOD=AES-128,URI="k",IV=0x1', "1", map, "2");
  expect(first).toMatchObject({ init: { key: null }, key: { iv: expect.stringMatching(/1$/) } });
  expect(second?.init?.key).toEqual(second?.key);
  expect(() => read('#EXT-X-KEY:METHOD=AES-128,URI="k"', map, "1")).toThrow(
    failure("upstream_invalid", /must state its IV/),
  );
});

test("a key may be of samples only, which an init section does not have", () => {
  const [segment] = read('#EXT-X-KEY:METHOD=SAMPLE-AES,URI="k"', '#EXT-X-MAP:URI="i.mp4"', "1");
  expect(segment).toMatchObject({ init: { key: null }, key: { isOfSamples: true, iv: expect.stringMatching(/0$/) } });
  const [whole] = read('#EXT-X-KEY:METHOD=AES-128,URI="k"', "1");
  expect(whole?.key).not.toHaveProperty("isOfSamples");
});

test("a key may have 256 bits", () => {
  const [cbc, ctr] = read('#EXT-X-KEY:METHOD=AES-256,URI="k"', "1", '#EXT-X-KEY:METHOD=AES-256-CTR,URI="k"', "2");
  expect(cbc?.key).toMatchObject({ cipher: "aes-256-cbc" });
  expect(ctr?.key).toMatchObject({ cipher: "aes-256-ctr" });
  expect(readDataKey(`data:,${"k".repeat(32)}`)).toHaveLength(32);
});

test.each([
  ["a licence server's format", widevine, /urn:uuid:edef8ba9/],
  ["FairPlay", '#EXT-X-KEY:METHOD=SAMPLE-AES,URI="skd://k"', /licence server/],
  ["AES-128 of a licence server", '#EXT-X-KEY:METHOD=AES-128,URI="k",KEYFORMAT="com.x"', /com\.x/],
  ["Adobe Access", "#EXT-X-FAXS-CM:AAAA", /Adobe/],
  ["an unknown method", '#EXT-X-KEY:METHOD=AES-256-GCM,URI="k"', /AES-256-GCM is not supported/],
])("%s is refused as protected", (_, line, message) => {
  expect(() => read(line, "1.ts")).toThrow(failure("drm_protected", message));
  expect(() => read(line, '#EXT-X-MAP:URI="i.mp4"', "1.ts")).toThrow(failure("drm_protected", message));
});

test("one usable key of several for a segment is enough", () => {
  const plain = '#EXT-X-KEY:METHOD=AES-128,URI="k",IV=0x1';
  for (const lines of [
    [widevine, plain],
    [plain, widevine],
  ]) {
    expect(read(...lines, "1.ts")[0]?.key?.url).toBe("https://media.example.com/films/42/k");
  }
});

test("protection that ends before the first segment is ignored", () => {
  expect(read(widevine, "#EXT-X-KEY:METHOD=NONE", "1.ts")[0]?.key).toBeNull();
});

test.each([
  ['METHOD=AES-128,URI="k",IV=123', /IV must be 0x/],
  [`METHOD=AES-128,URI="k",IV=0x${"1".repeat(33)}`, /IV must be 0x/],
  ['METHOD=AES-128,URI="k",IV=0xzz', /IV must be 0x/],
  ["METHOD=AES-128", /must have METHOD and URI/],
  ['URI="k"', /must have METHOD and URI/],
])("the key %s is refused as invalid", (attributes, message) => {
  expect(() => read(`#EXT-X-KEY:${attributes}`, "1.ts")).toThrow(failure("upstream_invalid", message));
});
