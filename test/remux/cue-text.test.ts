import { describe, expect, it } from "vitest";
import { readCueText } from "../../src/remux/cue-text.ts";

describe("the text of a cue", () => {
  it.each([
    ["plain\ntwo lines", "plain\ntwo lines", []],
    [
      "<b>bold</b> and <i>it<u>both</u></i>",
      "bold and itboth",
      [
        [0, 4, 1],
        [9, 11, 2],
        [11, 15, 6],
      ],
    ],
    ["<v Fred>Hi</v> <c.loud>there</c> <00:00:01.000>now", "Hi there now", []],
    ["<ruby>漢<rt>kan</rt>字<rt><i>ji</i></ruby> 2</rt>", "漢(kan)字(ji) 2", [[8, 10, 2]]],
    ["&eacute;&NBSP;&frac12; &Eacute; &nosuch; AT&T; &amp;lt;", "é\u00a0½ É &nosuch; AT&T; &lt;", []],
    ["a &lt;b&gt; &amp; c&nbsp;&#8364;&#x20AC;", "a <b> & c\u00a0€€", []],
    ["1 < 2 & 3 &bogus; &", "1 < 2 & 3 &bogus; &", []],
    ["<i>🎬", "🎬", [[0, 1, 2]]],
    ["</i></b>x<b></b>", "x", []],
    ["&#0;&#xd800;&#x110000;x", "x", []],
  ])("of %j is %j", (payload, text, styles) => {
    const read = readCueText(payload);
    expect(read.text).toBe(text);
    expect(read.styles.map(({ start, end, faces }) => [start, end, faces])).toEqual(styles);
  });

  it.each([
    [
      "<c.colorff0000>a <b>b</b></c> c",
      [
        [0, 2, "ff0000"],
        [2, 3, "ff0000"],
      ],
    ],
    [
      "<c.x.colorFF0000.y>a<c.color0000ff>b</c>c",
      [
        [0, 1, "ff0000"],
        [1, 2, "0000ff"],
        [2, 3, "ff0000"],
      ],
    ],
    ["<v.color00ff00 Ann>a<c.colorffffff>b", [[0, 1, "00ff00"]]],
    ["<c.colorff0000x>a<c.x> .color00ff00 b</c><i.color12345>c</i>", []],
  ])("has the colours of %j", (payload, colors) => {
    const { styles } = readCueText(payload);
    expect(styles.filter(({ color }) => color !== null).map(({ start, end, color }) => [start, end, color])).toEqual(
      colors,
    );
  });

  it("is read in time linear in its length", () => {
    for (const part of ["<", "&", "<i>", "&#", "</", "<b>x", "a", "<c.colorff0000>x", "<c></b>"]) {
      expect(readCueText(`<${part.repeat(200_000)}`).text.length).toBeLessThanOrEqual(400_001);
    }
  });
});
