import { openMpd } from "../../src/manifests/dash/dash.ts";
import { readHls, findRedundant } from "../../src/manifests/hls/hls.ts";
import { isMultivariant, readVariables } from "../../src/manifests/hls/lines.ts";
import { readHlsSegments } from "../../src/manifests/hls/segments.ts";

const url = new URL("https://media.example.com/films/42/main?t=q");
const nowMs = Date.parse("2026-01-01T01:00:00Z");
const variables = readVariables('#EXTM3U\n#EXT-X-DEFINE:NAME="above",VALUE="a"\n', url);

/** Returns all that a manifest tells of formats and their segments, as text. */
export function readAll(text: string): string {
  if (text.startsWith("<")) {
    const { listing, isLive, location, clocks, bases, segments } = openMpd(text, url);
    const lists = listing.formats.map(({ format_id }) => segments(format_id, { nowMs }));
    return JSON.stringify([listing, isLive, location, clocks, bases, lists]);
  }
  const manifest = readHls(text, url);
  const media = manifest.formats[0]?.url ?? url.href;
  const rest = isMultivariant(text) ? findRedundant(text, url, new URL(media)) : readHlsSegments(text, url, variables);
  return JSON.stringify([manifest, rest]);
}

const video = (rest: string) =>
  `<AdaptationSet mimeType="video/mp4">${rest}<Representation id="v" bandwidth="1000" width="64" height="36" codecs="avc1.64000c"></Representation>` +
  '<Representation id="w" bandwidth="2000" width="128" height="72" codecs="avc1.64000d"></Representation></AdaptationSet>';
const audio =
  '<AdaptationSet mimeType="audio/mp4" lang="en"><Label>A</Label><SegmentTemplate media="a$Number$.m4s" duration="4"/>' +
  '<Representation id="a" bandwidth="64" codecs="mp4a.40.2"/></AdaptationSet>' +
  '<AdaptationSet mimeType="audio/mp4" lang="en"><SegmentTemplate media="b$Number$.m4s" duration="4"/>' +
  '<Representation id="b" bandwidth="32" codecs="mp4a.40.2"/></AdaptationSet>';
const text =
  '<AdaptationSet mimeType="text/vtt"><Label>T</Label><Representation id="t"><BaseURL>t.vtt</BaseURL></Representation></AdaptationSet>';
const mpd = (body: string, attributes = 'mediaPresentationDuration="PT8S"') =>
  `<MPD ${attributes}><BaseURL>b/</BaseURL><Period id="p">${body}</Period></MPD>`;
const template = '<SegmentTemplate media="$Number$-$Time$.m4s" duration="4"></SegmentTemplate>';
const timeline =
  '<SegmentTemplate media="$Number$-$Time$.m4s"><SegmentTimeline><S t="0" d="4"/></SegmentTimeline></SegmentTemplate>';
const list =
  '<SegmentList duration="4"><Initialization sourceURL="i.mp4"/><SegmentURL media="1.m4s"/><SegmentURL media="2.m4s"/></SegmentList>';
const file =
  '<AdaptationSet mimeType="video/mp4"><Representation id="f"><BaseURL>f.mp4</BaseURL><SegmentBase></SegmentBase></Representation></AdaptationSet>';

const media = [
  "#EXTM3U",
  "#EXT-X-TARGETDURATION:4",
  '#EXT-X-KEY:METHOD=AES-128,URI="k",IV=0x1',
  '#EXT-X-MAP:URI="i.mp4"',
  "#EXTINF:4,",
  "1.m4s",
  "#EXTINF:4,",
  "2.m4s",
  "",
].join("\n");
const multivariant = [
  "#EXTM3U",
  '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="A",URI="a.m3u8"',
  '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="B",URI="b.m3u8"',
  '#EXT-X-MEDIA:TYPE=VIDEO,GROUP-ID="v",NAME="V",URI="v.m3u8"',
  "#EXT-X-STREAM-INF:BANDWIDTH=1000",
  "1.m3u8",
  "#EXT-X-STREAM-INF:BANDWIDTH=1000",
  "2.m3u8",
  "",
].join("\n");

/** The manifests to which rules are applied. */
export const bases = {
  template: mpd(video(template) + audio + text),
  timeline: mpd(video(timeline)),
  list: mpd(video(list)),
  file: mpd(file),
  live: mpd(video(template), 'type="dynamic" availabilityStartTime="2026-01-01T00:59:00Z"'),
  media,
  multivariant,
} as const;
type Base = keyof typeof bases;

/** A manifest without and with what a rule is about. */
export interface Case {
  name: string;
  without: string;
  with: string;
}

/**
 * Returns the case of a name such as `S@n`, `Subset` or `EXT-X-MAP:URI`: the attribute gets the value in the first such element
 * or tag of the base; an element or tag is put in after the text `at`.
 */
export function caseOf(name: string, base: Base, value: string, at?: string): Case {
  const without: string = bases[base];
  return { name, without, with: at === undefined ? withAttribute(name, without, value) : withText(without, value, at) };
}

function withText(base: string, value: string, at: string): string {
  if (!base.includes(at)) throw new Error(`the base has no ${at}`);
  return base.replace(at, () => at + value);
}

function withAttribute(name: string, base: string, value: string): string {
  const isXml = name.includes("@");
  const [element = "", attribute = ""] = name.split(isXml ? "@" : ":");
  const opening = (isXml ? new RegExp(`<${element}(?=[ />])(?:"[^"]*"|[^">/])*`) : new RegExp(`#${element}:.*`)).exec(
    base,
  )?.[0];
  if (opening === undefined) throw new Error(`the base has no ${element}`);
  const own = new RegExp(isXml ? ` ${attribute}="[^"]*"` : `(?<=[:,])${attribute}=("[^"]*"|[^",]*),?`);
  const rest = opening.replace(own, "").replace(/,$/, "");
  return base.replace(opening, () => (isXml ? `${rest} ${attribute}="${value}"` : `${rest},${attribute}=${value}`));
}
