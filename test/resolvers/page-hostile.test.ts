import { describe, expect, it } from "vitest";
import { jsonLd, resolvePage } from "./page/saved-client.ts";

const mega = 1024 * 1024;
/** Closes whatever is open. */
const tail = `"'><!----></script></title></textarea></style><link rel="canonical" href="/read">`;

const attributes = Array.from({ length: 100 }, (_, n) => `a${n}=1`).join(" ");

/** Each would take minutes, or all memory, if any step were quadratic. */
const inputs: [string, string][] = [
  ["angle brackets", "<".repeat(4 * mega)],
  ["unfinished tags", "<a ".repeat(mega)],
  ["an attribute without an end", `<a b="${"c".repeat(4 * mega)}`],
  ["a million attributes", `<p ${"a=1 ".repeat(mega)}>`],
  ["many metas", `<meta property="og:image" content="/x">`.repeat(100_000)],
  ["comments without an end", "<!--".repeat(mega)],
  ["comments that nearly end", `<!--${"--".repeat(2 * mega)}`],
  ["raw text that nearly ends", `<script>${"</scrip</".repeat(mega / 2)}`],
  ["deep nesting", `<div itemscope itemprop=a>`.repeat(100_000)],
  ["deep properties", `<b itemscope><b itemprop=a>${"<b itemprop=b>x".repeat(100_000)}`],
  ["end tags without a start", `<div itemscope>${"<p>".repeat(1_000)}${"</x>".repeat(mega)}`],
  ["white space in attributes", `<p a${" ".repeat(200_000)}b>`.repeat(10)],
  [
    "many names of one meta",
    `<meta property="${"og:type ".repeat(2_000)}" content="${" ".repeat(32_000)}">`.repeat(50),
  ],
  ["sources of a player with many attributes", `<video ${attributes}>${"<source data-x>".repeat(200_000)}`],
  ["many players", `<video src=/a.mp4><source src=/b.mp4><track src=/c.vtt>`.repeat(50_000)],
];

const call = (body: string, argument: string) => `<script>x=(function(a){${body}}(${argument}`;
const escapes = '\\"'.repeat(120_000);

const indexes = (start: number) => Array.from({ length: 20 }, (_, n) => start + n).join(",");
const fields = (count: number, value: string) => Array.from({ length: count }, (_, n) => `"a${n}":${value}`).join(",");
const strings = 'a:"x",'.repeat(900);

/** The same, of scripts with a URL of a medium. */
const scripts: [string, string][] = [
  ["a text of escapes without an end", call(`"/1.mp4"${escapes}\\`, '"x"))')],
  ["an argument of escapes without an end", call("return a", `"/1.mp4"${escapes}\\`)],
  [
    "a long argument that is named often",
    call(`return [${"a,".repeat(90_000)}]`, `"/1.mp4?\u2026${"x".repeat(60_000)}"))`),
  ],
  ["the state of Angular without references", `<script>{&q;a.mp4"${"x".repeat(4 * mega)}`],
  [
    "a list of values whose objects refer to one text in base64",
    `<script>[[${indexes(3)}],"/1.mp4","${btoa(`https://example.com/1.mp4?${"x".repeat(60_000)}`)}",${`{${fields(900, "2")}},`.repeat(20)}0]`,
  ],
  ["brackets around URLs", `<script>x=[${`${"[".repeat(190)}"/1.mp4"${"]".repeat(190)},`.repeat(20_000)}`],
  [
    "objects in objects with many fields",
    `<script>x=${`{${strings}b:`.repeat(48)}{${Array.from({ length: 10_000 }, (_, n) => `a${n}:{src:"/${n}.mp4"}`).join(",")}}`,
  ],
  ["a percent-encoded text without escapes", `<script>%7B"a.mp4"${"x".repeat(4 * mega)}`],
];

/** As many references as fit in so many characters. */
const references = (id: string, length: number) => `[${`{"@id":"${id}"},`.repeat(length / 12)}1]`;
const blank = " ".repeat(80_000);

const blocks: [string, string][] = [
  ["nested arrays", "[".repeat(500_000)],
  ["nested arrays, closed", "[".repeat(200_000) + "]".repeat(200_000)],
  ["nested objects, closed", `${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}`],
  ["comments without an end", `{${"/*".repeat(400_000)}`],
  ["strings without an end", `{"${'\\"'.repeat(400_000)}`],
  ["commas", `{${", ".repeat(400_000)}`],
  ["many things", `[${'{"@type":"VideoObject","name":"x"},'.repeat(20_000)}{}]`],
  [
    "references to actions of many types",
    `[{"@id":"c","x":1,"@type":[${'"a",'.repeat(20_000)}"a"]},{"@id":"b","interactionType":${references("c", 80_000)}},
      {"@type":"VideoObject","interactionStatistic":${references("b", 80_000)}}]`,
  ],
  [
    "references to an author without a name",
    `[{"@id":"a","name":"${blank}"},${`{"@type":"Article","author":${references("a", 12_000)}},`.repeat(12)}{}]`,
  ],
  ["a cycle", '{"@graph":[{"@id":"a","@type":"WebPage","x":{"@id":"b"}},{"@id":"b","name":"y","x":{"@id":"a"}}]}'],
];

describe("hostile pages", () => {
  it.each([...inputs, ...scripts])("are read to their end: %s", async (_, html) => {
    const info = await resolvePage(`<meta property="og:title" content="first">${html}${tail}`);
    expect(info).toMatchObject({ title: "first", webpage_url: "https://video.example.com/read" });
  });

  it.each(blocks)("cannot stall JSON-LD with %s", async (_, block) => {
    const video = {
      "@type": "VideoObject",
      "@id": "https://video.example.com/watch/1",
      name: "otters",
    };
    expect((await resolvePage(jsonLd(block, video))).title).toBe("otters");
  });
});
