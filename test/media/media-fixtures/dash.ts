import { layNumbered, mpd, numberTemplate, rangeList, type Representation, timelineTemplate } from "../dash.ts";
import type { MediaFixture, Source } from "../media-fixtures.ts";
import { join, readMedium, readRendition, readWebmRendition } from "../rendition.ts";
import { dash, merge, resource, type Resources } from "../resources.ts";
import { mp4 } from "./hls.ts";

const size = { width: 160, height: 90 };
const picture = { id: "v", mimeType: "video/mp4", codecs: "avc1.64000c", size };
const sound = { id: "a", mimeType: "audio/mp4", codecs: "mp4a.40.2" };

/** Of a second or a little more: what comes after the end of a Period is none of it. */
const piecesInPeriod = 6;

/** DASH in each way to address segments. */
export function dashFixtures(): MediaFixture[] {
  const video = readRendition("video.m4s");
  const audio = readRendition("audio-en.m4s");
  const numbered = merge(layNumbered("v", video, "m4s"), layNumbered("a", audio, "m4s"));
  const timeline: Representation[] = [
    { ...picture, addressing: timelineTemplate("m4s", video, 12_800, 512) },
    { ...sound, addressing: timelineTemplate("m4s", audio, 48_000, 1024) },
  ];
  const byNumber: Representation[] = [
    { ...picture, addressing: numberTemplate("m4s", 1, 1) },
    { ...sound, addressing: numberTemplate("m4s", 48_000, 48_128) },
  ];
  const ranges: Representation[] = [
    { ...picture, addressing: rangeList("video.m4s", video) },
    { ...sound, addressing: rangeList("audio.m4s", audio) },
  ];
  const cut = { ...audio, pieces: audio.pieces.slice(0, piecesInPeriod) };
  // The media begin at 0.08 s, so that the last pictures would be after the Period's end.
  const fromStart = timelineTemplate("m4s", video, 12_800, 512).replace(
    'startNumber="1"',
    'startNumber="1" presentationTimeOffset="1024"',
  );
  const inPeriod: Representation[] = [
    { ...picture, addressing: fromStart },
    { ...sound, addressing: timelineTemplate("m4s", cut, 48_000, 1024) },
  ];
  const sources = [mp4("video.m4s"), mp4("audio-en.m4s")];
  const cutSources = [mp4("video.m4s"), { data: join(cut), ext: "mp4" }];
  return [
    fixture("DASH with a SegmentTimeline", [timeline], numbered, sources),
    // Its last piece is a frame that ends within a tenth of a second after the Period.
    fixture("DASH with $Number$ and no timeline", [byNumber], numbered, sources),
    fixture("DASH with a SegmentList", [ranges], oneFileEach(), sources),
    fixture("DASH of two Periods", [inPeriod, inPeriod], numbered, cutSources, 6.016),
    singleFiles(),
    webm(),
  ];
}

function oneFileEach(): Resources {
  return new Map([
    ["video.m4s", resource("video/mp4", readMedium("video.m4s"))],
    ["audio.m4s", resource("audio/mp4", readMedium("audio-en.m4s"))],
  ]);
}

function singleFiles(): MediaFixture {
  const [video, audio] = [readMedium("single-video.mp4"), readMedium("single-audio.mp4")];
  const base = (path: string, data: Buffer) => {
    const at = data.indexOf("sidx") - 4;
    const range = `${at}-${at + data.readUInt32BE(at) - 1}`;
    return `<BaseURL>${path}</BaseURL><SegmentBase indexRange="${range}"><Initialization range="0-${at - 1}"/></SegmentBase>`;
  };
  return fixture(
    "DASH of single files",
    [
      [
        { ...picture, addressing: base("video.mp4", video) },
        { ...sound, addressing: base("audio.mp4", audio) },
      ],
    ],
    new Map([
      ["video.mp4", resource("video/mp4", video)],
      ["audio.mp4", resource("audio/mp4", audio)],
    ]),
    [mp4("single-video.mp4"), mp4("single-audio.mp4")],
  );
}

function webm(): MediaFixture {
  const [video, audio] = [readWebmRendition("video.webm"), readWebmRendition("audio.webm")];
  const representations: Representation[] = [
    { id: "v", mimeType: "video/webm", codecs: "vp9", size, addressing: numberTemplate("webm", 1, 1) },
    { id: "a", mimeType: "audio/webm", codecs: "opus", addressing: numberTemplate("webm", 1, 1) },
  ];
  return {
    ...fixture(
      "DASH in WebM",
      [representations],
      merge(layNumbered("v", video, "webm"), layNumbered("a", audio, "webm")),
      [video, audio].map((each) => ({ data: join(each, piecesInPeriod), ext: "webm" })),
    ),
    ext: "webm",
  };
}

function fixture(
  name: string,
  periods: Representation[][],
  resources: Resources,
  sources: Source[],
  periodS = 6,
): MediaFixture {
  const manifest = new Map([["main.mpd", dash(mpd(periods, periodS))]]);
  return {
    name,
    entry: "main.mpd",
    resources: merge(resources, manifest),
    sources,
    times: periods.length,
    ext: "mp4",
  };
}
