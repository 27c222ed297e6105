import { describe, expect, it } from "vitest";
import { createMp4TextReader } from "../../src/subtitles/mp4-text.ts";
import { readSubtitles } from "../../src/subtitles/read.ts";
import { writeSubRip, writeWebVtt } from "../../src/subtitles/write.ts";
import { textInit, textSegment, vttSample } from "./mp4.ts";

const textOf = (subtitles: string) => readSubtitles(Buffer.from(subtitles)).cues.map(({ text }) => text);

const vtt = (style: string, text: string) => `WEBVTT\n\nSTYLE\n${style}\n\n00:01.000 --> 00:02.000\n${text}\n`;
const srt = (text: string) => `1\n00:00:01,000 --> 00:00:02,000\n${text}\n`;
const ttml = (body: string) =>
  `<tt xmlns="http://www.w3.org/ns/ttml" xmlns:tts="http://www.w3.org/ns/ttml#styling"><head><styling>
  <style xml:id="white" tts:color="#ffffff"/><style xml:id="ann" tts:color="yellow"/></styling></head>
  <body style="white"><div><p begin="1s" end="2s">${body}</p></div></body></tt>`;
const ass = (text: string, style = "Default") => `[Script Info]
[V4+ Styles]
Format: Name, PrimaryColour, Alignment
Style: Default,&H00FFFFFF,2
Style: Ann,&H0000FFFF,2
[Events]
Format: Start, End, Style, Text
Dialogue: 0:00:01.00,0:00:02.00,${style},${text}
`;
const yellow = "c.colorffff00";

describe("colours of subtitles stay", () => {
  it.each([
    ["a class of WebVTT", vtt("::cue(.ann) { color: #ff0 }", "<c.loud.ann>a</c> b"), `<c.loud.ann.colorffff00>a</c> b`],
    [
      "one of several rules",
      vtt("::cue(c.x), ::cue(v.ann) {\n font-size: 2em;\n color: rgb(255, 255, 0);\n}\n/* } */", "<v.ann Ann>a"),
      "<v.ann.colorffff00 Ann>a",
    ],
    ["a class that is a colour", vtt("::cue(.ann) { color: red }", "<c.yellow>a</c>"), "<c.yellow.colorffff00>a</c>"],
    [
      "SubRip",
      srt('<i><font face="x" color="#FFFF00">a</font></i> <font size="3">b</font>'),
      `<i><${yellow}>a</c></i> b`,
    ],
    [
      "a colour within another",
      srt("<font color=red>a <font color='yellow'>b</font></font>"),
      `<c.colorff0000>a <${yellow}>b</c></c>`,
    ],
    [
      "TTML",
      ttml('white <span style="ann">a</span><span tts:color="#ffff00ff"><span tts:color="white">b</span></span>'),
      `white <${yellow}>a</c>b`,
    ],
    ["SubStation Alpha", ass("{\\i1\\c&H00FFFF&}a{\\c} b{\\i0}"), `<i><${yellow}>a</c> b</i>`],
    ["a style of SubStation Alpha", ass("a {\\1c&HFFFFFF&}b{\\r}c", "Ann"), `<${yellow}>a </c>b<${yellow}>c</c>`],
  ])("from %s", (_, subtitles, text) => {
    expect(textOf(subtitles)).toEqual([text]);
  });

  it("from WebVTT in MP4", () => {
    const reader = createMp4TextReader();
    reader.read(textInit("wvtt", 0, "WEBVTT\n\nSTYLE\n::cue(.ann) { color: yellow }"));
    const [cue] = reader.read(textSegment(0, [{ ms: 1000, data: vttSample("<c.ann>a</c>") }]));
    expect(cue?.text).toBe("<c.ann.colorffff00>a</c>");
  });

  it.each([
    [
      "no colour",
      vtt("::cue(.ann) { color: url(http://example.com/); background: red }", "<c.ann>a</c>"),
      "<c.ann>a</c>",
    ],
    ["no class", vtt("::cue(#ann), ::cue(.a.b), ::cue { color: red }", "<c.a>a</c>"), "<c.a>a</c>"],
    ["a comment", vtt("/* ::cue(.ann) { color: red } */", "<c.ann>a</c>"), "<c.ann>a</c>"],
    ["a word that is no colour", srt('<font color="loud">a</font>'), "a"],
    ["what only looks like a colour", ass("{\\clip(1,1,2,2)\\c&Hxyz&}a"), "a"],
  ])("but %s is not one", (_, subtitles, text) => {
    expect(textOf(subtitles)).toEqual([text]);
  });

  it("in WebVTT, which says what they are, and in SubRip", () => {
    const { cues } = readSubtitles(
      Buffer.from(srt('<font color="yellow"><b>a</b> b</font> c <font color="#abc">d</font>')),
    );
    expect([...writeWebVtt(cues)].join("")).toBe(
      "WEBVTT\n\nSTYLE\n::cue(.colorffff00) { color: #ffff00; }\n::cue(.coloraabbcc) { color: #aabbcc; }\n" +
        `\n00:00:01.000 --> 00:00:02.000\n<${yellow}><b>a</b> b</c> c <c.coloraabbcc>d</c>\n`,
    );
    expect([...writeSubRip(cues)].join("")).toBe(
      srt('<font color="#ffff00"><b>a</b></font><font color="#ffff00"> b</font> c <font color="#aabbcc">d</font>'),
    );
    expect([...writeWebVtt(readSubtitles(Buffer.from(srt("a"))).cues)].join("")).not.toContain("STYLE");
  });
});
