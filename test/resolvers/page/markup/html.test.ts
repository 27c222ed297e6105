import { describe, expect, it } from "vitest";
import { type HtmlSink, scanHtml } from "../../../../src/resolvers/page/markup/html.ts";

/** Returns everything that is reported of `html`, with runs of text joined. */
function scan(html: string): string[] {
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
    text(part) {
      text += part;
    },
    rawText(all) {
      text += all;
    },
  };
  scanHtml(html, sink);
  flush();
  return events;
}

describe("the HTML scanner", () => {
  it("reports tags, raw text and text, and nothing within comments", () => {
    expect(scan(`<P A="1>2">x<!-- <q> --><Script>a<b></script><br/>y`)).toEqual([
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
    const hasMicrodata = (tag: string) => scan(tag)[0]?.split("|")[2];
    expect(hasMicrodata(`<a class="itemprop" href=itemscope>`)).toBe("false");
    expect(hasMicrodata(`<a itemscope>`)).toBe("true");
    expect(hasMicrodata(`<a class="x"itemprop=y>`)).toBe("true");
  });

  it.each([
    [`<!-- a <b> -- > c -->after<!--><i>in</i><!---->`, ["text after", "open i||false|false", "text in", "close i"]],
    [
      `<script>if (a</b) "</scr" + "ipt>"; <!-- </SCRIPT >done`,
      ["open script||false|false", `text if (a</b) "</scr" + "ipt>"; <!-- `, "close script", "text done"],
    ],
    [`<title>a <b> c</title/>d`, ["open title||false|false", "text a <b> c", "close title/", "text d"]],
    [
      `<svg viewBox="0"><title>icon</title><style/><g/></svg>`,
      [
        `open svg| viewBox="0"|false|true`,
        "open title||false|true",
        "text icon",
        "close title",
        "open style|/|false|true",
        "open g|/|false|true",
        "close svg",
      ],
    ],
    [`<!DOCTYPE html><?xml x?></ odd><![CDATA[ x ]]>a`, ["text a"]],
    [`a < b <3 <> </> <-`, ["text a < b <3 <>  <-"]],
    [`<a href=/x/?a="b>c</a>`, [`open a| href=/x/?a="b|false|false`, "text c", "close a"]],
    [`a<b x="`, ["text a"]],
    [`a<textarea>b</texta`, ["text a", "open textarea||false|false", "text b</texta"]],
  ])("tells tags, comments, raw text and text apart in %s", (html, found) => {
    expect(scan(html)).toEqual(found);
  });

  it("ignores a tag that is too long", () => {
    expect(scan(`<a x="${"y".repeat(300_000)}">text<b>`)).toEqual(["text text", "open b||false|false"]);
  });
});
