import type { ReadKind } from "../../../src/resolvers/page/reader/reader.ts";
import { fill, type Grow, half, list } from "./grow.ts";

type Kind = Exclude<ReadKind, "page">;

const m3u8 = (lines: string): string => `#EXTM3U\n${lines}`;
const media = (attributes: string): string => `#EXT-X-MEDIA:${attributes}\n`;
const audio = (n: number, group = "a"): string =>
  media(`TYPE=AUDIO,GROUP-ID="${group}",NAME="n${n}",LANGUAGE="l${n}",URI="a${n}"`);
const variant = (n: number, attributes = ""): string => `#EXT-X-STREAM-INF:BANDWIDTH=${n + 1}${attributes}\nv${n}\n`;
const segments = (lines: string): string =>
  m3u8(`#EXT-X-TARGETDURATION:2\n${lines}#EXTINF:2,\nlast.ts\n#EXT-X-ENDLIST\n`);

const playlists: Record<string, (length: number) => string> = {
  variants: (length) => m3u8(list((n) => variant(n, `,RESOLUTION=${n + 2}x2,CODECS="avc1.42c00a"`), length)),
  "one variant again and again": (length) => m3u8(fill(variant(1), length)),
  "renditions of one group": (length) => m3u8(list(audio, length) + variant(1, `,AUDIO="a"`)),
  "one rendition again and again": (length) => m3u8(fill(audio(1), length) + variant(1, `,AUDIO="a"`)),
  "many renditions of many variants": (length) =>
    m3u8(list(audio, half(length)) + list((n) => variant(n, `,AUDIO="a"`), half(length))),
  "many groups": (length) => m3u8(list((n) => audio(n, `a${n}`) + variant(n, `,AUDIO="a${n}"`), length)),
  subtitles: (length) =>
    m3u8(
      list((n) => media(`TYPE=SUBTITLES,GROUP-ID="s",NAME="n${n}",LANGUAGE="l${n}",URI="s${n}"`), length) + variant(1),
    ),
  "session keys": (length) => m3u8(list((n) => `#EXT-X-SESSION-KEY:METHOD=A,KEYFORMAT="${n}"\n`, length) + variant(1)),
  "attributes of one tag": (length) =>
    m3u8(
      variant(
        1,
        list((n) => `,X-A${n}="v"`, length),
      ),
    ),
  commas: (length) => m3u8(variant(1, ",".repeat(length))),
  "quotes that are not closed": (length) => m3u8(fill(`#EXT-X-MEDIA:TYPE=AUDIO,NAME="x\n`, length)),
  codecs: (length) => m3u8(variant(1, `,CODECS="${fill("avc1.42c00a,", length)}"`)),
  "variables of variables": (length) =>
    m3u8(list((n) => `#EXT-X-DEFINE:NAME="v${n}",VALUE="{$v${n - 1}}{$v${n - 1}}"\n`, length) + "#EXTINF:1,\n{$v40}\n"),
  "a long variable, used often": (length) =>
    m3u8(`#EXT-X-DEFINE:NAME="v",VALUE="${"x".repeat(half(length))}"\n#EXTINF:1,\n${fill("{$v}", half(length))}\n`),
  "variables that are not closed": (length) => m3u8(`#EXTINF:1,\n${fill("{$", length)}\n`),
  "empty lines": (length) => m3u8("\r".repeat(length)),
  segments: (length) => segments(list((n) => `#EXT-X-GAP\n#EXTINF:2,t\ns${n}.ts\n`, length)),
  "keys of segments": (length) =>
    segments(
      list((n) => `#EXT-X-KEY:METHOD=AES-128,URI="k${n}"\n#EXT-X-MAP:URI="m${n}"\n#EXTINF:2,\ns${n}.ts\n`, length),
    ),
  "keys of one segment": (length) =>
    segments(list((n) => `#EXT-X-KEY:METHOD=SAMPLE-AES,KEYFORMAT="f${n}",URI="k${n}"\n`, length)),
};

const mpd = (periods: string, attributes = ""): string =>
  `<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" xmlns:xlink="http://www.w3.org/1999/xlink" type="static" mediaPresentationDuration="PT9S" ${attributes}>${periods}</MPD>`;
const set = (inner: string, attributes = `mimeType="video/mp4"`): string =>
  `<AdaptationSet ${attributes}>${inner}</AdaptationSet>`;
const representation = (n: number): string =>
  `<Representation id="r${n}" bandwidth="${n}" height="2" codecs="avc1.42c00a"/>`;
const period = (inner: string): string => mpd(`<Period>${inner}</Period>`);
const base = (n: number): string => `<BaseURL serviceLocation="s${n}">http://${n}.test/</BaseURL>`;
const timeline = (entries: string): string =>
  `<SegmentTemplate media="$Time$"><SegmentTimeline>${entries}</SegmentTimeline></SegmentTemplate>`;

const mpds: Record<string, (length: number) => string> = {
  Periods: (length) => mpd(list((n) => `<Period duration="PT1S">${set(representation(n))}</Period>`, length)),
  "Periods with references": (length) =>
    mpd(list((n) => `<Period xlink:href="x${n}" xlink:actuate="onLoad"/>`, length)),
  AdaptationSets: (length) => period(list((n) => set(representation(n), `mimeType="audio/mp4" lang="l${n}"`), length)),
  Representations: (length) => period(set(list(representation, length))),
  "two Periods of other Representations": (length) =>
    mpd(
      `<Period duration="PT1S">${set(list(representation, half(length)))}</Period>` +
        `<Period duration="PT1S">${set(list((n) => representation(n + 1_000_000), half(length)))}</Period>`,
    ),
  "BaseURLs of three levels": (length) =>
    mpd(
      list(base, length / 3) +
        `<Period>${list(base, length / 3)}${set(list(base, length / 3) + representation(1))}</Period>`,
    ),
  "BaseURLs of Representations": (length) =>
    mpd(list(base, half(length)) + `<Period>${set(list(representation, half(length)))}</Period>`),
  "a timeline": (length) => period(set(timeline(fill(`<S d="1"/>`, length)) + representation(1))),
  "a timeline that repeats itself": (length) =>
    period(set(timeline(fill(`<S t="0" d="1" r="99999"/>`, length)) + representation(1))),
  "a timeline of Representations": (length) =>
    period(set(timeline(fill(`<S d="1"/>`, half(length))) + list(representation, half(length)))),
  "a list of Representations": (length) =>
    period(
      set(
        `<SegmentList>${list((n) => `<SegmentURL media="${n}"/>`, half(length))}</SegmentList>` +
          list(representation, half(length)),
      ),
    ),
  "protections of Representations": (length) =>
    period(
      set(
        list((n) => `<ContentProtection schemeIdUri="urn:${n}"/>`, half(length)) + list(representation, half(length)),
      ),
    ),
  "labels and roles": (length) =>
    period(
      set(
        list((n) => `<Label>n${n}</Label><Role schemeIdUri="urn:mpeg:dash:role:2011" value="v${n}"/>`, half(length)) +
          list(representation, half(length)),
      ),
    ),
  "a template": (length) =>
    period(set(`<SegmentTemplate media="${fill("$Number%09d$", length)}" duration="1"/>${representation(1)}`)),
  attributes: (length) => period(`<AdaptationSet ${list((n) => `a${n}="x" `, length)}/>`),
  namespaces: (length) =>
    mpd(
      "",
      list((n) => `xmlns:n${n}="u" `, length),
    ),
  depth: (length) => period(fill("<a>", length)),
  "declared entities": (length) =>
    `<!DOCTYPE MPD [${list((n) => `<!ENTITY e${n} "&e${n - 1};&e${n - 1};">`, half(length))}]>${mpd(fill("&e9;", half(length)))}`,
  "comments that are not closed": (length) => mpd(fill("<!--", length)),
};

const rss = (items: string): string =>
  `<rss xmlns:media="http://search.yahoo.com/mrss/" xmlns:podcast="https://podcastindex.org/namespace/1.0" xmlns:psc="http://podlove.org/simple-chapters"><channel>${items}</channel></rss>`;
const item = (inner: string, n = 1): string =>
  `<item><guid>${n}</guid><enclosure url="http://a.test/${n}.mp4" type="video/mp4"/>${inner}</item>`;

const feeds: Record<string, (length: number) => string> = {
  items: (length) => rss(list((n) => item("", n), length)),
  "one item again and again": (length) => rss(fill(item(""), length)),
  "items that are not closed": (length) => rss(fill("<item>", length)),
  "enclosures of one item": (length) =>
    rss(`<item>${list((n) => `<enclosure url="http://a.test/${n}.mp4" type="video/mp4"/>`, length)}</item>`),
  "media of one item": (length) =>
    rss(item(list((n) => `<media:content url="http://a.test/${n}.mp4" type="video/mp4" height="${n}"/>`, length))),
  transcripts: (length) =>
    rss(item(list((n) => `<podcast:transcript url="http://a.test/${n}.vtt" type="text/vtt"/>`, length))),
  chapters: (length) =>
    rss(item(`<psc:chapters>${list((n) => `<psc:chapter start="${n}" title="c"/>`, length)}</psc:chapters>`)),
  description: (length) => rss(item(`<description>${fill("&lt;p&gt;x ", length)}</description>`)),
  "blanks of a description": (length) => rss(item(`<description>x${"\n ".repeat(half(length))}x</description>`)),
  "links of Atom": (length) =>
    `<feed xmlns="http://www.w3.org/2005/Atom"><entry>${list((n) => `<link rel="enclosure" href="http://a.test/${n}.mp4" type="video/mp4"/>`, length)}</entry></feed>`,
};

const infos: Record<string, (length: number) => string> = {
  entries: (length) => m3u8(list((n) => `#EXTINF:1,t${n}\nhttp://a.test/${n}.mp4\n`, length)),
  attributes: (length) => m3u8(`#EXTINF:-1 ${list((n) => `tvg-id${n}="x" `, length)},t\nhttp://a.test/1.mp4\n`),
  "attributes that are not closed": (length) => m3u8(`#EXTINF:-1 ${fill(`a="`, length)},t\nhttp://a.test/1.mp4\n`),
};

const oembeds: Record<string, (length: number) => string> = {
  members: (length) => `{"type":"video"${list((n) => `,"k${n}":"v"`, length)}}`,
  frames: (length) => JSON.stringify({ type: "video", html: list((n) => `<iframe src="http://a.test/${n}">`, length) }),
  "frames that are not closed": (length) => JSON.stringify({ type: "video", html: fill("<iframe src='", length) }),
  blanks: (length) => JSON.stringify({ type: "video", title: `x${" ".repeat(length)}x` }),
  depth: (length) => "[".repeat(length),
};

const chapterFiles: Record<string, (length: number) => string> = {
  JSON: (length) => `{"chapters":[${list((n) => `{"startTime":${n},"title":"c"},`, length)}{"startTime":0}]}`,
  WebVTT: (length) => `WEBVTT\n\n${fill("00:01.000 --> 00:02.000\nc\n\n", length)}`,
  "LRC whose line has many times": (length) => `${fill("[00:01]", half(length))}${"x".repeat(half(length))}\n`,
};

const radioLists: Record<string, (length: number) => string> = {
  entries: (length) =>
    `[playlist]\n${list((n) => `File${n}=http://a.test/${n}\nTitle${n}=t\nLength${n}=-1\n`, length)}`,
  "one entry again and again": (length) => `[playlist]\n${fill("File1=http://a.test/1\n", length)}`,
  blanks: (length) => `[playlist]\n${" ".repeat(length)}`,
  "blanks in names": (length) => `[playlist]\n${fill(`File1${" ".repeat(900)}\n`, length)}`,
  values: (length) => `[playlist]\nFile1=http://a.test/${"x".repeat(length)}`,
};

/** By name: what readers know of responses that are no pages. */
export const bodies: readonly (readonly [name: string, Grow])[] = [
  ...ofKind("m3u8", playlists),
  ...ofKind("dash", mpds),
  ...ofKind("feed", feeds),
  ...ofKind("m3u", infos),
  ...ofKind("pls", radioLists),
  ...ofKind("oembed", oembeds),
  ...ofKind("chapters", chapterFiles),
];

function ofKind(kind: Kind, table: Readonly<Record<string, (length: number) => string>>): [string, Grow][] {
  const url = "https://video.example.com/list";
  return Object.entries(table).map(([name, grow]) => [
    `${kind}: ${name}`,
    (length) => ({ html: grow(length), url, kind }),
  ]);
}
