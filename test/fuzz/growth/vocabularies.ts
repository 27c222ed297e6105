import { blocks, fill, type Grow, list } from "./grow.ts";

const jsonLd = (source: string) => `<script type="application/ld+json">${source}</script>`;

/** What search engines and networks read. */
export const vocabularies: Record<string, Grow> = {
  "og:video": (n) =>
    list((i) => `<meta property="og:video" content="/${i}"><meta property="og:video:type" content="text/html">`, n),
  "blank og:video": (n) => fill(`<meta property="og:video" content="${fill(" ", 1_000)}">`, n),
  "twitter:player": (n) => list((i) => `<meta name="twitter:player" content="/${i}">`, n),
  tags: (n) => list((i) => `<meta property="og:video:tag" content="${i}">`, n),
  keywords: (n) => blocks(n, 250_000, (l) => `<meta name="keywords" content="${list((i) => `${i},`, l)}">`),
  "tags in a description": (n) =>
    blocks(n, 200_000, (l) => jsonLd(`{"@type":"VideoObject","description":"${fill("<br ", l)}"}`)),
  "deep microdata": (n) => fill("<div itemscope itemprop=a>", n),
  "microdata in one item": (n) =>
    `<div itemscope itemtype=https://schema.org/VideoObject>${fill("<i itemprop=name>a</i>", n)}`,
  "nested texts of microdata": (n) =>
    `<div itemscope>${blocks(n, 20_000, (l) => fill("<b itemprop=a>", 300) + fill("text ", l) + fill("</b>", 100))}`,
  "names of microdata": (n) =>
    blocks(n, 200_000, (l) => `<div itemscope><i itemprop="${list((i) => `a${i} `, l)}">text</i></div>`),
  "types of microdata": (n) =>
    blocks(n, 200_000, (l) => `<div itemscope itemtype="${list((i) => `a/Article${i} `, l)}"></div>`),
  "items of microdata": (n) => fill(`<div itemscope itemtype=a/VideoObject><meta itemprop=name content=a></div>`, n),
  "end tags in microdata": (n) => `<div itemscope>${fill("<p>", 500)}${fill("</x></p>", n)}`,
};
