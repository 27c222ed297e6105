import * as fc from "fast-check";
import { openMpd } from "../../src/manifests/dash/dash.ts";
import { checkManifest } from "./manifest-check.ts";
import { urls, render, junk, mutations, inputPlans } from "./input-plan.ts";
import { checkSegments } from "./segments-check.ts";
import { defineTarget } from "./target.ts";

const url = new URL("https://media.example.com/films/main.mpd");

const elements =
  "MPD Period AdaptationSet Representation BaseURL Label ContentProtection SegmentTemplate SegmentList SegmentBase SegmentTimeline S SegmentURL Initialization Role dash:Representation".split(
    " ",
  );
const names =
  "type mediaPresentationDuration start duration id mimeType contentType codecs width height frameRate bandwidth lang schemeIdUri media mediaRange initialization sourceURL range indexRange timescale startNumber endNumber presentationTimeOffset t d r xlink:href __proto__".split(
    " ",
  );
const values =
  "static|dynamic|PT1H2M3.5S|P1Y2M3DT4H|PT|-PT1S|video/mp4|audio/mp4|audio/webm|text/vtt|application/mp4|image/jpeg|video|audio|text|avc1.64001f|mp4a.40.2|stpp|wvtt|avc1.1,mp4a.2|1280|0|99999999999|30000/1001|1/0|2500000|1|2|en|de-AT|und|$Number$.m4s|$Number%05d$|$Time$|$RepresentationID$/$Bandwidth$|$$|$x$|0-99|100-199|-1|2000000000|18446744073709551615|90000|199999".split(
    "|",
  );

const value = fc.oneof(fc.constantFrom(...values), urls, junk);
const attribute = fc
  .tuple(
    fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...names) }, { weight: 1, arbitrary: junk }),
    fc.constantFrom('"', "'", ""),
    value,
    fc.constantFrom('"', "'", ""),
  )
  .map(([name, open, text, end]) => ` ${name}=${open}${text}${end}`);
const tag = fc
  .tuple(
    fc.constantFrom("<", "<", "<", "</", "<!", "<?"),
    fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...elements) }, { weight: 1, arbitrary: junk }),
    fc.array(attribute, { maxLength: 5 }).map((list) => list.join("")),
    fc.constantFrom(">", "/>", ""),
  )
  .map((parts) => parts.join(""));
const other = fc.constantFrom(
  "<!--",
  "-->",
  "<![CDATA[",
  "]]>",
  "&amp;",
  "&a;",
  '<!DOCTYPE MPD [<!ENTITY a "&b;&b;">]>',
  "<a>",
  "</a>",
);

const samples = [
  '<?xml version="1.0"?><MPD type="static" mediaPresentationDuration="PT30S"><BaseURL>https://cdn.example.com/</BaseURL><Period id="1"><AdaptationSet mimeType="video/mp4" frameRate="30000/1001"><ContentProtection schemeIdUri="urn:x"/><SegmentTemplate media="$Number$.m4s"/><Representation id="1" bandwidth="2500000" width="1280" height="720" codecs="avc1.64001f"/><Representation id="2" bandwidth="800000"/></AdaptationSet><AdaptationSet mimeType="audio/mp4" lang="en"><Representation id="a" bandwidth="128000" codecs="mp4a.40.2"><BaseURL>a.mp4</BaseURL></Representation></AdaptationSet></Period></MPD>',
  '<MPD type="dynamic"><Period duration="PT10S"><AdaptationSet contentType="text" mimeType="text/vtt" lang="de"><Label>Deutsch</Label><Representation id="t"><BaseURL>t.vtt</BaseURL></Representation></AdaptationSet></Period><Period duration="PT5S"/></MPD>',
  '<MPD mediaPresentationDuration="PT20S"><Period duration="PT8S"><AdaptationSet mimeType="video/mp4"><SegmentTemplate timescale="1000" presentationTimeOffset="5" initialization="$RepresentationID$.mp4" media="$RepresentationID$-$Time$.m4s"><SegmentTimeline><S t="0" d="2000" r="1"/><S d="1000" r="-1"/><S t="7000" d="1000"/></SegmentTimeline></SegmentTemplate><Representation id="v" bandwidth="9"/></AdaptationSet></Period><Period><AdaptationSet mimeType="video/mp4"><SegmentTemplate duration="4" media="$Number$.m4s" endNumber="7"/><Representation id="v" bandwidth="9"/></AdaptationSet><AdaptationSet mimeType="audio/mp4"><Representation id="a"><BaseURL>a.mp4</BaseURL><SegmentList duration="4"><Initialization range="0-9"/><SegmentURL mediaRange="10-19"/><SegmentURL mediaRange="20-29"/></SegmentList></Representation></AdaptationSet></Period></MPD>',
];

const begin = fc.constantFrom(
  '<MPD><Period><AdaptationSet mimeType="video/mp4">',
  '<MPD><Period><AdaptationSet mimeType="video/mp4"><Representation>',
  "<MPD>",
  "<MPD",
  "\uFEFF<?xml version='1.0'?>",
  "",
);

/** What is cut off is refused at once. */
const end = fc.constantFrom("</MPD>", "</MPD>", "</MPD>", "");

const input = fc.tuple(begin, inputPlans(tag, tag, tag, mutations(samples, junk), other, value), end);
type Input = typeof input extends fc.Arbitrary<infer T> ? T : never;
const prepare = ([start, plan, last]: Input) => start + render(plan) + last;

export const mpd = defineTarget({
  name: "mpd",
  input,
  prepare,
  run: (text) => openMpd(text, url).listing,
  check: checkManifest,
});

/** Segments of a Representation that is listed, if there is one. */
export const mpdSegments = defineTarget({
  name: "mpd-segments",
  input: fc.tuple(begin, inputPlans(tag, mutations(samples, value), mutations(samples, junk)), end),
  prepare: (plan) => {
    const text = prepare(plan);
    return { text, formatId: lastFormatId(text) };
  },
  run: ({ text, formatId }) => openMpd(text, url).segments(formatId),
  check: checkSegments,
  stallFactor: 5,
});

function lastFormatId(text: string): string {
  try {
    return openMpd(text, url).listing.formats.at(-1)?.format_id ?? "dash-1";
  } catch {
    return "dash-1"; // The target `mpd` checks the error.
  }
}
