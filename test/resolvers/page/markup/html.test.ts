import { array, assert, constant, constantFrom, nat, oneof, property } from "fast-check";
import { describe, expect, it } from "vitest";
import { HtmlScanner } from "../../../../src/resolvers/page/markup/html.ts";
import type { HtmlSink } from "../../../../src/resolvers/page/markup/html-sink.ts";

/** Returns everything that a scanner reports of `chunks`, with runs of text joined. */
function scan(chunks: readonly string[]): string[] {
  const events: string[] = [];
  let text = "";
  const flush = () => {
    if (text !== "") events.push(`text ${text}`);
    text = "";
  };
  const sink: HtmlSink = {
    elements: new Set(),
    wantsAllTags: true,
    wantsText: true,
    open({ name, source, hasMicrodata, isForeign }) {
      flush();
      events.push(`open ${name}|${source}|${hasMicrodata}|${isForeign}`);
      return true;
    },
    close(name) {
      flush();
      events.push(`close ${name}`);
    },
    text(chunk) {
      text += chunk;
    },
  };
  const scanner = new HtmlScanner(sink);
  for (const chunk of chunks) scanner.write(chunk);
  scanner.end();
  flush();
  return events;
}

const constructs = [
  `<p class="a > b" id='c"d' hidden>text &amp; more</p >`,
  `<meta itemprop=name content=x=y>`,
  `<!-- a <b> -- > c -->after<!--><i>in</i><!---->`,
  `<script>if (a</b) "</scr" + "ipt>"; <!-- </SCRIPT >done`,
  `<title>a <b> c</title/><textarea><p></textarea>`,
  `<svg viewBox="0"><title>icon</title><style/><g/></svg>`,
  `<!DOCTYPE html><?xml x?></ odd><![CDATA[ x ]]>`,
  `a < b <3 <> </> <-`,
  `<a href=/x/?a="b>c</a><br/><IMG SRC=x ITEMSCOPE>`,
  `<div\n data-x\t=\n"1" itemScope\nitemProp = 'p'>é😀</div>`,
];

describe("the HTML scanner", () => {
  it("reports tags, raw text and text, and nothing within comments", () => {
    expect(scan([`<P A="1>2">x<!-- <q> --><Script>a<b></script><br/>y`])).toEqual([
      'open p| A="1>2"|false|false',
      "text x",
      "open script||false|false",
      "text a<b>",
      "close script",
      "open br|/|false|false",
      "text y",
    ]);
  });

  it("recognizes microdata by attribute names, not by values", () => {
    const hasMicrodata = (tag: string) => scan([tag])[0]?.split("|")[2];
    expect(hasMicrodata(`<a class="itemprop" href=itemscope>`)).toBe("false");
    expect(hasMicrodata(`<a itemscope>`)).toBe("true");
    expect(hasMicrodata(`<a class="x"itemprop=y>`)).toBe("true");
  });

  it.each(constructs)("finds the same wherever a chunk ends: %j", (construct) => {
    const filler = `<p>${"x".repeat(65_536)}`;
    const whole = scan([filler + construct + filler]);
    for (let cut = 0; cut <= construct.length; cut++) {
      const chunks = [filler + construct.slice(0, cut), construct.slice(cut) + filler];
      expect(scan(chunks)).toEqual(whole);
    }
  });

  it("finds the same for any chunks of any mixture", () => {
    const part = oneof(constantFrom(...constructs), constant("y".repeat(9_000)));
    assert(
      property(array(part, { minLength: 20, maxLength: 60 }), array(nat(200_000), { maxLength: 12 }), (parts, cuts) => {
        const html = parts.join("");
        const ends = [...cuts.filter((cut) => cut < html.length), html.length].toSorted((a, b) => a - b);
        const chunks = ends.map((end, index) => html.slice(ends[index - 1] ?? 0, end));
        expect(scan(chunks)).toEqual(scan([html]));
      }),
      { numRuns: 50 },
    );
  });

  it("ignores a tag that is too long, in one chunk or in many", () => {
    const html = `<a x="${"y".repeat(300_000)}">text<b>`;
    expect(scan([html])).toEqual(["text text", "open b||false|false"]);
    expect(scan(html.match(/[^]{1,7000}/g) ?? [])).toEqual(scan([html]));
  });
});
