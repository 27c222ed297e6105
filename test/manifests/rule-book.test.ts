import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { bases, type Case, caseOf, readAll } from "./rule-book.ts";

type Rule = "used" | "refused" | "harmless";

/** The rules of the table in the README by name. */
const table = new Map<string, Rule>();
const readme = readFileSync(new URL("../../src/manifests/RULES.md", import.meta.url), "utf8");
for (const [, names = "", rule] of readme.matchAll(/^\| (`.*?`) +\| (used|refused|harmless) +\|/gm)) {
  for (const [, name = ""] of names.matchAll(/`([^`]+)`/g)) table.set(name, rule as Rule);
}

const scheme = (name: string, uri: string, value = "1") => `<${name} schemeIdUri="${uri}" value="${value}"/>`;
const roleScheme = "urn:mpeg:dash:role:2011";
const trickMode = "http://dashif.org/guidelines/trickmode";
const unknown = "urn:example:unknown";
const inSet = '<AdaptationSet mimeType="video/mp4">';
const inPeriod = '<Period id="p">';
const inRepresentation = 'codecs="avc1.64000c">';
const inMpd = "<BaseURL>b/</BaseURL>";
const inTemplate = 'duration="4">';
const mediaStart = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n";
const beforeSecond = "1.m4s\n";
const multivariantStart = "#EXTM3U\n";

/** A presentation of which half is available. */
const begun = (type: string) =>
  bases.template.replace("<MPD ", `<MPD type="${type}" availabilityStartTime="2026-01-01T00:59:56Z" `);

/** A variant on two pathways, of which content steering chooses one. */
const steered = (attributes: string) =>
  `${multivariantStart}#EXT-X-CONTENT-STEERING:${attributes}\n${["A", "B"].map((id) => `#EXT-X-STREAM-INF:BANDWIDTH=1000,PATHWAY-ID="${id}"\n${id}.m3u8\n`).join("")}`;

/** An MPD of two places, of which content steering names one. */
const steeredMpd = (steering: string, second = ' serviceLocation="b"') =>
  bases.template.replace(inMpd, `${inMpd}<BaseURL${second}>c/</BaseURL>${steering}`);
const steering = '<ContentSteering defaultServiceLocation="b">https://s.example/</ContentSteering>';

/** An MPD with a further AdaptationSet, which has neither a media type nor codecs. */
const preselected = (preselection: string) =>
  bases.template.replace(inSet, inSet.replace(">", ' id="7">')).replace(inPeriod, inPeriod + preselection);
const withSet = (attributes: string, children = "") =>
  bases.template.replace(
    inPeriod,
    `${inPeriod}<AdaptationSet>${children}<Representation id="u" ${attributes}/></AdaptationSet>`,
  );

/** One for each name of the table. */
const cases: readonly Case[] = [
  // MPD
  { name: "MPD@type", without: begun("static"), with: begun("dynamic") },
  caseOf("MPD@mediaPresentationDuration", "template", "PT4S"),
  caseOf("MPD@availabilityStartTime", "live", "2026-01-01T00:59:40Z"),
  caseOf("MPD@minimumUpdatePeriod", "live", "PT2S"),
  caseOf("MPD@timeShiftBufferDepth", "live", "PT8S"),
  caseOf("UTCTiming", "live", scheme("UTCTiming", "urn:mpeg:dash:utc:http-iso:2014", "https://t.example"), inMpd),
  caseOf("BaseURL", "template", "<BaseURL>c/</BaseURL>", '<Period id="p">'),
  caseOf("BaseURL@byteRange", "template", "$base$?r=$first$-$last$"),
  { name: "BaseURL@serviceLocation", without: steeredMpd(steering, ""), with: steeredMpd(steering) },
  { name: "ContentSteering@defaultServiceLocation", without: steeredMpd(""), with: steeredMpd(steering) },
  {
    name: "ContentSteering@queryBeforeStart",
    without: steeredMpd(steering),
    with: steeredMpd(steering.replace(">", ' queryBeforeStart="true" clientRequirement="true">')),
  },
  ...["availabilityEndTime", "publishTime"].map((name) => caseOf(`MPD@${name}`, "live", "2026-01-02T00:00:00Z")),
  ...["minBufferTime", "suggestedPresentationDelay", "maxSegmentDuration", "maxSubsegmentDuration"].map((name) =>
    caseOf(`MPD@${name}`, "live", "PT9S"),
  ),
  caseOf("MPD@profiles", "template", "urn:mpeg:dash:profile:isoff-live:2011"),
  ...[
    "ProgramInformation",
    "Metrics",
    "ServiceDescription",
    "ContentSteering",
    "InitializationSet",
    "LeapSecondInformation",
  ].map((name) => caseOf(name, "template", `<${name}/>`, inMpd)),
  ...["Location", "PatchLocation"].map((name) => caseOf(name, "live", `<${name}>https://x.example/</${name}>`, inMpd)),
  // Period
  caseOf("Period@start", "template", "PT3S"),
  caseOf("Period@duration", "template", "PT4S"),
  caseOf("Period@id", "template", "q"),
  caseOf("Period@bitstreamSwitching", "template", "true"),
  caseOf("ImportedMPD", "template", "<ImportedMPD>x.mpd</ImportedMPD>", inPeriod),
  ...["AssetIdentifier", "EventStream", "Subset", "GroupLabel"].map((name) =>
    caseOf(name, "template", `<${name} schemeIdUri="urn:x" contains="1"/>`, inPeriod),
  ),
  ...["Preselection", "Preselection@preselectionComponents"].map((name) => ({
    name,
    without: preselected(""),
    with: preselected(`<Preselection preselectionComponents="7">${scheme("Role", roleScheme, "sign")}</Preselection>`),
  })),
  // AdaptationSet, Representation
  caseOf("AdaptationSet@contentType", "template", "image"),
  caseOf("AdaptationSet@mimeType", "template", "video/webm"),
  { name: "Representation@audioSamplingRate", without: withSet(""), with: withSet('audioSamplingRate="1"') },
  {
    name: "AudioChannelConfiguration",
    without: withSet(""),
    with: withSet("", scheme("AudioChannelConfiguration", unknown)),
  },
  {
    name: "ContentComponent",
    without: bases.template,
    with: bases.template.replace(inSet, `${inSet}<ContentComponent contentType="image"/>`),
  },
  caseOf("AdaptationSet@lang", "template", "fr"),
  {
    name: "AdaptationSet@selectionPriority",
    without: bases.template,
    with: bases.template.replace('lang="en"', 'lang="en" selectionPriority="2"'),
  },
  caseOf("Representation@codecs", "template", "hvc1.1"),
  caseOf("Representation@bandwidth", "template", "3000"),
  caseOf("Representation@width", "template", "320"),
  caseOf("Representation@height", "template", "180"),
  caseOf("Representation@frameRate", "template", "25"),
  caseOf("Representation@id", "template", "x"),
  caseOf("Representation@dependencyId", "template", "w"),
  caseOf("Representation@associationType", "template", "vdep"),
  caseOf("Role", "template", scheme("Role", roleScheme, "alternate"), inSet),
  caseOf("Accessibility", "template", scheme("Accessibility", roleScheme, "sign"), inSet),
  caseOf("EssentialProperty", "template", scheme("EssentialProperty", trickMode), inRepresentation),
  caseOf("SupplementalProperty", "template", scheme("SupplementalProperty", trickMode), inRepresentation),
  {
    name: "EssentialProperty of all video or audio",
    without: bases.template,
    with: bases.template.replace(inSet, inSet + scheme("EssentialProperty", unknown)),
  },
  caseOf(
    "FramePacking",
    "template",
    scheme("FramePacking", "urn:mpeg:dash:14496:10:frame_packing_arrangement_type:2011", "3"),
    inRepresentation,
  ),
  caseOf("ContentProtection", "template", "<ContentProtection/>", inSet),
  { name: "Label", without: bases.template, with: bases.template.replace("<Label>T</Label>", "<Label>U</Label>") },
  {
    name: "xlink:href",
    without: bases.template,
    with: bases.template.replace(inPeriod, `${inPeriod}<AdaptationSet xlink:href="a.xml"/>`),
  },
  caseOf("AdaptationSet@xlink:actuate", "template", "onLoad"),
  ...[
    "group",
    "par",
    "minBandwidth",
    "maxBandwidth",
    "minWidth",
    "maxWidth",
    "minHeight",
    "maxHeight",
    "minFrameRate",
  ].map((name) => caseOf(`AdaptationSet@${name}`, "template", "1")),
  ...["maxFrameRate", "segmentAlignment", "subsegmentAlignment", "subsegmentStartsWithSAP", "bitstreamSwitching"].map(
    (name) => caseOf(`AdaptationSet@${name}`, "template", "1"),
  ),
  ...["profiles", "sar", "segmentProfiles", "maximumSAPPeriod", "startWithSAP"].map((name) =>
    caseOf(`Representation@${name}`, "template", "1"),
  ),
  ...["maxPlayoutRate", "codingDependency", "scanType", "tag", "qualityRanking", "associationId"].map((name) =>
    caseOf(`Representation@${name}`, "template", "1"),
  ),
  ...["mediaStreamStructureId", "supplementalCodecs"].map((name) => caseOf(`Representation@${name}`, "template", "1")),
  ...["Rating", "Viewpoint", "InbandEventStream", "Switching"].map((name) =>
    caseOf(name, "template", scheme(name, unknown), inSet),
  ),
  ...["RandomAccess", "ProducerReferenceTime", "ContentPopularityRate", "OutputProtection", "Resync"].map((name) =>
    caseOf(name, "template", scheme(name, unknown), inSet),
  ),
  caseOf("SubRepresentation", "template", '<SubRepresentation level="1"/>', inRepresentation),
  // Segments
  caseOf("SegmentTemplate@media", "template", "x$Number$.m4s"),
  caseOf("SegmentTemplate@initialization", "template", "i.mp4"),
  caseOf("SegmentTemplate@duration", "template", "2"),
  caseOf("SegmentTemplate@timescale", "template", "2"),
  caseOf("SegmentTemplate@startNumber", "template", "5"),
  caseOf("SegmentTemplate@endNumber", "template", "1"),
  caseOf("SegmentTemplate@presentationTimeOffset", "template", "1"),
  { name: "$SubNumber$", without: bases.template, with: bases.template.replace("$Time$", "$SubNumber$") },
  caseOf("S@t", "timeline", "4"),
  caseOf("S@d", "timeline", "2"),
  caseOf("S@r", "timeline", "1"),
  caseOf("S@n", "timeline", "7"),
  caseOf("S@k", "timeline", "2"),
  caseOf("S@p", "timeline", "1"),
  caseOf("Pattern", "timeline", '<Pattern id="1"/>', "<SegmentTimeline>"),
  caseOf("SegmentList@duration", "list", "2"),
  caseOf("SegmentURL@media", "list", "x.m4s"),
  caseOf("SegmentURL@mediaRange", "list", "0-9"),
  caseOf("Initialization@sourceURL", "list", "x.mp4"),
  caseOf("Initialization@range", "list", "0-9"),
  ...["index", "indexRange"].map((name) => caseOf(`SegmentURL@${name}`, "list", "0-9")),
  ...["indexRange", "indexRangeExact"].map((name) => caseOf(`SegmentBase@${name}`, "file", "0-9")),
  ...[
    "index",
    "bitstreamSwitching",
    "availabilityTimeOffset",
    "availabilityTimeComplete",
    "presentationDuration",
    "eptDelta",
  ].map((name) => caseOf(`SegmentTemplate@${name}`, "live", "1")),
  ...["RepresentationIndex", "BitstreamSwitching", "FailoverContent"].map((name) =>
    caseOf(name, "template", `<${name} sourceURL="x" range="0-9"/>`, inTemplate),
  ),
  // Media playlists
  caseOf("EXTINF", "media", "#EXTINF:3,\n3.m4s\n", "2.m4s\n"),
  caseOf("EXT-X-TARGETDURATION", "media", "#EXT-X-TARGETDURATION:9\n", mediaStart),
  caseOf("EXT-X-BYTERANGE", "media", "#EXT-X-BYTERANGE:10@0\n", beforeSecond),
  caseOf("EXT-X-DISCONTINUITY", "media", "#EXT-X-DISCONTINUITY\n", beforeSecond),
  caseOf("EXT-X-KEY:METHOD", "media", "NONE"),
  caseOf("EXT-X-KEY:URI", "media", '"l"'),
  caseOf("EXT-X-KEY:IV", "media", "0x2"),
  caseOf("EXT-X-KEY:KEYFORMAT", "media", '"com.apple.streamingkeydelivery"'),
  caseOf("EXT-X-KEY:KEYFORMATVERSIONS", "media", '"1"'),
  caseOf("EXT-X-MAP:URI", "media", '"j.mp4"'),
  caseOf("EXT-X-MAP:BYTERANGE", "media", '"9@0"'),
  caseOf("EXT-X-PROGRAM-DATE-TIME", "media", "#EXT-X-PROGRAM-DATE-TIME:2026-01-01T00:00:00Z\n", beforeSecond),
  caseOf("EXT-X-GAP", "media", "#EXT-X-GAP\n", beforeSecond),
  caseOf("EXT-X-BITRATE", "media", "#EXT-X-PLAYLIST-TYPE:VOD\n#EXT-X-BITRATE:1000\n", mediaStart),
  caseOf("EXT-X-MEDIA-SEQUENCE", "media", "#EXT-X-MEDIA-SEQUENCE:5\n", mediaStart),
  caseOf("EXT-X-DISCONTINUITY-SEQUENCE", "media", "#EXT-X-DISCONTINUITY-SEQUENCE:5\n", mediaStart),
  caseOf("EXT-X-ENDLIST", "media", "#EXT-X-ENDLIST\n", mediaStart),
  {
    name: "EXT-X-PART",
    without: `${bases.media}#EXT-X-ENDLIST\n`,
    with: `${bases.media}#EXT-X-PART:DURATION=1,URI="p"\n#EXT-X-ENDLIST\n`,
  },
  caseOf("EXT-X-PLAYLIST-TYPE", "media", "#EXT-X-PLAYLIST-TYPE:VOD\n", mediaStart),
  caseOf("EXT-X-FAXS-CM", "media", '#EXT-X-KEY:METHOD=NONE\n#EXT-X-FAXS-CM:URI="x"\n', '#EXT-X-MAP:URI="i.mp4"\n'),
  ...["NAME", "QUERYPARAM", "IMPORT"].map((name) => {
    const value = { NAME: 'NAME="x",VALUE="a"', QUERYPARAM: 'QUERYPARAM="t"', IMPORT: 'IMPORT="above"' }[name];
    const variable = { NAME: "x", QUERYPARAM: "t", IMPORT: "above" }[name];
    const defined = `${mediaStart}#EXT-X-DEFINE:${value}\n`;
    return {
      name: `EXT-X-DEFINE:${name}`,
      without: bases.media,
      with: bases.media.replace(mediaStart, defined).replace("1.m4s", `{$${variable}}.m4s`),
    };
  }),
  caseOf("EXT-X-I-FRAMES-ONLY", "media", "#EXT-X-I-FRAMES-ONLY\n", mediaStart),
  caseOf("EXT-X-IMAGES-ONLY", "media", "#EXT-X-IMAGES-ONLY\n", mediaStart),
  caseOf("EXT-X-SKIP", "media", "#EXT-X-SKIP:SKIPPED-SEGMENTS=3\n", mediaStart),
  ...[
    "VERSION:6",
    "INDEPENDENT-SEGMENTS",
    "START:TIME-OFFSET=4",
    "ALLOW-CACHE:YES",
    "SERVER-CONTROL:CAN-BLOCK-RELOAD=YES",
  ].map((tag) => caseOf(`EXT-X-${tag.split(":", 1)[0]}`, "media", `#EXT-X-${tag}\n`, mediaStart)),
  ...["PART-INF:PART-TARGET=1", 'PRELOAD-HINT:TYPE=PART,URI="p"', 'RENDITION-REPORT:URI="r"'].map((tag) =>
    caseOf(`EXT-X-${tag.split(":", 1)[0]}`, "media", `#EXT-X-${tag}\n`, "2.m4s\n"),
  ),
  ...['DATERANGE:ID="a",CLASS="com.apple.hls.interstitial"', "CUE-OUT:4", "CUE-IN"].map((tag) =>
    caseOf(`EXT-X-${tag.split(":", 1)[0]}`, "media", `#EXT-X-${tag}\n`, beforeSecond),
  ),
  // Multivariant playlists
  ...Object.entries({ TYPE: "SUBTITLES", URI: '"x.m3u8"', "GROUP-ID": '"b"', LANGUAGE: '"fr"', NAME: '"C"' }).map(
    ([name, value]) => caseOf(`EXT-X-MEDIA:${name}`, "multivariant", value),
  ),
  ...Object.entries({
    DEFAULT: "YES",
    AUTOSELECT: "YES",
    CHARACTERISTICS: '"public.accessibility.describes-video"',
  }).map(([name, value]) => caseOf(`EXT-X-MEDIA:${name}`, "multivariant", value)),
  ...Object.entries({
    "ASSOC-LANGUAGE": '"fr"',
    FORCED: "YES",
    "INSTREAM-ID": '"CC1"',
    CHANNELS: '"6"',
    "SAMPLE-RATE": "48000",
  }).map(([name, value]) => caseOf(`EXT-X-MEDIA:${name}`, "multivariant", value)),
  ...Object.entries({ "BIT-DEPTH": "16", "STABLE-RENDITION-ID": '"s"' }).map(([name, value]) =>
    caseOf(`EXT-X-MEDIA:${name}`, "multivariant", value),
  ),
  ...Object.entries({
    BANDWIDTH: "9000",
    "AVERAGE-BANDWIDTH": "900",
    CODECS: '"avc1.64000c"',
    RESOLUTION: "64x36",
  }).map(([name, value]) => caseOf(`EXT-X-STREAM-INF:${name}`, "multivariant", value)),
  ...Object.entries({ "FRAME-RATE": "25", VIDEO: '"v"', "REQ-VIDEO-LAYOUT": '"CH-STEREO"' }).map(([name, value]) =>
    caseOf(`EXT-X-STREAM-INF:${name}`, "multivariant", value),
  ),
  {
    name: "EXT-X-STREAM-INF:AUDIO",
    without: bases.multivariant,
    with: bases.multivariant.replace("=1000", '=1000,CODECS="avc1.64000c,mp4a.40.2",AUDIO="a"'),
  },
  {
    name: "EXT-X-STREAM-INF:SCORE",
    without: bases.multivariant,
    with: bases.multivariant.replace("=1000", "=1000,SCORE=1").replace("=1000\n", "=1000,SCORE=2\n"),
  },
  ...Object.entries({ "STABLE-VARIANT-ID": '"s"', "HDCP-LEVEL": "NONE", "VIDEO-RANGE": "SDR" }).map(([name, value]) =>
    caseOf(`EXT-X-STREAM-INF:${name}`, "multivariant", value),
  ),
  ...Object.entries({ "PATHWAY-ID": '"B"', SUBTITLES: '"s"', "CLOSED-CAPTIONS": "NONE" }).map(([name, value]) =>
    caseOf(`EXT-X-STREAM-INF:${name}`, "multivariant", value),
  ),
  ...Object.entries({ "ALLOWED-CPC": '""', "SUPPLEMENTAL-CODECS": '"dvh1.08.07/db4h"', "PROGRAM-ID": "1" }).map(
    ([name, value]) => caseOf(`EXT-X-STREAM-INF:${name}`, "multivariant", value),
  ),
  caseOf(
    "EXT-X-SESSION-KEY",
    "multivariant",
    '#EXT-X-SESSION-KEY:METHOD=SAMPLE-AES,URI="skd://k"\n',
    multivariantStart,
  ),
  ...[
    'I-FRAME-STREAM-INF:BANDWIDTH=9,URI="i"',
    'IMAGE-STREAM-INF:BANDWIDTH=9,URI="i"',
    'SESSION-DATA:DATA-ID="a",VALUE="b"',
  ].map((tag) => caseOf(`EXT-X-${tag.split(":", 1)[0]}`, "multivariant", `#EXT-X-${tag}\n`, multivariantStart)),
  caseOf("EXT-X-CONTENT-STEERING", "multivariant", '#EXT-X-CONTENT-STEERING:SERVER-URI="s"\n', multivariantStart),
  { name: "EXT-X-CONTENT-STEERING:PATHWAY-ID", without: steered('SERVER-URI="s"'), with: steered('PATHWAY-ID="B"') },
];

test("the table and the cases have the same names", () => {
  expect(cases.map(({ name }) => name).toSorted()).toEqual([...table.keys()].toSorted());
});

describe("each line of the table holds:", () => {
  test.each(cases.map((each) => [each.name, table.get(each.name), each] as const))("%s is %s", (name, rule, each) => {
    expect(each.with).not.toBe(each.without);
    if (rule === "refused") {
      const named = name.replace(/^EXT-X-(?:KEY:KEYFORMAT|FAXS-CM)$/, "licence server").replace(/ of .*/, "");
      expect(() => readAll(each.with)).toThrow(named);
      expect(readAll(each.without)).not.toBe("");
    } else if (rule === "used") expect(readAll(each.with)).not.toBe(readAll(each.without));
    else expect(readAll(each.with)).toBe(readAll(each.without));
  });
});
