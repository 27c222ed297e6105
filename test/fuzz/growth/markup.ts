import { blocks, fill, type Grow, half, list, script } from "./grow.ts";

/** Tags and their attributes. */
export const markup: Record<string, Grow> = {
  text: (n) => fill("Otters cross the weir. ", n),
  "angle brackets": (n) => fill("<", n),
  "tags without an end": (n) => fill("<a ", n),
  "end tags without an end": (n) => fill("</a ", n),
  "an attribute without an end": (n) => `<a b="${fill("c", n)}`,
  "attributes with quotes without an end": (n) => `<video ${fill(`a="`, n)}`,
  attributes: (n) => `<video ${list((i) => `a${i}=1 `, n)}>`,
  "one attribute again": (n) => `<video ${fill("a=1 ", n)}>`,
  "white space after names": (n) => `<video a${fill(" ", n)}b>`,
  "white space after equals signs": (n) => `<video a=${fill(" ", n)}>`,
  "white space between names": (n) => `<video ${fill("a          ", n)}>`,
  "references of characters": (n) =>
    blocks(n, 250_000, (l) => `<meta name=description content="${fill("&#x26;", l)}">`),
  "starts of references": (n) => blocks(n, 250_000, (l) => `<meta name=description content="${fill("&notit", l)}">`),
  "comments without an end": (n) => fill("<!--", n),
  "comments that nearly end": (n) => `<!--${fill("--", n)}`,
  "raw text that nearly ends": (n) => `<script>${fill("</scrip</", n)}`,
  "svg in svg": (n) => fill("<svg><title>a", n),
  titles: (n) => fill("<title>a</title>", n),
  "a long title": (n) => `<title>${fill(" &amp; a", n)}</title>`,
  metas: (n) => list((i) => `<meta property="og:image" content="/${i}">`, n),
  "images with their widths": (n) =>
    list(
      (i) => `<meta property="og:image" content="/${i}"><meta property="og:image:width" content="${1 + (i % 5_000)}">`,
      n,
    ),
  "names of metas": (n) => `<meta property="${fill("og:type ", half(n))}" content="${fill(" ", half(n))}">`,
  "names of several metas": (n) =>
    blocks(n, 40_000, (l) => `<meta property="${fill("og:type ", half(l))}" content="${fill(" a", half(l))}">`),
  "languages of metas": (n) => fill(`<meta http-equiv="content-language" content="en">`, n),
  "declarations of an encoding": (n) => fill("<meta <meta charset ", n),
  "relations of links": (n) => fill(`<link rel="${fill("canonical ", 200)}" href="/a">`, n),
  "links to manifests": (n) =>
    list((i) => `<link rel="alternate preload" type="application/x-mpegurl" href="/${i}.m3u8">`, n),
  players: (n) => fill(`<video src=/a.mp4><source src=/b.mp4 size=720><track src=/c.vtt srclang=en>`, n),
  "sources of a player": (n) => `<video ${list((i) => `a${i}=1 `, 800)}>${fill("<source data-x>", n)}`,
  "tracks of a player": (n) => `<video src=/a.mp4>${list((i) => `<track src=/${i}.vtt srclang=en>`, n)}`,
  frames: (n) => list((i) => `<iframe src="/embed/${i}" allowfullscreen></iframe>`, n),
  "attributes of custom elements": (n) => fill(`<x-player ${list((i) => `a${i}="/${i}.mp4" `, 500)}>`, n),
  "relative URLs on a long base": (n) =>
    `<base href="/${fill("b", Math.min(8_000, half(n)))}/">${script(`x=[${list((i) => `{src:"${i}.mp4"},`, half(n))}]`)}`,
};
