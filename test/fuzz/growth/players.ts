import { blocks, fill, type Grow, half, list, script } from "./grow.ts";

const medium = script('x={src:"/1.mp4"}');
const state = (text: string) => script(`x=${text}`);
/** Objects and tags that players read. */
export const players: Record<string, Grow> = {
  "unnamed URLs": (n) => state(`{${fill('a:"https://a/1.mp4",', n)}}`),
  "different unnamed URLs": (n) =>
    state(`[${blocks(n, 40_000, (l) => `{${list((i) => `a:"https://a/${i}.mp4",`, l)}},`)}]`),
  "URLs in one object": (n) => state(`{${list((i) => `file:"/${i}.mp4",`, n)}}`),
  "URLs in objects in large objects": (n) => {
    const level = fill('a:"x",', Math.min(7_000, n / 100));
    return state(`${`{${level}b:`.repeat(48)}{${list((i) => `src:"/${i}.mp4",`, half(n))}}${"}".repeat(48)}`);
  },
  "objects in large objects": (n) => {
    const level = fill('a:"x",', Math.min(7_000, n / 100));
    return state(`${`{${level}b:`.repeat(48)}{${list((i) => `a${i}:{src:"/${i}.mp4"},`, half(n))}}${"}".repeat(48)}`);
  },
  "objects beside settings": (n) =>
    state(
      `[${blocks(n, 8_000, (l) => `{${fill("loop:true,", half(l))}${list((i) => `a${i}:{src:"/${i % 10}.mp4"},`, half(l))}},`)}]`,
    ),
  "objects beside titles": (n) =>
    state(
      `[${blocks(n, 30_000, (l) => `{${fill(`title:"${fill("a b ", 1_000)}",`, half(l))}${list((i) => `a${i}:{src:"/${i}.mp4"},`, half(l))}},`)}]`,
    ),
  "objects beside ids": (n) =>
    state(
      `[${blocks(n, 20_000, (l) => `{${fill(`id:"aaaa",url:"/a",`, half(l))}${list((i) => `a${i}:{src:"/${i}.mp4"},`, half(l))}},`)}]`,
    ),
  "objects beside durations": (n) =>
    state(
      `[${blocks(n, 20_000, (l) => `{${fill(`duration:"a",`, half(l))}${list((i) => `a${i}:{src:"/${i}.mp4"},`, half(l))}},`)}]`,
    ),
  "objects beside pages at a long URL": (n) => ({
    html: state(`{${fill(`url:"a",`, 200)}${list((i) => `a${i}:{src:"/${i}.mp4"},`, half(n))}}`),
    url: `https://video.example.com/${fill("b", Math.min(8_000, half(n)))}/`,
  }),
  "media in a list": (n) => state(`[${list((i) => `{title:"${i}",duration:${i},src:"/${i}.mp4"},`, n)}]`),
  "media in lists": (n) =>
    state(`[${blocks(n, 5_000, (l) => `[${list((i) => `{title:"${i}",src:"/${i}.mp4"},`, l)}],`)}]`),
  "playlists of WordPress": (n) =>
    blocks(
      n,
      900_000,
      (l) =>
        `<script type="application/json" class="wp-playlist-script">{"tracks":[${list((i) => `{"src":"/${i}.mp4","title":"${i}"},`, l)}{}]}</script>`,
    ),
  "the same medium in a list": (n) => state(`[${fill(`{title:"a",src:"/1.mp4"},`, n)}]`),
  "variants of a medium": (n) => state(`{sources:[${list((i) => `{label:"${i}p",src:"/${i}.mp4"},`, n)}]}`),
  "media by id": (n) => state(`{${list((i) => `id${i}:{title:"${i}",src:"/${i}.mp4"},`, n)}}`),
  nodes: (n) => state(`{edges:[${list((i) => `{node:{title:"${i}",src:"/${i}.mp4"}},`, n)}]}`),
  "labels and URLs": (n) => fill(`<a data-src="${fill("[360p]/1.mp4,", 8_000)}">`, n),
  "URLs one after another": (n) => fill(`<a data-src="${fill("https://a/1.mp4 or ", 8_000)}">`, n),
  tracks: (n) => state(`{src:"/1.mp4",tracks:[${list((i) => `{src:"/${i}.vtt",srclang:"en",kind:"captions"},`, n)}]}`),
  posters: (n) => state(`{src:"/1.mp4",${list((i) => `poster:"/${i}.jpg",`, n)}}`),
  "links to download": (n) => list((i) => `<a download href="/${i}-720p.mp4">`, n),
  "words of links to download": (n) => fill(`<a download href="/${fill("a-720p-", 8_000)}.mp4">`, n),
  "links to play": (n) => list((i) => `<a class="lightbox" href="/${i}.mp4">`, n),
  "tags that are alike": (n) => list((i) => `<div data-src="/${i}.mp4" data-title="${i}"></div>`, n),
  "tags that differ": (n) => list((i) => `<div data-src="/1.mp4" data-a${i}></div>`, n),
  "data in attributes": (n) => fill(`<a data-x='{"file":"/1.mp4"}'>`, n),
  "long data in attributes": (n) => fill(`<a data-x='${fill('{"file":"/1.mp4?&quot;"},', 200_000)}'>`, n),
  "programs in attributes": (n) => fill(`<a x-data="f('/1.mp4')">`, n),
  "variables of plug-ins": (n) => fill(`<embed flashvars="${list((i) => `file${i}=/1.mp4&`, 30_000)}">`, n),
  "variables of frames": (n) => fill(`<iframe src="/e?${list((i) => `file${i}=/1.mp4&`, 30_000)}"></iframe>`, n),
  "parameters of objects": (n) => fill(`<object data="/1.mp4"><param name=src value="/2.mp4"></object>`, n),
  "hidden inputs": (n) => fill(`<input type=hidden name=src value="/1.mp4">`, n),
  "long texts in attributes": (n) => `${medium}${fill(`<a data-a="${fill("a/", 100_000)}" data-src="/1.mp4">`, n)}`,
  "starts of names": (n) => `${fill(`<a data-src="/${fill(".m", 250_000)}">`, n)}${medium}`,
  "names in text": (n) => fill('< "1.mp4" ', n),
  "long names": (n) => script(fill(`x={${fill("adTagURLs", 2_000)}:"/1.mp4"};`, n)),
  "titles that nearly match": (n) =>
    `<title>${fill("a b ", 1_000)}</title>${state(`[${list((i) => `{title:"${fill("a b ", 900)}${i}",src:"/${i}.mp4"},`, n)}]`)}`,
  "ids that nearly match": (n) => ({
    html: state(`[${list((i) => `{id:"${fill("a", 190)}${i}",src:"/${i}.mp4"},`, n)}]`),
    url: `https://video.example.com/${"a".repeat(8_000)}`,
  }),
};
