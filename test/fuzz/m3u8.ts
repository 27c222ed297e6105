import * as fc from "fast-check";
import { readHls } from "../../src/manifests/hls.ts";
import { checkManifest } from "./manifest-check.ts";
import { addresses, cook, junk, mutations, recipes } from "./recipe.ts";
import { defineTarget } from "./target.ts";

const url = new URL("https://media.example.com/films/main.m3u8?a=1&token=t");

const tags =
  "EXTM3U EXT-X-VERSION EXT-X-STREAM-INF EXT-X-MEDIA EXT-X-I-FRAME-STREAM-INF EXT-X-SESSION-DATA EXT-X-SESSION-KEY EXT-X-DEFINE EXTINF EXT-X-KEY EXT-X-MAP EXT-X-BYTERANGE EXT-X-TARGETDURATION EXT-X-MEDIA-SEQUENCE EXT-X-PLAYLIST-TYPE EXT-X-ENDLIST EXT-X-DISCONTINUITY EXT-X-PART EXT-X-CONTENT-STEERING EXT-X-START".split(
    " ",
  );
const names =
  "BANDWIDTH AVERAGE-BANDWIDTH RESOLUTION FRAME-RATE CODECS AUDIO VIDEO SUBTITLES TYPE GROUP-ID NAME LANGUAGE URI METHOD KEYFORMAT IV VALUE QUERYPARAM IMPORT DEFAULT".split(
    " ",
  );
const values =
  "1280000|1280000.5|0|-1|1280x720|0x0|59.940|30000/1001|avc1.64001f,mp4a.40.2|mp4a.40.2|stpp|hvc1.1|AUDIO|SUBTITLES|VIDEO|a|b|en|de-AT|und|{$a}|{$b}{$b}|token|AES-128|SAMPLE-AES|NONE|identity|com.widevine|skd://k|VOD|EVENT|6.006,".split(
    "|",
  );

const value = fc.oneof(fc.constantFrom(...values), addresses, junk);
const attribute = fc
  .tuple(
    fc.oneof(fc.constantFrom(...names), junk),
    fc.constantFrom('"', "", "'"),
    value,
    fc.constantFrom('"', "", ","),
  )
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
];

const begin = fc.constantFrom("#EXTM3U\n", "\uFEFF#EXTM3U\r\n", "#extm3u", "", "\n\n#EXTM3U\n");

export const m3u8 = defineTarget({
  name: "m3u8",
  input: fc.tuple(begin, recipes(line, line, line, mutations(samples, junk), junk)),
  prepare: ([start, recipe]) => start + cook(recipe),
  run: (text) => readHls(text, url),
  check: checkManifest,
});
