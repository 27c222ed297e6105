import { describe, expect, it } from "vitest";
import type { Cue } from "../../src/remux/additions.ts";
import { joinCues } from "../../src/subtitles/join.ts";
import { box, fullBox, u32 } from "../../src/remux/mp4/boxes.ts";
import { createMp4TextReader } from "../../src/subtitles/mp4-text.ts";
import { readSubtitles } from "../../src/subtitles/read.ts";
import { writeSubRip, writeWebVtt } from "../../src/subtitles/write.ts";
import { textInit, textSegment, vttSample } from "./mp4.ts";

const plain = (cues: readonly Cue[]) => cues.map(({ startS, endS, text }) => [startS, endS, text]);
const read = (text: string) => plain(readSubtitles(Buffer.from(text)).cues);

const vtt = `WEBVTT - a title
Kind: captions

STYLE
::cue { color: red }

NOTE
00:09.000 is no cue

intro
00:01.000 --> 00:02.500 align:start position:10%
<i>One</i> &amp; <v Ann>two

01:00:03.000 --> 01:00:04.000
Three
lines
here
`;
const vttCues = [
  [1, 2.5, "<i>One</i> &amp; <v Ann>two"],
  [3603, 3604, "Three\nlines\nhere"],
];

describe("WebVTT is read", () => {
  it("with its notes and other styles than colours of classes left out, and settings kept", () => {
    expect(read(vtt)).toEqual(vttCues);
    expect(readSubtitles(Buffer.from(vtt)).cues[0]?.settings).toBe("align:start position:10%");
  });

  it.each([
    ["CRLF", Buffer.from(vtt.replaceAll("\n", "\r\n"))],
    ["CR", Buffer.from(vtt.replaceAll("\n", "\r"))],
    ["a byte order mark", Buffer.from(`\uFEFF${vtt}`)],
    ["UTF-16, little endian", Buffer.from(`\uFEFF${vtt}`, "utf16le")],
    ["UTF-16, big endian", Buffer.from(`\uFEFF${vtt}`, "utf16le").swap16()],
    ["UTF-16 without a mark", Buffer.from(vtt, "utf16le")],
    ["UTF-16, big endian, without a mark", Buffer.from(vtt, "utf16le").swap16()],
  ])("whatever its bytes are: %s", (_, bytes) => {
    expect(plain(readSubtitles(bytes).cues)).toEqual(vttCues);
  });

  it("with what its segments say of MPEG-2 timestamps, which have 33 bits", () => {
    const map = (line: string) => readSubtitles(Buffer.from(`WEBVTT\n${line}\n\n00:01.000 --> 00:02.000\nx\n`)).map;
    expect(map("X-TIMESTAMP-MAP=LOCAL:00:00:01.500,MPEGTS:900000")).toEqual({ localS: 1.5, mpegTs: 900_000 });
    expect(map("X-TIMESTAMP-MAP=MPEGTS:8589934593,LOCAL:00:00:00.000")).toEqual({ localS: 0, mpegTs: 1 });
    expect(map("X-TIMESTAMP-MAP=nonsense")).toBeNull();
  });

  it("with cues that have lines of spaces, as automatic captions do, until an empty line", () => {
    const text = "WEBVTT\n\n00:01.000 --> 00:02.000\n \nA\n\t\nB\n\nno text\n\n00:03.000 --> 00:04.000\nC\n ";
    expect(read(text)).toEqual([
      [1, 2, "A\nB"],
      [3, 4, "C"],
    ]);
  });

  it("without cues whose times are nonsense", () => {
    expect(read("WEBVTT\n\n00:05.000 --> 00:04.000\nx\n\n1:2 --> 3\ny\n\n00:06.000 --> 00:07.000\nz\n")).toEqual([
      [6, 7, "z"],
    ]);
    expect(read("WEBVTT\n")).toEqual([]);
  });
});

describe("long subtitles are read the same wherever their pieces end", () => {
  it.each([
    [
      "a line break of CRLF",
      (pad: string) => `WEBVTT\r\n\r\nNOTE ${pad}\r\n\r\n00:01.000 --> 00:02.000\r\nA\r\nB\r\n`,
      "A\nB",
    ],
    ["a character", (pad: string) => `WEBVTT\n\nNOTE ${pad}\n\n00:01.000 --> 00:02.000\n汉字é😀\n`, "汉字é😀"],
    [
      "a reference of TTML",
      (pad: string) =>
        `<!DOCTYPE tt [<!ENTITY who "me">]><tt xmlns="http://www.w3.org/ns/ttml"><!--${pad}--><body><p begin="1s" end="2s">a &amp; &who; <![CDATA[&who;]]></p></body></tt>`,
      "a &amp; me &amp;who;",
    ],
  ])("%s", (_, textOf, expected) => {
    const start = Buffer.byteLength(textOf("")) + 8;
    for (let cut = -start; cut <= start; cut++) {
      const cues = readSubtitles(Buffer.from(textOf("x".repeat(256 * 1024 + cut - start)))).cues;
      expect(plain(cues), String(cut)).toEqual([[1, 2, expected]]);
    }
  });
});

describe("SubRip is read", () => {
  it("with its markup as that of WebVTT", () => {
    const text =
      '1\n00:00:01,000 --> 00:00:02,500\n{\\an8}<i>AT&T</i> <font color="red">x < y</font>\n\n2\n00:00:03,000 --> 00:00:04,000\nB\n';
    expect(read(text)).toEqual([
      [1, 2.5, "<i>AT&amp;T</i> <c.colorff0000>x &lt; y</c>"],
      [3, 4, "B"],
    ]);
  });

  it("with tags that end a line, and spaces in times", () => {
    const text =
      "1\n00: 00: 01, 000 --> 00: 00: 02, 500\nA<br><br>B<br />C <brand>\n\n2\n00:00:03,000 --> 00:00:04,000\nD\n";
    expect(read(text)).toEqual([
      [1, 2.5, "A\nB\nC &lt;brand&gt;"],
      [3, 4, "D"],
    ]);
  });

  it("with times in their text", () => {
    const text = "1\n00:00:01,000 --> 00:00:02,000\n10:30:15 it began\n2\n11:00:00 - 12:00:00 --> lunch\nend\n";
    expect(read(text)).toEqual([[1, 2, "10:30:15 it began\n2\n11:00:00 - 12:00:00 --&gt; lunch\nend"]]);
  });

  it("with empty lines in cues, and numbers that are text", () => {
    const times = [
      "1 --> 00:00:02,000",
      "3-->00:00:04,000",
      "5 --> 00:00:06,000",
      "7 --> 00:00:08,000",
      "9 -.- 00:00:10",
    ];
    const [first, second, third, fourth, wrong] = times.map((text) => `00:00:0${text.replace(" -", ",000 -")}`);
    const text = `1\n${first}\n\nA\n\nB\n\n2\n\n${second}\n5\n6\n\n3\n${third}\n1984\n\n${fourth}\nD\n\n5\n${wrong}\nnone\n\n6\n`;
    expect(read(text)).toEqual([
      [1, 2, "A\nB"],
      [3, 4, "5\n6"],
      [5, 6, "1984"],
      [7, 8, "D"],
    ]);
  });

  it.each([
    "-00:00:03,000 --> 00:00:04,000",
    "NaN --> NaN",
    "00:00:03,000 --> ?",
    "99999:00:00,000 --> 99999:00:01,000",
  ])("without numbered cues whose times are nonsense: %s", (times) => {
    const text = `1\n00:00:01,000 --> 00:00:02,000\nA\n\n2\n${times}\nB\n\n3\n00:00:05,000 --> 00:00:06,000\nC\n`;
    expect(read(text)).toEqual([
      [1, 2, "A"],
      [5, 6, "C"],
    ]);
  });

  it.each(["->", " -> ", " -- > ", " –> ", " ——> ", " => ", " → "])(
    "with other arrows where a cue begins, and nowhere else: %s",
    (arrow) => {
      const times = (from: number) => `00:00:0${from},000${arrow}00:00:0${from + 1},000`;
      const text = `1\n${times(1)}\nA\n${times(8)}\n\n2\n${times(3)}\nB\n`;
      const shown = times(8).replace(">", "&gt;");
      expect(read(text)).toEqual([
        [1, 2, `A\n${shown}`],
        [3, 4, "B"],
      ]);
      expect(read(`WEBVTT\n\n${times(1)}\nA\n`)).toEqual([]);
    },
  );

  it("without zeros, at which players end a text", () => {
    expect(read("1\n00:00:01,000 --> 00:00:02,000\na\0b\n")).toEqual([[1, 2, "a\uFFFDb"]]);
  });

  it("in Windows-1252 if it is no UTF-8", () => {
    const text = Buffer.from("1\n00:00:01,000 --> 00:00:02,000\nGr\xfc\xdfe\n", "latin1");
    expect(plain(readSubtitles(text).cues)).toEqual([[1, 2, "Grüße"]]);
  });

  it.each([
    ["ru", "cff0e8e2e5f2", "Привет"],
    ["pl-PL", "b3f3bf6b6f", "łóżko"],
    ["el", "cae1ebe7ecddf1e1", "Καλημέρα"],
    ["tr", "fef0fd", "şğı"],
    ["ja", "82b182f182c982bf82cd", "こんにちは"],
    ["ko", "bec8b3e7", "안녕"],
    ["zh-CN", "c4e3bac3", "你好"],
    ["zh-TW", "a741a66e", "你好"],
    ["th", "cac7d1cab4d5", "สวัสดี"],
    [null, "4772fc", "Grü"],
  ])("in the encoding that was usual for %s if it is no UTF-8", (language, hex, expected) => {
    const cue = "1\n00:00:01,000 --> 00:00:02,000\n";
    const text = Buffer.concat([Buffer.from(cue), Buffer.from(hex, "hex")]);
    expect(plain(readSubtitles(text, language).cues)).toEqual([[1, 2, expected]]);
    expect(plain(readSubtitles(Buffer.from(`${cue}${expected}`), language).cues)).toEqual([[1, 2, expected]]);
  });

  it("in the encoding that it states as XML if it is no UTF-8", () => {
    const text = (encoding: string) =>
      Buffer.concat([
        Buffer.from(`<?xml version="1.0" encoding="${encoding}"?><tt><body><p begin="1s" end="2s">`),
        Buffer.from("cff0e8e2e5f2", "hex"),
        Buffer.from("</p></body></tt>"),
      ]);
    for (const encoding of ["windows-1251", "utf-8", "no-such"]) {
      expect(plain(readSubtitles(text(encoding), "ru").cues)).toEqual([[1, 2, "Привет"]]);
    }
    expect(plain(readSubtitles(text("WINDOWS-1251")).cues)).toEqual([[1, 2, "Привет"]]);
  });
});

describe("SubStation Alpha is read", () => {
  it("as text, by the order of its fields", () => {
    const text = [
      "[Script Info]",
      "[V4+ Styles]",
      "Dialogue: 0,0:00:09.00,0:00:10.00,,,no event",
      "[Events]",
      "Format: Layer, Start, End, Style, Text",
      "Dialogue: 0,0:00:03.00,0:00:04.50,Default,later, with comma",
      "Dialogue: 0,0:00:01.00,0:00:02.50,Default,{\\an8\\i1}One{\\i0}\\Ntwo & <three>",
      "Comment: 0,0:00:01.00,0:00:02.50,Default,none",
      "Dialogue: 0,0:00:01.00,0:00:02.50,Default,{\\p1}m 0 0 l 10 10{\\p0}",
    ].join("\r\n");
    expect(read(text)).toEqual([
      [3, 4.5, "later, with comma"],
      [1, 2.5, "<i>One</i>\ntwo &amp; &lt;three&gt;"],
    ]);
  });
});

describe("LRC is read", () => {
  it("with each line until the next one, several times, its offset, and without the times of words", () => {
    const text = [
      "\uFEFF[ti:A song]",
      "[offset:+500]",
      "[00:02.50]<00:02.50>One <00:03.1>& <i>",
      "[00:10.5][01:05]Twice",
      "[00:20.123]",
      "[00:08:25] two at",
      "[00:08.25]a time ",
      "no line",
    ].join("\r\n");
    expect(read(text)).toEqual([
      [2, 7.75, "One &amp; &lt;i&gt;"],
      [7.75, 10, "two at"],
      [7.75, 10, "a time"],
      [10, 19.623, "Twice"],
      [64.5, 359_999.499, "Twice"],
    ]);
  });

  it.each(["[ti:A song]\n[ar:Nobody]\n", "[1234:00]x\n", "A [00:01.00] in the middle\n", "[00:01.00]\n"])(
    "only if lines begin with times and have text: %s",
    (text) => expect(() => read(text)).toThrow("neither"),
  );

  it("unless the lines with several times make the text over 2 Mi characters longer", () => {
    const lineOf = (times: number) => `${"[00:01]".repeat(times)}${"x".repeat(20_000)}\n`;
    expect(read(lineOf(100))).toHaveLength(100);
    expect(() => read(lineOf(200))).toThrow("they repeat over 2097152 characters");
  });
});

describe("TTML is read", () => {
  const document = (body: string, attributes = "") =>
    `<?xml version="1.0"?><tt xmlns="http://www.w3.org/ns/ttml" xmlns:tts="http://www.w3.org/ns/ttml#styling" ${attributes}>` +
    `<head><styling><style xml:id="s1" tts:fontStyle="italic"/></styling></head><body>${body}</body></tt>`;

  it("with the times that its elements inherit", () => {
    const body =
      '<div begin="10s"><p begin="00:00:01.000" end="00:00:02.500">One<br/>two &amp; <span style="s1">three</span></p>' +
      '<p begin="3s" dur="500ms">B</p><p begin="00:00:04,250" end="5.5">C</p></div>';
    expect(read(document(body))).toEqual([
      [11, 12.5, "One\ntwo &amp; <i>three</i>"],
      [13, 13.5, "B"],
      [14.25, 15.5, "C"],
    ]);
  });

  it("with bold, italic and underlined text, also within text of another style", () => {
    const styled = (style: string, text: string) => `<span tts:${style}>${text}</span>`;
    const body =
      `<p begin="1s" end="2s">${styled('fontWeight="bold"', "a")} ${styled('fontStyle="oblique"', "b")} ` +
      `${styled('textDecoration="underline"', "c")}</p>` +
      `<p begin="3s" end="4s" tts:fontWeight="bold">d ${styled('fontWeight="normal"', "e")}</p>` +
      `<p begin="5s" end="6s" tts:textDecoration="underline">f ${styled('textDecoration="none"', "g")}</p>`;
    expect(read(document(body))).toEqual([
      [1, 2, "<b>a</b> <i>b</i> <u>c</u>"],
      [3, 4, "<b>d </b>e"],
      [5, 6, "<u>f </u>g"],
    ]);
  });

  it("with ruby as WebVTT has it, without the parentheses for readers that have none", () => {
    const ruby = (role: string, text: string) => `<span tts:ruby="${role}">${text}</span>`;
    const word = ["base", "delimiter", "text", "delimiter"].map((role, i) => ruby(role, ["漢", "(", "kan", ")"][i]!));
    const body = `<p begin="1s" end="2s">a ${ruby("container", word.join(""))} b</p>`;
    expect(read(document(body))).toEqual([[1, 2, "a <ruby>漢<rt>kan</rt></ruby> b"]]);
  });

  it("without what is not displayed or not visible, but with what is visible within it", () => {
    const body =
      '<p begin="1s" end="2s" tts:visibility="hidden">no <span tts:visibility="visible">yes</span> no</p>' +
      '<div tts:display="none"><p begin="3s" end="4s" tts:display="auto">no</p></div>' +
      '<p begin="5s" end="6s" tts:display="auto">yes <span style="s1" tts:visibility="hidden">no</span></p>';
    expect(read(document(body))).toEqual([
      [1, 2, "yes"],
      [5, 6, "yes"],
    ]);
  });

  it("unless it is cut off", () => {
    const whole = document('<p begin="1s" end="2s">One</p><p begin="3s" end="4s">Two</p>');
    for (const end of ["</tt>", "</p></div></body></tt>", ' begin="3s" end="4s">Two']) {
      const cut = whole.slice(0, whole.lastIndexOf(end));
      expect(() => read(cut)).toThrow("they end within an element, so they are cut off");
    }
    expect(read(`${whole}\n<!-- made by`)).toHaveLength(2);
  });

  it("unless it has images instead of text", () => {
    const image = '<div begin="1s" end="2s" smpte:backgroundImage="#one"/>';
    expect(() => read(document(image))).toThrow("they are images, and no text");
    expect(() => read(document('<div begin="1s" end="2s"><image src="one.png"/></div>'))).toThrow("they are images");
    expect(read(document(`${image}<p begin="1s" end="2s">One</p>`))).toEqual([[1, 2, "One"]]);
    const ofRegion = document("<div/>").replace(
      "<styling>",
      '<layout><region tts:backgroundImage="a.png"/></layout>$&',
    );
    expect(read(ofRegion)).toEqual([]);
  });

  it.each([
    ['ttp:frameRate="25"', "00:00:01:05", 1.2],
    ['ttp:frameRate="30" ttp:frameRateMultiplier="1000 1001"', "30f", 1.001],
    ['ttp:tickRate="10000000"', "15000000t", 1.5],
    ["", "0.025m", 1.5],
  ])("with frames and ticks: %s, %s", (attributes, begin, startS) => {
    const [cue] = readSubtitles(Buffer.from(document(`<p begin="${begin}" end="9s">x</p>`, attributes))).cues;
    expect(cue?.startS).toBeCloseTo(startS, 6);
  });

  it("with entities that it declares itself, of which one may refer to another, and no others", () => {
    const declared = `<!DOCTYPE tt [
      <!ENTITY who 'the "first" &#38; last'>
      <!ENTITY both "&who; &amp; me">
      <!ENTITY lt "x">
      <!ENTITY file SYSTEM "file.txt">
    ]>`;
    const paragraph = '<p begin="1s" end="2s">&both;: &lt; &file; &other; &AMP;</p>';
    expect(read(`<?xml version="1.0"?>${declared}${document(paragraph)}`)).toEqual([
      [1, 2, 'the "first" &amp; last &amp; me: &lt; &amp;file; &amp;other; &amp;AMP;'],
    ]);
  });

  it("with what CDATA sections have as it is, and no reference that only looks like one after decoding", () => {
    const declared = '<!DOCTYPE tt [<!ENTITY who "the first">]>';
    const paragraph = '<p begin="1s" end="2s">&who; <![CDATA[&who; &amp; <i>]]> &amp;who; &amp;lt;</p>';
    expect(read(`<?xml version="1.0"?>${declared}${document(paragraph)}`)).toEqual([
      [1, 2, "the first &amp;who; &amp;amp; &lt;i&gt; &amp;who; &amp;lt;"],
    ]);
  });

  it("with references in attributes", () => {
    expect(read(document('<p begin="&#49;s" end="&lt;2s">x</p><p begin="2s" end="&#x33;s">y</p>'))).toEqual([
      [1, 359_999.999, "x"],
      [2, 3, "y"],
    ]);
  });

  it("with what has no end, until the end of the media", () => {
    expect(read(document('<p begin="1s">a</p><div end="9s"><p begin="2s">b</p></div>'))).toEqual([
      [1, 359_999.999, "a"],
      [2, 9, "b"],
    ]);
  });

  it("without what is said of it", () => {
    const body = '<p begin="1s" end="2s"><metadata><ttm:desc>no</ttm:desc></metadata>yes<ttm:title>no</ttm:title></p>';
    expect(read(document(body))).toEqual([[1, 2, "yes"]]);
  });

  it("with sequences, and spans of their own times", () => {
    const body =
      '<div timeContainer="seq"><p dur="1s">a</p><p dur="2s">b</p></div>' +
      '<p begin="5s" end="7s"><span begin="0s" end="1s">c</span><span begin="1s" end="2s">d</span></p>';
    expect(read(document(body))).toEqual([
      [0, 1, "a"],
      [1, 3, "b"],
      [5, 6, "c"],
      [6, 7, "d"],
    ]);
  });
});

describe("text in fragmented MP4 is read", () => {
  it("of WebVTT: several cues in a sample, and none", () => {
    const reader = createMp4TextReader();
    expect(reader.read(textInit("wvtt"))).toEqual([]);
    const segment = textSegment(5_000, [
      { ms: 1000, data: vttSample() },
      { ms: 1500, data: vttSample("One", "Two\nlines") },
    ]);
    expect(plain(reader.read(segment))).toEqual([
      [6, 7.5, "One"],
      [6, 7.5, "Two\nlines"],
    ]);
  });

  it("of WebVTT: a cue that lasts while others begin and end is one, a later one of the same text another", () => {
    const reader = createMp4TextReader();
    reader.read(textInit("wvtt"));
    const samples = [["Long"], ["Long", "Short"], ["Long"], [], ["Long"]];
    const segment = textSegment(
      5_000,
      samples.map((texts) => ({ ms: 1000, data: vttSample(...texts) })),
    );
    expect(plain(reader.read(segment))).toEqual([
      [5, 8, "Long"],
      [6, 7, "Short"],
      [9, 10, "Long"],
    ]);
  });

  it.each<[layout: string, fragment: () => Uint8Array]>([
    ["sizes and durations of the fragment", () => fragment([[0x20018, [1000, cueBytes]]], [0x1, 2])],
    ["sizes and durations of the init section", () => fragment([[0x20000]], [0x1, 2])],
    ["flags and a description of the fragment", () => fragment([[0x2003a, [1, 1000, cueBytes, 0]]], [0x1, 2])],
    ["flags of the first sample", () => fragment([[0x20000]], [0x305, 2, 0, 1000, cueBytes, 1000, cueBytes])],
    ["all fields of each sample", () => fragment([[0x20000]], [0xf01, 2, 1000, cueBytes, 0, 0, 1000, cueBytes, 0, 0])],
    ["runs that follow each other", () => fragment([[0x20000]], [0x1, 1], [0, 1])],
    ["a place in the file that it was cut from", () => fragment([[0x1, [0, 5_000_000]]], [0x1, 2])],
  ])("however a fragment states its samples: %s", (_, make) => {
    const reader = createMp4TextReader();
    reader.read(textInit("wvtt", 0, "WEBVTT", { duration: 1000, size: cueBytes }));
    expect(plain(reader.read(make()))).toEqual([
      [5, 6, "One"],
      [6, 7, "Two"],
    ]);
  });

  it("if only the first fragment states its time", () => {
    const reader = createMp4TextReader();
    reader.read(textInit("wvtt"));
    const sample = { ms: 1000, data: vttSample("One") };
    reader.read(textSegment(5_000, [sample]));
    expect(plain(reader.read(textSegment(null, [sample])))).toEqual([[6, 7, "One"]]);
  });

  it("unless a sample is cut off, or is of another track", () => {
    const reader = createMp4TextReader();
    const segment = textSegment(5_000, [{ ms: 1000, data: vttSample("One") }]);
    expect(() => reader.read(segment)).toThrow("before its init section");
    reader.read(textInit("wvtt"));
    const [cutOff, ofAnother] = [Buffer.from(segment), Buffer.from(segment)];
    const sizeAt = segment.indexOf("mdat") - 8;
    cutOff.writeUInt32BE(cutOff.readUInt32BE(sizeAt) + 1, sizeAt);
    expect(() => reader.read(cutOff)).toThrow("a sample is not within its segment");
    ofAnother.writeUInt32BE(2, segment.indexOf("tfhd") + 8);
    expect(() => reader.read(ofAnother)).toThrow("no samples of track 1");
  });

  const cueBytes = vttSample("One").length;

  /** A fragment at 5 s that shows "One" and "Two", each for 1 s. Runs: flags, samples and fields, without the data offset. */
  function fragment(
    [[flags, fields = []]]: [[flags: number, fields?: number[]]],
    ...runs: [flags: number, samples: number, ...fields: number[]][]
  ): Buffer {
    const moof = (offset: number) =>
      box(
        "moof",
        box(
          "traf",
          fullBox("tfhd", 0, flags, u32(1, ...fields)),
          fullBox("tfdt", 0, 0, u32(5000)),
          ...runs.map(([stated, samples, ...rest]) =>
            fullBox("trun", 0, stated, u32(samples, ...(stated & 1 ? [offset] : []), ...rest)),
          ),
        ),
      );
    return Buffer.concat([moof(moof(0).length + 8), box("mdat", vttSample("One"), vttSample("Two"))]);
  }

  it("by the edit list of its track", () => {
    const reader = createMp4TextReader();
    reader.read(textInit("wvtt", 2_000));
    expect(plain(reader.read(textSegment(5_000, [{ ms: 1000, data: vttSample("One") }])))).toEqual([[3, 4, "One"]]);
  });

  it("of TTML without times, which lasts as long as its sample", () => {
    const reader = createMp4TextReader();
    reader.read(textInit("stpp"));
    const data = Buffer.from('<tt xmlns="http://www.w3.org/ns/ttml"><body><p>One</p><p begin="7s">Two</p></body></tt>');
    expect(plain(reader.read(textSegment(5_000, [{ ms: 5000, data }])))).toEqual([
      [5, 10, "One"],
      [7, 10, "Two"],
    ]);
  });

  it("of TTML, whose times are those of the track", () => {
    const reader = createMp4TextReader();
    reader.read(textInit("stpp"));
    const data = Buffer.from('<tt xmlns="http://www.w3.org/ns/ttml"><body><p begin="6s" end="20s">One</p></body></tt>');
    expect(plain(reader.read(textSegment(5_000, [{ ms: 5000, data }])))).toEqual([[6, 10, "One"]]);
  });
});

describe("cues of segments", () => {
  const cue = (startS: number, endS: number, text: string): Cue => ({ startS, endS, text, settings: "" });

  it("are joined: what is repeated or cut is there once", () => {
    const joined = joinCues([
      [cue(1, 2, "a"), cue(3, 6, "cut")],
      [cue(3, 6, "cut"), cue(7, 8, "b")],
      [cue(6, 7, "cut"), cue(8, 9, "b")],
    ]);
    expect(plain(joined)).toEqual([
      [1, 2, "a"],
      [3, 7, "cut"],
      [7, 9, "b"],
    ]);
  });

  it("are joined over any number of segments", () => {
    const segments = Array.from({ length: 300 }, (_, i) => [cue(i, i + 1, "long"), cue(i, i + 0.5, `${i}`)]);
    const joined = joinCues(segments);
    expect(joined).toHaveLength(301);
    expect(joined.find(({ text }) => text === "long")).toEqual(cue(0, 300, "long"));
  });

  it("stay apart in one segment, or if time is between them", () => {
    const cues = [cue(1, 2, "No!"), cue(2, 3, "No!")];
    expect(joinCues([cues])).toEqual(cues);
    expect(joinCues([[cue(1, 2, "a")], [cue(5, 6, "a")]])).toHaveLength(2);
  });
});

describe("cues are written", () => {
  const cues: Cue[] = [
    { startS: 1, endS: 2.5, text: "<i>One</i> &amp; <b><u>two</u></b>\n\nline --> three", settings: "align:start" },
    { startS: 3600, endS: 3661.001, text: "B", settings: "" },
  ];

  it("as WebVTT, which is read again", () => {
    const text = [...writeWebVtt(cues)].join("");
    expect(text).toContain("WEBVTT\n\n00:00:01.000 --> 00:00:02.500 align:start\n");
    expect(read(text)).toEqual([
      [1, 2.5, "<i>One</i> &amp; <b><u>two</u></b>\nline -> three"],
      [3600, 3661.001, "B"],
    ]);
  });

  it("as SubRip, which is read again", () => {
    expect([...writeSubRip(cues)].join("")).toBe(
      "1\n00:00:01,000 --> 00:00:02,500\n<i>One</i> & <b><u>two</u></b>\nline -> three\n\n2\n01:00:00,000 --> 01:01:01,001\nB\n",
    );
  });
});

describe("hostile subtitles", () => {
  const many = (count: number, cueOf: (i: number) => string) =>
    Array.from({ length: count }, (_, i) => cueOf(i)).join("");
  const tt = (body: string) => `<tt xmlns="http://www.w3.org/ns/ttml"><body>${body}</body></tt>`;
  it.each([
    ["nesting", tt(`${"<div>".repeat(100_000)}x`)],
    ["over 200,000 cues", `WEBVTT\n\n${many(200_001, () => "00:01.000 --> 00:02.000\nx\n\n")}`],
    ["over 200,000 paragraphs", tt(many(200_001, () => '<p begin="1s" end="2s">x</p>'))],
    ["a cue of many lines", tt(`<p begin="1s" end="2s">${"<br/>".repeat(200_000)}x</p>`)],
    ["a line of 3 Mi characters", `WEBVTT\n\n${"x".repeat(3 << 20)}\n\n00:01.000 --> 00:02.000\nx\n`],
    ["a cue of over a million lines", `WEBVTT\n\n00:01.000 --> 00:02.000\n${"x\n".repeat(1_100_000)}`],
    ["neither", "{}"],
    ["a page", "<!DOCTYPE html><html></html>"],
    ["other XML", "<?xml version='1.0'?><feed/>"],
    [
      "entities that are used often",
      `<!DOCTYPE tt [<!ENTITY a "${"a".repeat(1000)}">]>${tt(many(3000, () => '<p begin="1s" end="2s">&a;</p>'))}`,
    ],
    ["elements that do not end", tt(many(200_001, (i) => `<p begin="${i}s" end="${i + 1}s">x`))],
    ["over 200,000 lyrics", many(2_001, () => `${"[00:01.00]".repeat(100)}x\n`)],
    [
      "over 200,000 dialogues",
      `[Script Info]\n[Events]\n${many(200_001, () => "Dialogue: 0,0:00:01.00,0:00:02.00,,,,,,,x\n")}`,
    ],
    ["attributes", tt(`<p begin="1s" end="2s" ${many(999, (i) => `a${i}="" `)}>x</p>`)],
    [
      "namespaces",
      `<tt xmlns="http://www.w3.org/ns/ttml" ${many(20_000, (i) => `xmlns:a${i}="urn:${i}" `)}><body/></tt>`,
    ],
  ])("are refused with upstream_invalid: %s", (_, text) => {
    expect(() => readSubtitles(Buffer.from(text))).toThrow(expect.objectContaining({ code: "upstream_invalid" }));
  });

  it.each([
    [
      "an entity bomb",
      `<!DOCTYPE tt [<!ENTITY a0 "aaaaaaaaaa">${many(30, (i) => `<!ENTITY a${i + 1} "${`&a${i};`.repeat(10)}">`)}]>${tt('<p begin="1s" end="2s">&a30;</p>')}`,
    ],
    [
      "an external entity",
      `<!DOCTYPE tt [<!ENTITY x SYSTEM "file:///etc/passwd">]>${tt('<p begin="1s" end="2s">&x;</p>')}`,
    ],
    [
      "mad times",
      tt('<p begin="99999999999999999999h" end="1s">a</p><p begin="-1s" end="1e9s">b</p><p begin="1s" end="2s">c</p>'),
    ],
    ["attributes", tt(`<p begin="1s" end="2s" ${many(998, (i) => `a${i}="" `)}>x</p>`)],
    [
      "styles that refer to each other",
      tt(`${many(1_000, (i) => `<style xml:id="s${i}" style="s${i + 1}"/>`)}<p style="s0" begin="1s" end="2s">x</p>`),
    ],
    ["a long line", `WEBVTT\n\n00:01.000 --> 00:02.000${" ".repeat(2_000_000)}\nx\n`],
    [
      "a long line that ends otherwise",
      `WEBVTT\n\n00:01.000 --> 00:02.000${" ".repeat(300_000)}\u2028\n${"0".repeat(1_000_000)} --> 1\nx\n`,
    ],
    ["arrows", `WEBVTT\n\n${"-->".repeat(600_000)}\n\n00:01.000 --> 00:02.000\nx\n`],
    [
      "other arrows",
      `1\n00:00:01,000${" ".repeat(1_000_000)}-> x\n\n00:01 ${"-".repeat(1_000_000)}\n\n1\n00:00:01,000 -> 00:00:02,000\nx\n`,
    ],
    ["times of lyrics", `[00:01.00]x${"<00:01.00".repeat(100_000)}${" ".repeat(100_000)}[00:02\n`],
    ["open tags", `1\n00:00:01,000 --> 00:00:02,000\n${"<".repeat(1_000_000)}\n`],
    [
      "comments and CDATA",
      tt(`${"<!-- ".repeat(300_000)}--><p begin="1s" end="2s"><![CDATA[${"]]".repeat(300_000)}]]></p>`),
    ],
    [
      "surrogates and control characters",
      `WEBVTT\n\n00:01.000 --> 00:02.000\n${"\0\u001b[2J\ud800&#0;&#x110000;&#xd800;".repeat(50_000)}\n`,
    ],
    ...["/*", "*/{", ",", "::cue(.a){color:"].map((part) => [
      `styles of "${part}"`,
      `WEBVTT\n\n${many(9, () => `STYLE\n${part.repeat(50_000)}\n\n`)}00:01.000 --> 00:02.000\n<c.a>x\n`,
    ]),
    ["colours", `WEBVTT\n\n00:01.000 --> 00:02.000\n${"<c.red.a.b></b>x".repeat(100_000)}\n`],
    ["colours of fonts", `1\n00:00:01,000 --> 00:00:02,000\n${"<font color=red>x".repeat(100_000)}\n`],
    ["nested tags of a cue", `WEBVTT\n\n00:01.000 --> 00:02.000\n${"<i><b><c.x>".repeat(150_000)}x\n`],
    [
      "fields of SubStation Alpha",
      `[Script Info]\n[Events]\nFormat: ${"a,".repeat(500_000)}text\nDialogue: ${",".repeat(500_000)}\n`,
    ],
    ["open braces", `[Script Info]\n[Events]\nDialogue: 0,0:00:01.00,0:00:02.00,,,,,,,${"{\\".repeat(500_000)}x\n`],
  ])("are read in linear time, and nothing is fetched: %s", (_, text) => {
    const { cues } = readSubtitles(Buffer.from(text));
    expect(cues.length).toBeLessThanOrEqual(2);
    expect(JSON.stringify(cues)).not.toContain("root:");
    expect(JSON.stringify(cues)).not.toContain("aaaaaaaaaa");
  });
});
