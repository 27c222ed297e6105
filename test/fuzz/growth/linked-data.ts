import { blocks, fill, type Grow, half, list } from "./grow.ts";

const jsonLd = (source: string) => `<script type="application/ld+json">${source}</script>`;
/** Longer blocks are ignored. */
const block = 1_000_000;
/** References to another thing of the block. */
const refs = (id: string, length: number) => fill(`{"@id":"${id}"},`, length).slice(0, -1);

/** Blocks of JSON-LD. */
export const linkedData: Record<string, Grow> = {
  "nested arrays": (n) => blocks(n, block, (l) => jsonLd(fill("[", half(l)) + fill("]", half(l)))),
  "nested objects": (n) => blocks(n, block, (l) => jsonLd(`${fill('{"a":', l)}1${fill("}", l / 5)}`)),
  "nested graphs": (n) =>
    blocks(n, block, (l) => jsonLd(`${fill('{"@graph":[{"name":"a"},', l)}1${fill("]}", l / 12)}`)),
  "texts without an end": (n) => blocks(n, block, (l) => jsonLd(`{"${fill('\\"', l)}}`)),
  "texts without an end that end in a backslash": (n) => blocks(n, block, (l) => jsonLd(`{"${fill('\\"', l)}\\`)),
  "texts with entities that become quotes": (n) => blocks(n, block, (l) => jsonLd(`{"${fill("\\&quot;", l)}&bsol;}`)),
  "comments without an end": (n) => blocks(n, block, (l) => jsonLd(`{${fill("/*", l)}`)),
  "comments that nearly end": (n) => blocks(n, block, (l) => jsonLd(`{/*${fill("**", l)}`)),
  commas: (n) => blocks(n, block, (l) => jsonLd(`{${fill(", ", l)}`)),
  "commas before white space": (n) => blocks(n, block, (l) => jsonLd(`{${fill(`,${fill(" ", 1_000)}`, l)}`)),
  wrappers: (n) => blocks(n, block, (l) => jsonLd(fill("<![CDATA[", l))),
  things: (n) =>
    blocks(n, block, (l) => jsonLd(`[${list((i) => `{"@type":"VideoObject","name":"${i}","url":"/${i}"},`, l)}{}]`)),
  "things in lists": (n) => blocks(n, block, (l) => jsonLd(`[${fill(`[${fill('{"name":"x"},', 1_000)}{}],`, l)}{}]`)),
  "item lists": (n) =>
    blocks(n, block, (l) =>
      jsonLd(`[${list((i) => `{"@type":"ItemList","itemListElement":["/${i}",{"url":"/a"}]},`, half(l))}
      {"mainEntity":{"@type":"ItemList","itemListElement":[${list((i) => `{"@type":"ListItem","url":"/${i}"},`, half(l))}{}]}}]`),
    ),
  "item lists of the same item": (n) =>
    blocks(n, block, (l) =>
      jsonLd(
        `[{"@id":"a","@type":"VideoObject","name":"${fill("x", half(l))}"},{"@type":"ItemList","itemListElement":[${list((i) => `{"@type":"ListItem","url":"/${i}","item":{"@id":"a"}},`, half(l))}{}]}]`,
      ),
    ),
  pages: (n) =>
    blocks(n, block, (l) =>
      jsonLd(`[${list((i) => `{"@type":"Article","description":"${fill(" ", 50)}","url":"/${i}"},`, l)}{}]`),
    ),
  "the same blank author": (n) =>
    blocks(n, block, (l) =>
      jsonLd(
        `[{"@id":"a","name":"${fill(" ", half(l))}"},${fill(`{"@type":"Article","author":[${refs("a", 1_000)}]},`, half(l))}{}]`,
      ),
    ),
  "the same author at a URL": (n) =>
    blocks(n, block, (l) =>
      jsonLd(
        `[{"@id":"a","name":"http://${fill(" a", Math.min(2_000, half(l)))}"},${fill(`{"@type":"Article","author":[${refs("a", 1_000)}]},`, half(l))}{}]`,
      ),
    ),
  "names of the same author": (n) =>
    blocks(n, block, (l) =>
      jsonLd(
        `[{"@id":"a","name":[${fill('"",', half(l))}""]},${fill(`{"@type":"Article","author":[${refs("a", 1_000)}]},`, half(l))}{}]`,
      ),
    ),
  "types of actions": (n) =>
    blocks(n, block, (l) => {
      const part = Math.floor(l / 3);
      return jsonLd(
        `[{"@id":"c","@type":[${fill('"a",', part)}"a"],"x":1},{"@id":"b","interactionType":[${refs("c", part)}]},{"@type":"VideoObject","contentUrl":"/1.mp4","interactionStatistic":[${refs("b", part)}]}]`,
      );
    }),
  "pages of things": (n) =>
    blocks(n, block, (l) =>
      jsonLd(
        `[{"@id":"a","x":1,"url":"/${fill("a", Math.min(8_000, half(l)))}"},${fill(`{"@type":"VideoObject","name":"a","mainEntityOfPage":[${refs("a", 1_000)}]},`, half(l))}{}]`,
      ),
    ),
  "encodings of a medium": (n) =>
    blocks(n, block, (l) =>
      jsonLd(
        `[{"@id":"a","contentUrl":"/${fill("a", Math.min(8_000, half(l)))}","width":[${fill('"a",', 1_000)}1]},{"@type":"VideoObject","encoding":[${refs("a", half(l))}]}]`,
      ),
    ),
  "images of pages": (n) =>
    blocks(n, block, (l) =>
      jsonLd(
        `[{"@id":"a","x":1,"url":"/${fill("a", Math.min(8_000, half(l)))}"},${fill(`{"@type":"Article","image":[${refs("a", 1_000)}]},`, half(l))}{}]`,
      ),
    ),
  "keywords of pages": (n) =>
    blocks(n, block, (l) => jsonLd(`[${fill(`{"@type":"Article","keywords":"${fill(",", 1_000)}"},`, l)}{}]`)),
  "URLs on a long base": (n) =>
    `<base href="/${fill("b", Math.min(8_000, half(n)))}/">${blocks(half(n), block, (l) => jsonLd(`[${list((i) => `{"@type":"VideoObject","name":"${i}","url":"a","embedUrl":"b","@id":"c${i}","mainEntityOfPage":["d","e"]},`, l)}{}]`))}`,
  escapes: (n) => blocks(n, block, (l) => jsonLd(`{"@type":"VideoObject","name":"${fill("\\u0026", l)}"}`)),
  entities: (n) => blocks(n, block, (l) => jsonLd(`{"@type":"VideoObject","name":"${fill("&amp;", l)}"}`)),
};
