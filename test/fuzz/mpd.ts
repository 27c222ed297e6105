import * as fc from "fast-check";
import { readDash } from "../../src/manifests/dash.ts";
import { checkManifest } from "./manifest-check.ts";
import { addresses, cook, junk, mutations, recipes } from "./recipe.ts";
import { defineTarget } from "./target.ts";

const url = new URL("https://media.example.com/films/main.mpd");

const elements =
  "MPD Period AdaptationSet Representation BaseURL Label ContentProtection SegmentTemplate SegmentList SegmentBase SegmentTimeline S SegmentURL Role dash:Representation".split(
    " ",
  );
const names =
  "type mediaPresentationDuration start duration id mimeType contentType codecs width height frameRate bandwidth lang schemeIdUri media __proto__".split(
    " ",
  );
const values =
  "static|dynamic|PT1H2M3.5S|P1Y2M3DT4H|PT|-PT1S|video/mp4|audio/mp4|audio/webm|text/vtt|application/mp4|image/jpeg|video|audio|text|avc1.64001f|mp4a.40.2|stpp|wvtt|avc1.1,mp4a.2|1280|0|99999999999|30000/1001|1/0|2500000|1|2|en|de-AT|und".split(
    "|",
  );

const value = fc.oneof(fc.constantFrom(...values), addresses, junk);
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
    fc.oneof(
      { weight: 9, arbitrary: fc.constantFrom(...elements) },
      { weight: 1, arbitrary: junk },
    ),
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
];

const begin = fc.constantFrom(
  '<MPD><Period><AdaptationSet mimeType="video/mp4">',
  '<MPD><Period><AdaptationSet mimeType="video/mp4"><Representation>',
  "<MPD>",
  "<MPD",
  "\uFEFF<?xml version='1.0'?>",
  "",
);

export const mpd = defineTarget({
  name: "mpd",
  input: fc.tuple(begin, recipes(tag, tag, tag, mutations(samples, junk), other, value)),
  prepare: ([start, recipe]) => start + cook(recipe),
  run: (text) => readDash(text, url),
  check: checkManifest,
});
