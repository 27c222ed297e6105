import { describe, expect, it } from "vitest";
import { findRedundant } from "../../src/manifests/hls/hls.ts";

const base = new URL("https://media.example.com/film/index.m3u8");
const variant = (attributes: string, uri: string) => `#EXT-X-STREAM-INF:${attributes}\n${uri}`;
const audio = (group: string, name: string, uri: string) =>
  `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="${group}",NAME="${name}",LANGUAGE="en",URI="${uri}"`;

function redundantTo(media: string, ...lines: string[]): string[] {
  const text = ["#EXTM3U", ...lines].join("\n");
  return findRedundant(text, base, new URL(media, base)).map(({ pathname }) => pathname.slice("/film/".length));
}

describe("redundant to a variant", () => {
  it("are those with the same attributes, in any order, on other pathways and with other groups", () => {
    const found = redundantTo(
      "a.m3u8",
      variant('BANDWIDTH=1000,CODECS="avc1.4d401f",AUDIO="x"', "b.m3u8"),
      variant('CODECS="avc1.4d401f",BANDWIDTH=1000,PATHWAY-ID="one",AUDIO="y"', "a.m3u8"),
      variant('BANDWIDTH=1000,CODECS="avc1.4d401f",PATHWAY-ID="two"', "c.m3u8"),
    );
    expect(found).toEqual(["b.m3u8", "c.m3u8"]);
  });

  it.each([
    "BANDWIDTH=1001",
    'BANDWIDTH=1000,CODECS="avc1.4d401f"',
    "BANDWIDTH=1000,RESOLUTION=2x2",
    'BANDWIDTH=1000,STABLE-VARIANT-ID="b"',
  ])("is none with %s", (other) => {
    expect(redundantTo("a.m3u8", variant("BANDWIDTH=1000", "a.m3u8"), variant(other, "b.m3u8"))).toEqual([]);
  });

  it("is nothing at its own URL, at an unknown one, or in a media playlist", () => {
    const same = [variant("BANDWIDTH=1000", "a.m3u8"), variant("BANDWIDTH=1000", "a.m3u8")];
    expect(redundantTo("a.m3u8", ...same)).toEqual([]);
    expect(redundantTo("other.m3u8", ...same)).toEqual([]);
    expect(redundantTo("a.ts", "#EXTINF:1,", "a.ts")).toEqual([]);
  });
});

describe("redundant to a rendition", () => {
  const variants = [
    variant('BANDWIDTH=1000,AUDIO="one"', "a.m3u8"),
    variant('BANDWIDTH=1000,AUDIO="two"', "b.m3u8"),
    variant('BANDWIDTH=2000,AUDIO="good"', "c.m3u8"),
  ];

  it("are those of the same name in the groups of redundant variants", () => {
    const renditions = [audio("one", "English", "1.m3u8"), audio("two", "English", "2.m3u8")];
    expect(redundantTo("1.m3u8", ...variants, ...renditions)).toEqual(["2.m3u8"]);
  });

  it("are no others: a commentary, or the same in better quality", () => {
    const renditions = [
      audio("one", "English", "1.m3u8"),
      audio("two", "Commentary", "2.m3u8"),
      audio("good", "English", "3.m3u8"),
    ];
    expect(redundantTo("1.m3u8", ...variants, ...renditions)).toEqual([]);
  });
});
