import * as fc from "fast-check";
import { inputPlans, junk, mutations, urls } from "./input-plan.ts";

const elements =
  "html head title base meta link script style body div span p a b h1 time video audio source track iframe object embed img svg math form template noscript textarea table td select option br plaintext".split(
    " ",
  );
const attributes =
  "property name content itemprop itemscope itemtype itemid itemref id href src rel type lang charset http-equiv datetime width height poster data-src srcset value class __proto__ constructor".split(
    " ",
  );
const values =
  "og:title|og:type|og:video|og:video:url|og:video:type|og:image|og:image:width|og:url|og:site_name|og:locale|video:duration|twitter:card|twitter:player|twitter:title|description|author|VideoObject|https://schema.org/VideoObject|http://schema.org/AudioObject|name|duration|uploadDate|contentUrl|embedUrl|thumbnailUrl|interactionCount|interactionStatistic|application/json+oembed|text/xml+oembed|alternate|canonical|video.other|application/vnd.apple.mpegurl|application/dash+xml|video/mp4|PT1M2S|61|1280|-1|2020-01-02T03:04:05Z|2020-13-45|en-US|utf-8|windows-1252|main.m3u8|main.mpd|/v.mp4".split(
    "|",
  );
const keys =
  "@context @type @graph @id @value @list @reverse name description duration uploadDate contentUrl embedUrl thumbnailUrl thumbnail author publisher url width height interactionStatistic interactionType userInteractionCount isLiveBroadcast publication startDate video mainEntity itemListElement inLanguage keywords genre __proto__ constructor".split(
    " ",
  );

const value = fc.oneof(fc.constantFrom(...values), urls, junk);

const attribute = fc
  .tuple(
    fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...attributes) }, { weight: 1, arbitrary: junk }),
    fc.constantFrom('="', "='", "=", "", ' = "'),
    value,
    fc.constantFrom('"', "'", "", " "),
  )
  .map(([name, open, text, end]) => ` ${name}${open}${text}${end}`);

const tag = fc
  .tuple(
    fc.constantFrom("<", "<", "<", "<", "</", "<!", "<?"),
    fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...elements) }, { weight: 1, arbitrary: junk }),
    fc.array(attribute, { maxLength: 5 }).map((list) => list.join("")),
    fc.constantFrom(">", ">", ">", "/>", "", "\n"),
  )
  .map((parts) => parts.join(""));

const { node } = fc.letrec<{ node: unknown }>((tie) => ({
  node: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    value,
    fc.constantFrom(0, -1, 61.5, 1e308, true, false, null, "VideoObject"),
    fc.array(tie("node"), { maxLength: 4 }),
    fc.dictionary(fc.constantFrom(...keys), tie("node"), { maxKeys: 8 }),
  ),
}));

const jsonLd = fc
  .tuple(
    fc.constantFrom("application/ld+json", "application/ld+json; charset=utf-8", "APPLICATION/LD+JSON"),
    fc.dictionary(fc.constantFrom(...keys), node),
    fc.constantFrom("", "<!--", "/*<![CDATA[*/", "{", "\u0001"),
    fc.constantFrom("</script>", "", "</script >", ";</script>"),
  )
  .map(
    ([type, object, before, end]) =>
      `<script type="${type}">${before}${JSON.stringify({ "@type": "VideoObject", ...object })}${end}`,
  );

const scriptParts = fc.oneof(
  fc.constantFrom(
    ..."{ } [ ] ( ) : , ; = == => + ? . / // /* */ ` ${ ' \" \\ \\u0041 \\u{110000} \\x4 \n var return true 61 1e9 file src url hls sources playlist tracks title duration height id label type data-x preview ad".split(
      " ",
    ),
    "\n",
    "jwplayer('p').setup({",
    '"/v/1.mp4"',
    "'//cdn.example.com/1.m3u8?a=1&amp;b'",
    '"{\\"file\\":\\"/2.mp4\\"}"',
    '"%7B%22file%22:%22/3.mp4%22%7D"',
    "file:'/1.mp4',",
    'tracks:[{file:"a.vtt",kind:"captions"}],',
  ),
  urls,
  junk,
);
const playerData = fc
  .tuple(
    fc.constantFrom(
      "<script>",
      '<script type="application/json">',
      "<div data-setup='",
      '<video data-x="',
      '<embed flashvars="file=/1.mp4&x=',
      "<a download href=",
    ),
    fc.array(scriptParts, { maxLength: 30, size: "max" }),
    fc.constantFrom("", "</script>", "'>", '">', "</SCRIPT >", "/1.mp4' \">"),
  )
  .map(([start, parts, end]) => `${start}${parts.join("")}"/1.mp4"${end}`);

const other = fc.constantFrom(
  "<!--",
  "-->",
  "<![CDATA[",
  "]]>",
  "<script>",
  "</script>",
  "<title>",
  "</title>",
  "&amp;amp;&lt;&#x41;&notit;&",
  '<script type="application/ld+json">',
  '{"@graph":',
  "[",
  "<div itemscope itemtype=https://schema.org/VideoObject>",
  '<i itemprop="name a b c" itemscope>',
  "<a",
  " a=1",
  "=",
);

const samples = [
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Heron at dawn &amp; dusk</title>
<link rel="canonical" href="https://video.example.com/watch/1"><link rel="alternate" type="application/json+oembed" href="/oembed?u=1">
<meta property="og:type" content="video.other"><meta property="og:title" content="Heron"><meta property="og:video" content="/v/main.m3u8"><meta property="og:image" content="/1.jpg"><meta property="og:image:width" content="640"><meta name="twitter:player" content="https://video.example.com/e/1">
<script type="application/ld+json">{"@context":"https://schema.org","@graph":[{"@type":["VideoObject"],"name":"Heron","duration":"PT1M1S","uploadDate":"2024-02-03T04:05:06+01:00","contentUrl":"https://video.example.com/v/1.mp4","interactionStatistic":{"@type":"InteractionCounter","interactionType":"WatchAction","userInteractionCount":"1,234"},"author":{"@type":"Person","name":"Ada","url":"/ada"}}]}</script></head>
<body><video src="/v/1.webm" poster="/p.jpg"><source src="main.mpd" type="application/dash+xml"><track srclang="de" src="de.vtt" kind="subtitles"></video></body></html>`,
  `<div itemscope itemtype="http://schema.org/VideoObject" itemref="x"><meta itemprop="duration" content="PT5M"><h1 itemprop="name">Fox</h1><span itemprop="author" itemscope itemtype="http://schema.org/Person"><a itemprop="url" href="/p"><b itemprop="name">Bo</b></a></span></div><p id="x" itemprop="description">Text</p>`,
  `<title>Otters</title><script>/* a */ jwplayer("p").setup({playlist: [{title: 'Otters', duration: 61000, image: "/p.jpg", sources: [{file: "\\/1.mp4", label: '720p'}, {file: "/1.m3u8"},], tracks: [{file: "/en.vtt", kind: "captions", label: "English"}]}]}); window["state"] = JSON.parse("{\\"video\\":{\\"url\\":\\"/2.mp4\\"}}");</script><div data-config="{&quot;src&quot;:&quot;/3.mp4&quot;}"></div><iframe src="/embed/1" allowfullscreen width=640 height=360></iframe>`,
];

/** Parts of broken HTML with metadata of every vocabulary. */
export const pageParts = [tag, tag, jsonLd, playerData, scriptParts, mutations(samples, junk), other, junk];

export const pages = inputPlans(...pageParts);
