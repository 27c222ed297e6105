import { jsonLd } from "./saved-client.ts";

export const MiB = 1024 * 1024;
const fill = (text: string, length = 2 * MiB) => text.repeat(length / text.length);
const keys = (count: number) => Array.from({ length: count }, (_, n) => `"k${n}":1`).join(",");
const html = "text/html; charset=utf-8";
const hls = "application/vnd.apple.mpegurl";
const dash = "application/dash+xml";
const article = {
  "@type": "Article",
  image: Array<string>(500).fill("a"),
  keywords: fill(",", 5_000),
};

/** By name: the type and the text of a page that is expensive to read. */
export const pages: Record<string, [type: string, text: string]> = {
  "angle brackets": [html, fill("<", 4 * MiB)],
  metas: [html, fill('<meta property="og:image" content="/x">')],
  "long metas": [html, fill(`<meta property="og:image" content="/${fill("/", 4_000)}x">`)],
  keywords: [html, fill(`<meta name="keywords" content="${fill(",", 4_000)}">`)],
  relations: [html, fill(`<link rel="${fill("a ", 16_000)}" href=x>`)],
  entities: [html, fill(`<meta name=description content="${fill("&#x26;", 250_000)}">`)],
  "deep microdata": [html, fill('<div itemscope itemtype="VideoObject" itemprop=video>')],
  "deep JSON-LD": [html, fill(jsonLd(`${fill('{"video":', 100_000)}1${fill("}", 11_000)}`))],
  "wide JSON-LD": [html, fill(jsonLd(Array.from({ length: 50 }, () => article)))],
  "long JSON-LD": [html, jsonLd(`["${fill("a", 8 * MiB)}"]`)],
  scripts: [html, fill("<script></script>")],
  "a long script": [html, `<script>${fill('x({a:"b",c:[1,2,/d/]});\n', 8 * MiB)}y={file:"/1.mp4"}`],
  "many media": [html, `<script>x=[${fill('{"file":"/1.mp4","title":"a"},', 4 * MiB)}`],
  "media in one object": [html, `<script>x={${fill('file:"/1.mp4",')}`],
  "a long text with a medium": [html, `<script>x="/1.mp4";y="${fill("\\u0041", 8 * MiB)}"`],
  "data in a text": [html, `<script>x="{${fill('\\"file\\":\\"/1.mp4\\",', MiB - 10)}"`],
  "deep data": [html, `<script>x=${fill('{"a":[')}"/1.mp4"`],
  "data attributes": [html, fill(`<a data-x='{"file":"/1.mp4"}'>`)],
  "long data attributes": [html, fill(`<a data-x='${fill('{"file":"/1.mp4?&quot;"},', 200_000)}'>`)],
  "names in a text": [html, fill('< "1.mp4" ', 4 * MiB)],
  quotes: [html, `<script>x="/1.mp4"${fill("'", 4 * MiB)}`],
  "open brackets": [html, `<script>x="/1.mp4"${fill("[{(", 4 * MiB)}`],
  slashes: [html, `<script>x="/1.mp4"${fill("(/[", 4 * MiB)}`],
  frames: [html, fill(`<iframe src="/embed/1" allowfullscreen></iframe>`)],
  segments: [hls, `#EXTM3U\n${fill("#EXTINF:1,\na\n", 4 * MiB)}`],
  "empty lines": [hls, `#EXTM3U\n${fill("\n", 4 * MiB - 10)}`],
  attributes: [hls, `#EXTM3U\n${fill(`#EXT-X-MEDIA:${fill("A,", 65_000)}\n`)}`],
  "similar names": [
    hls,
    Array.from(
      { length: 2_000 },
      (_, n) => `#EXT-X-MEDIA:TYPE=AUDIO,URI="a",GROUP-ID="${fill("g", 235)}${1_000 + (n % 1_000)}"\n`,
    ).reduce((text, line) => text + line, "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\na\n"),
  ],
  Representations: [
    dash,
    `<MPD><Period><AdaptationSet mimeType="video/mp4" label="${fill(" ", MiB)}">${fill("<Representation/>")}</AdaptationSet></Period></MPD>`,
  ],
};

/** The same, of lists and texts that players write. */
export const listsAndTexts: typeof pages = {
  "lists of values by index": [html, fill(`<script>[{"a":1},{${keys(20_000)}},"/1.mp4"]</script>`)],
  "texts with tags": [html, `<script>x="/1.mp4";${fill('y="<video <source <audio ";', 4 * MiB)}`],
  "texts with quoted names": [html, `<script>x="/1.mp4";${fill(`y="${fill('\\"a\\" ', 8_000)}";`, 4 * MiB)}`],
  "lists of labels": [html, fill(`<a data-src="${fill("[a]/1.mp4,", 8_000)}">`)],
  "starts of names": [html, `${fill(`<a data-src="/${fill(".m", 250_000)}">`)}<script>"/${fill(".m")}"</script>`],
  "names of arguments": [
    html,
    `<script>x=(function(a){return {f:"1.mp4",l:[${fill("a,", MiB / 4 - 1_000)}]}}("/1.mp4"))`,
  ],
  "strings of arguments": [
    html,
    `<script>x=(function(a){return {f:"1.mp4",l:"${fill('\\"', MiB / 4 - 1_000)}"}}("/1.mp4"))`,
  ],
  "references of Angular": [html, `<script>{&q;f&q;:&q;/1.mp4&q;${fill(",&q;a&q;:1", 4 * MiB)}}`],
  "streams in parts": [html, fill(`<script>self.__next_f.push([1,"/1.mp4"])</script>`)],
  "texts in base64": [html, `<script>x="/1.mp4";${fill(`y="${btoa(fill('{"a":"/1.mp4"},', 600_000))}";`, 4 * MiB)}`],
  "links to download": [html, fill(`<a download href="/${fill("a-720p", 500)}.mp4">`)],
};
