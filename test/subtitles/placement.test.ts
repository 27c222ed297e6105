import { describe, expect, it } from "vitest";
import { readSubtitles } from "../../src/subtitles/read.ts";
import { writeSubRip, writeWebVtt } from "../../src/subtitles/write.ts";

const cuesOf = (text: string) => readSubtitles(Buffer.from(text)).cues;
const settingsOf = (text: string) => cuesOf(text).map(({ settings }) => settings);

const ttml = (layout: string, body: string, attributes = "") =>
  `<tt xmlns="http://www.w3.org/ns/ttml" xmlns:tts="http://www.w3.org/ns/ttml#styling" ${attributes}>` +
  `<head><styling><style xml:id="centre" tts:textAlign="center"/><style xml:id="high" tts:origin="10% 5%" tts:extent="80% 20%"/></styling>` +
  `<layout>${layout}</layout></head><body>${body}</body></tt>`;
const region = (attributes: string, children = "") => `<region xml:id="r" ${attributes}>${children}</region>`;
const paragraph = (attributes = 'region="r"', text = "x") => `<p begin="1s" end="2s" ${attributes}>${text}</p>`;

describe("regions of TTML become settings of WebVTT cues:", () => {
  it.each([
    ["at the top", 'tts:origin="10% 10%" tts:extent="80% 20%" tts:textAlign="center"', "line:2"],
    ["at the top by a style", 'style="high centre"', "line:1"],
    [
      "in the upper half, with text at its lower end",
      'tts:origin="0% 0%" tts:extent="100% 50%" tts:displayAlign="after"',
      "line:7",
    ],
    ["in the middle", 'tts:displayAlign="center"', "line:8"],
    [
      "in the centre, with an alignment that there is not",
      'tts:displayAlign="center" tts:textAlign="valueOf"',
      "line:8",
    ],
    ["at the upper end of a region with a value that there is not", 'tts:displayAlign="constructor"', "line:0"],
    [
      "on the left",
      'tts:origin="5% 80%" tts:extent="40% 15%" tts:displayAlign="after" tts:textAlign="left"',
      "position:5% size:40% align:left",
    ],
    [
      "on the right",
      'tts:origin="55% 80%" tts:extent="40% 15%" tts:displayAlign="after" tts:textAlign="end"',
      "position:95% size:40% align:right",
    ],
    [
      "on the right, with centred text",
      'tts:origin="60% 80%" tts:extent="40% 15%" tts:displayAlign="after" tts:textAlign="center"',
      "position:80% size:40%",
    ],
    [
      "from right to left",
      'tts:origin="10% 10%" tts:extent="80% 20%" tts:textAlign="start" tts:direction="rtl"',
      "line:2 position:90% size:80% align:right",
    ],
    ["in cells", 'ttp:x="" tts:origin="4c 1.5c" tts:extent="24c 3c"', "line:2"],
    ["of a position", 'tts:position="center top" tts:extent="80% 20%"', "line:0"],
    ["of a position in percent", 'tts:position="50% 25%" tts:extent="80% 20%"', "line:3"],
    [
      "in columns",
      'tts:origin="80% 10%" tts:extent="15% 80%" tts:writingMode="tbrl"',
      "vertical:rl line:0 align:start",
    ],
    [
      "in columns on the left",
      'tts:origin="5% 10%" tts:extent="15% 80%" tts:writingMode="tbrl"',
      "vertical:rl align:start",
    ],
  ])("%s", (_, attributes, settings) => {
    expect(settingsOf(ttml(region(attributes), paragraph()))).toEqual([settings]);
  });

  it.each([
    ["at the bottom", 'tts:origin="10% 80%" tts:extent="80% 15%" tts:displayAlign="after" tts:textAlign="center"'],
    ["as large as the picture, with text at its lower end", 'tts:displayAlign="after"'],
    ["of the lowest lines, with text at its upper end", 'tts:origin="10% 82%" tts:extent="80% 10%"'],
    ["that says nothing of its place", 'tts:backgroundColor="black" style="centre"'],
  ])("but not one %s", (_, attributes) => {
    expect(settingsOf(ttml(region(attributes), paragraph()))).toEqual([""]);
  });

  it.each([
    'tts:origin="NaN NaN"',
    'tts:origin="10% 1000000000%"',
    'tts:origin="10% -5%"',
    'tts:origin="10%"',
    'tts:origin="10px 10px"',
    'tts:extent="0% 0%"',
    'tts:extent="80% Infinity%"',
    'tts:origin="100% 100%"',
    'tts:position="left 10% top 10%"',
    'tts:position="900% 10%"',
    `tts:origin="${"9".repeat(100_000)}% 0%"`,
  ])("nor one that is not in the picture: %.60s", (attributes) => {
    expect(settingsOf(ttml(region(attributes), paragraph()))).toEqual([""]);
  });

  it("with pixels of the picture that the document states", () => {
    const document = ttml(
      region('tts:origin="192px 108px" tts:extent="1536px 200px"'),
      paragraph(),
      'tts:extent="1920px 1080px"',
    );
    expect(settingsOf(document)).toEqual(["line:2"]);
  });

  it("by the nearest element that names one, with styles within the region", () => {
    const regions =
      '<region xml:id="top"><style tts:origin="10% 10%" tts:extent="80% 20%"/><style tts:textAlign="center"/></region>' +
      region('tts:displayAlign="after" tts:textAlign="center"');
    const body =
      `<div region="top">${paragraph("", "a")}${paragraph('region="r"', "b")}${paragraph('tts:textAlign="left"', "c")}</div>` +
      `${paragraph("", "d")}${paragraph('region="none"', "e")}`;
    expect(cuesOf(ttml(regions, body)).map(({ text, settings }) => [text, settings])).toEqual([
      ["a", "line:2"],
      ["b", ""],
      ["c", "line:2 position:10% size:80% align:left"],
      ["d", ""],
      ["e", ""],
    ]);
  });

  it("in what is written as WebVTT, and not in SubRip", () => {
    const cues = cuesOf(ttml(region('style="high centre"'), paragraph()));
    expect([...writeWebVtt(cues)].join("")).toBe("WEBVTT\n\n00:00:01.000 --> 00:00:02.000 line:1\nx\n");
    expect([...writeSubRip(cues)].join("")).toBe("1\n00:00:01,000 --> 00:00:02,000\nx\n");
  });
});

describe("alignments of SubStation Alpha become settings:", () => {
  const ass = (style: string, text: string, section = "[V4+ Styles]") =>
    `[Script Info]\n${section}\nFormat: Name, Fontname, Alignment\nStyle: ${style}\n[Events]\n` +
    `Format: Start, End, Style, Text\nDialogue: 0:00:01.00,0:00:02.00,Sign,${text}\n`;

  it.each([
    ["Sign,Arial,2", "x", ""],
    ["Sign,Arial,8", "x", "line:1"],
    ["Sign,Arial,5", "one\\Ntwo", "line:7"],
    ["Sign,Arial,1", "x", "position:5% size:90% align:left"],
    ["Sign,Arial,9", "x", "line:1 position:95% size:90% align:right"],
    ["Sign,Arial,2", "{\\i1\\an8}x", "line:1"],
    ["Sign,Arial,8", "{\\an2}x{\\an8}", ""],
    ["Sign,Arial,2", "{\\a6}x", "line:1"],
    ["Sign,Arial,2", "{\\alpha&H80&}x", ""],
    ["Sign,Arial,99", "x", ""],
    ["Other,Arial,8", "x", ""],
  ])("style %s, text %s", (style, text, settings) => {
    expect(settingsOf(ass(style, text))).toEqual([settings]);
  });

  it.each([
    // The top left corner of the text.
    ["{\\an7\\pos(640,72)}x", "line:2 position:50% size:50% align:left"],
    ["{\\pos(640,700)}x", ""],
    // Its middle.
    ["{\\an5\\pos(1152,360)}x", "line:8 position:90% size:20%"],
    // Text near an end has room for words.
    ["{\\an5\\pos(1276,360)}x", "line:8 position:90% size:20%"],
    ["{\\an7\\pos(1270,360)}x", "line:8 position:80% size:20% align:left"],
    ["{\\an9\\pos(10,360)}x", "line:8 position:20% size:20% align:right"],
    ["{\\an9\\pos(320,360)}x", "line:8 position:25% size:25% align:right"],
    ["{\\an3\\move(1216, 144, 1300, 144)}x", "line:2 position:95% size:95% align:right"],
    ["{\\an8\\pos(-20,10)}x", ""],
    ["{\\an8\\pos(NaN,10)}x", "line:1"],
    ["{\\an8\\pos(1e9,99999999999)}x", "line:1"],
    ["{\\an8\\pos(..,9)}x", ""],
  ])("of a point of the picture: %s", (text, settings) => {
    const sized = ass("Sign,Arial,2", text).replace("[Script Info]", "[Script Info]\nPlayResX: 1280\nPlayResY: 720");
    expect(settingsOf(sized)).toEqual([settings]);
  });

  it("of a picture whose size is not stated, or only one side of it", () => {
    const text = "{\\an7\\pos(192,144)}x";
    const settings = (info: string) =>
      settingsOf(ass("Sign,Arial,2", text).replace("[Script Info]", `[Script Info]\n${info}`));
    expect(settings("")).toEqual(["line:8 position:50% size:50% align:left"]);
    expect(settings("PlayResY: 288")).toEqual(settings(""));
    expect(settings("PlayResX: 384\nPlayResY: 0")).toEqual(settings(""));
  });

  it("those of version 4 with numbers of their own", () => {
    expect(settingsOf(ass("Sign,Arial,6", "x", "[V4 Styles]"))).toEqual(["line:1"]);
    expect(settingsOf(ass("Sign,Arial,10", "x", "[V4 Styles]"))).toEqual(["line:8"]);
  });

  it("in SubRip too", () => {
    const text =
      "1\n00:00:01,000 --> 00:00:02,000 X1:40 X2:600 Y1:20 Y2:50\n{\\an8}One\n\n2\n00:00:03,000 --> 00:00:04,000\nTwo\n";
    expect(cuesOf(text).map((cue) => [cue.text, cue.settings])).toEqual([
      ["One", "line:1"],
      ["Two", ""],
    ]);
  });
});

describe("regions of WebVTT become settings of their cues:", () => {
  const vtt = (definition: string, settings: string) =>
    `WEBVTT\n\nREGION\n${definition}\n\nNOTE\nid:other\n\nSTYLE\n::cue { color: red }\n\n00:01.000 --> 00:02.000 ${settings}\nx\n`;
  const top = "id:top width:60%\nlines:3 regionanchor:50%,0% viewportanchor:50%,10%";

  it.each([
    [top, "region:top", "line:3"],
    [top, "region:top align:left", "line:3 align:left"],
    [top, "align:left", "align:left"],
    [top, "region:top line:0", "line:0"],
    [top, "region:other", ""],
    ["id:left width:40% viewportanchor:0%,90%", "region:left", "position:20% size:40%"],
    ["id:left width:40% viewportanchor:0%,90%", "size:50% region:left", "position:20% size:50%"],
    ["id:usual", "region:usual", ""],
    ["id:bad width:NaN% viewportanchor:0%,0% regionanchor:0%,0%", "region:bad", ""],
    ["id:bad lines:-3 viewportanchor:0%,0%", "region:bad", ""],
    ["id:bad lines:3 viewportanchor:0%,1000000000%", "region:bad", ""],
  ])("%s, %s", (definition, settings, expected) => {
    expect(settingsOf(vtt(definition, settings))).toEqual([expected]);
  });
});
