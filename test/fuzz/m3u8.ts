import * as fc from "fast-check";
import { readHls } from "../../src/manifests/hls/hls.ts";
import { readHlsSegments } from "../../src/manifests/hls/segments.ts";
import { checkManifest } from "./manifest-check.ts";
import { urls, render, junk, mutations, inputPlans } from "./input-plan.ts";
import { checkSegments } from "./segments-check.ts";
import { defineTarget } from "./target.ts";

const url = new URL("https://media.example.com/films/main.m3u8?a=1&token=t");

const tags =
  "EXTM3U EXT-X-VERSION EXT-X-STREAM-INF EXT-X-MEDIA EXT-X-I-FRAME-STREAM-INF EXT-X-SESSION-DATA EXT-X-SESSION-KEY EXT-X-DEFINE EXTINF EXT-X-KEY EXT-X-MAP EXT-X-BYTERANGE EXT-X-TARGETDURATION EXT-X-MEDIA-SEQUENCE EXT-X-PLAYLIST-TYPE EXT-X-ENDLIST EXT-X-DISCONTINUITY EXT-X-DISCONTINUITY-SEQUENCE EXT-X-GAP EXT-X-SKIP EXT-X-FAXS-CM EXT-X-PART EXT-X-CONTENT-STEERING EXT-X-START".split(
    " ",
  );
const names =
  "BANDWIDTH AVERAGE-BANDWIDTH RESOLUTION FRAME-RATE CODECS AUDIO VIDEO SUBTITLES TYPE GROUP-ID NAME LANGUAGE URI METHOD KEYFORMAT IV VALUE QUERYPARAM IMPORT DEFAULT BYTERANGE KEYFORMATVERSIONS".split(
    " ",
  );
const values =
  "1280000|1280000.5|0|-1|1280x720|0x0|59.940|30000/1001|avc1.64001f,mp4a.40.2|mp4a.40.2|stpp|hvc1.1|AUDIO|SUBTITLES|VIDEO|a|b|en|de-AT|und|{$a}|{$b}{$b}|token|AES-128|SAMPLE-AES|NONE|identity|com.widevine|skd://k|VOD|EVENT|6.006,|1000|1000@0|500@99999999999999999999|0x1|0xABCDEF|7001".split(
    "|",
  );

const value = fc.oneof(fc.constantFrom(...values), urls, junk);
const attribute = fc
  .tuple(fc.oneof(fc.constantFrom(...names), junk), fc.constantFrom('"', "", "'"), value, fc.constantFrom('"', "", ","))
  .map(([name, open, text, end]) => `${name}=${open}${text}${end},`);
const line = fc
  .tuple(
    fc.constantFrom("#", "", " #", "##"),
    fc.oneof(fc.constantFrom(...tags), junk),
    fc.constantFrom(":", "", "=", " : "),
    fc.oneof(
      fc.array(attribute, { maxLength: 6 }).map((list) => list.join("")),
      value,
    ),
    fc.constantFrom("\n", "\r\n", "\r", ""),
  )
  .map((parts) => parts.join(""));

const samples = [
  '#EXTM3U\n#EXT-X-DEFINE:NAME="a",VALUE="x"\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="English",LANGUAGE="en",URI="en.m3u8"\n#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="Deutsch",LANGUAGE="de",URI="de.m3u8"\n#EXT-X-STREAM-INF:BANDWIDTH=2500000,RESOLUTION=1280x720,FRAME-RATE=29.97,CODECS="avc1.64001f,mp4a.40.2",AUDIO="a",SUBTITLES="s"\nhi/{$a}.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=64000,CODECS="mp4a.40.2",AUDIO="a"\nlo.m3u8\n',
  '#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:6\n#EXT-X-KEY:METHOD=AES-128,URI="k",IV=0x1\n#EXTINF:6.006,\n1.ts\n#EXTINF:3.003,\n2.ts\n#EXT-X-ENDLIST\n',
  '#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXT-X-MEDIA-SEQUENCE:17\n#EXT-X-DISCONTINUITY-SEQUENCE:2\n#EXT-X-MAP:URI="all.mp4",BYTERANGE="720@0"\n#EXTINF:4,\n#EXT-X-BYTERANGE:1000@720\nall.mp4\n#EXTINF:4,\n#EXT-X-BYTERANGE:900\nall.mp4\n#EXT-X-DISCONTINUITY\n#EXT-X-KEY:METHOD=AES-128,URI="k"\n#EXTINF:2,\n2.m4s\n#EXT-X-GAP\n#EXTINF:2,\n3.m4s\n',
];

const begin = fc.constantFrom("#EXTM3U\n", "\uFEFF#EXTM3U\r\n", "#extm3u", "", "\n\n#EXTM3U\n");

const input = fc.tuple(begin, inputPlans(line, line, line, mutations(samples, junk), junk));
type Input = typeof input extends fc.Arbitrary<infer T> ? T : never;
const prepare = ([start, plan]: Input) => start + render(plan);

export const m3u8 = defineTarget({
  name: "m3u8",
  input,
  prepare,
  run: (text) => readHls(text, url),
  check: checkManifest,
});

const mediaTags = fc.oneof(
  fc.constantFrom(
    ..."1.ts|all.mp4|#EXTINF:4,|#EXT-X-BYTERANGE:1000@720|#EXT-X-BYTERANGE:9|#EXT-X-DISCONTINUITY|#EXT-X-GAP|#EXT-X-ENDLIST|#EXT-X-KEY:METHOD=NONE".split(
      "|",
    ),
  ),
  urls,
);
const mediaLine = fc.oneof(
  { weight: 9, arbitrary: mediaTags.map((text) => `${text}\n`) },
  { weight: 1, arbitrary: line },
);

/** Segments, from tags of media playlists mostly: most others make a playlist invalid. */
export const m3u8Segments = defineTarget({
  name: "m3u8-segments",
  input: fc.tuple(begin, inputPlans(mediaLine, mediaLine, mutations(samples, junk))),
  prepare,
  run: (text) => readHlsSegments(text, url),
  check: checkSegments,
  stallFactor: 5,
});
