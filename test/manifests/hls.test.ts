import { Value } from "@sinclair/typebox/value";
import { expect, test } from "vitest";
import { Format } from "../../src/model/page-info.ts";
import { failure } from "./failure.ts";
import { readHls } from "../../src/manifests/hls/hls.ts";

const url = new URL("https://media.example.com/films/42/main.m3u8?token=t1");

function read(...lines: string[]) {
  const manifest = readHls(["#EXTM3U", ...lines, ""].join("\n"), url);
  for (const format of manifest.formats) expect(Value.Check(Format, format)).toBe(true);
  return manifest;
}

test("a variant states its size, rate, codecs and URL", () => {
  const { formats, duration, live_status } = read(
    '#EXT-X-STREAM-INF:BANDWIDTH=2564000,AVERAGE-BANDWIDTH=2100000,RESOLUTION=1280x720,FRAME-RATE=59.940,CODECS="mp4a.40.2,avc1.64001f"',
    "720/index.m3u8",
  );
  expect(formats).toEqual([
    {
      format_id: "hls-2564",
      url: "https://media.example.com/films/42/720/index.m3u8",
      manifest_url: url.href,
      protocol: "m3u8",
      ext: "mp4",
      mime_type: null,
      width: 1280,
      height: 720,
      fps: 59.94,
      vcodec: "avc1.64001f",
      acodec: "mp4a.40.2",
      tbr: 2564,
      averageTbr: 2100,
      filesize: null,
      filesize_approx: null,
      language: null,
      has_drm: false,
    },
  ]);
  expect({ duration, live_status }).toEqual({ duration: null, live_status: null });
});

test("variants of equal bit rate have different ids", () => {
  const { formats } = read(
    ...["a", "b", "c"].flatMap((name) => ["#EXT-X-STREAM-INF:BANDWIDTH=900000", `${name}.m3u8`]),
  );
  expect(formats.map((format) => format.format_id)).toEqual(["hls-900", "hls-900-1", "hls-900-2"]);
});

test("audio in a group is a separate format, and its variants have none", () => {
  const { formats } = read(
    '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="hi",NAME="Deutsch",LANGUAGE="de-AT",URI="de.m3u8"',
    '#EXT-X-STREAM-INF:BANDWIDTH=1000,CODECS="avc1.42e01e,mp4a.40.2",AUDIO="hi"',
    "v.m3u8",
  );
  expect(formats).toMatchObject([
    { format_id: "hls-1", vcodec: "avc1.42e01e", acodec: "none", language: null },
    {
      format_id: "hls-audio-hi-Deutsch",
      url: "https://media.example.com/films/42/de.m3u8",
      ext: "m4a",
      vcodec: "none",
      acodec: "mp4a.40.2",
      language: "de-AT",
    },
  ]);
});

test("audio of a rendition without URL belongs to its variants", () => {
  const { formats } = read(
    '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="Original",LANGUAGE="fr"',
    '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="Comments",LANGUAGE="fr",URI="c.m3u8"',
    '#EXT-X-STREAM-INF:BANDWIDTH=1000,CODECS="avc1.42e01e,mp4a.40.2",AUDIO="a"',
    "v.m3u8",
  );
  expect(formats[0]).toMatchObject({ acodec: "mp4a.40.2", language: "fr" });
});

test("an audio-only variant is audio; unknown codecs stay unknown", () => {
  const { formats } = read(
    '#EXT-X-STREAM-INF:BANDWIDTH=64000,CODECS="mp4a.40.5",RESOLUTION=0x0',
    "a.m3u8",
    '#EXT-X-STREAM-INF:BANDWIDTH=64000,CODECS="mp4a.40.5",RESOLUTION=640x360',
    "a2.m3u8",
    '#EXT-X-STREAM-INF:BANDWIDTH=65000,CODECS="zzz1.1"',
    "b.m3u8",
    '#EXT-X-STREAM-INF:BANDWIDTH=66000,CODECS="mp4a.40.5,zzz1.1"',
    "c.m3u8",
    "#EXT-X-STREAM-INF:BANDWIDTH=67000",
    "d.m3u8",
  );
  expect(formats.map(({ ext, vcodec, acodec }) => [ext, vcodec, acodec])).toEqual([
    ["m4a", "none", "mp4a.40.5"],
    ["mp4", null, "mp4a.40.5"],
    ["mp4", null, null],
    ["mp4", null, "mp4a.40.5"],
    ["mp4", null, null],
  ]);
});

test("video may have audio if the CODECS of no variant with video and no group states any", () => {
  const codecsOf = (...streams: string[]) =>
    read(
      ...streams.flatMap((stream, i) => [`#EXT-X-STREAM-INF:BANDWIDTH=${i + 1},${stream}`, `${i}.m3u8`]),
    ).formats.map(({ acodec }) => acodec);
  const [silent, muxed, audio] = ["avc1.42e01e", "avc1.42e01e,mp4a.40.2", "mp4a.40.2"].map(
    (each) => `CODECS="${each}"`,
  );
  expect(codecsOf(silent!, audio!)).toEqual([null, "mp4a.40.2"]);
  expect(codecsOf(silent!)).toEqual([null]);
  expect(codecsOf(silent!, muxed!)).toEqual(["none", "mp4a.40.2"]);
  expect(codecsOf(silent!, `${silent},AUDIO="a"`)).toEqual(["none", "none"]);
  expect(codecsOf(silent!, "RESOLUTION=64x36")).toEqual(["none", null]);
});

test("a variant with a frame rate is video although its CODECS name audio alone", () => {
  const kindOf = (rate: string) =>
    read(`#EXT-X-STREAM-INF:BANDWIDTH=1000,CODECS="mp4a.40.2",FRAME-RATE=${rate}`, "a.m3u8").formats[0]?.vcodec;
  expect(["25.000", "0.000", "x"].map(kindOf)).toEqual([null, "none", "none"]);
});

test("a variant with a frame rate is audio if its CODECS name audio alone, and those of another variant name video", () => {
  const kindsOf = (own: string) =>
    read(
      '#EXT-X-STREAM-INF:BANDWIDTH=2000,FRAME-RATE=25,CODECS="avc1.42e01e,mp4a.40.2"',
      "v.m3u8",
      `#EXT-X-STREAM-INF:BANDWIDTH=1000,FRAME-RATE=25,CODECS="mp4a.40.2"${own}`,
      "a.m3u8",
    ).formats.map(({ vcodec, fps, ext }) => [vcodec, fps, ext]);
  const film = ["avc1.42e01e", 25, "mp4"];
  expect(kindsOf("")).toEqual([film, ["none", null, "m4a"]]);
  expect(kindsOf(",RESOLUTION=640x360")).toEqual([film, [null, 25, "mp4"]]);
});

test("audio in a group is audio although the CODECS of its variants name none", () => {
  const { formats } = read(
    '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="en",URI="en.m3u8"',
    '#EXT-X-STREAM-INF:BANDWIDTH=1000,CODECS="avc1.42e01e",AUDIO="a"',
    "a.m3u8",
  );
  expect(formats.map(({ vcodec, acodec }) => [vcodec, acodec])).toEqual([
    ["avc1.42e01e", "none"],
    ["none", null],
  ]);
});

test("audio in the variants is the original if it is the default and there is other audio", () => {
  const original = '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="en",DEFAULT=YES';
  const other = '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="de",URI="de.m3u8"';
  const roleOf = (...renditions: string[]) =>
    read(...renditions, '#EXT-X-STREAM-INF:BANDWIDTH=1000,AUDIO="a"', "a.m3u8").formats[0]?.audio_role;
  expect(roleOf(original, other)).toBe("original");
  expect(roleOf(original)).toBeUndefined();
  expect(roleOf(original.replace(",DEFAULT=YES", ""), `${other},DEFAULT=YES`)).toBeUndefined();
});

test("at most 2,000 subtitles are listed", () => {
  const lines = Array.from(
    { length: 2_001 },
    (_, n) => `#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="${n}",LANGUAGE="en",URI="${n}.m3u8"`,
  );
  const { subtitles } = read(...lines, '#EXT-X-STREAM-INF:BANDWIDTH=1000,SUBTITLES="s"', "v.m3u8");
  expect(subtitles["en"]).toHaveLength(2_000);
});

test("subtitles are grouped by language, each URL once", () => {
  const media = (language: string, name: string, uri: string) =>
    `#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",LANGUAGE="${language}",NAME="${name}",URI="${uri}"`;
  const { subtitles, formats } = read(
    media("en", "English", "en.m3u8"),
    media("en", "English", "en.m3u8"),
    `${media("en", "Forced", "en-forced.m3u8")},FORCED=YES`,
    `${media("en", "CC", "en-cc.m3u8")},CHARACTERISTICS="public.accessibility.transcribes-spoken-dialog"`,
    media("constructor", "Odd", "odd.m3u8"),
    '#EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID="cc",NAME="CC",INSTREAM-ID="CC1"',
  );
  const at = (name: string) => `https://media.example.com/films/42/${name}`;
  expect(formats).toEqual([]);
  expect(subtitles).toEqual({
    en: [
      { url: at("en.m3u8"), ext: "m3u8", name: "English", role: "subtitles" },
      { url: at("en-forced.m3u8"), ext: "m3u8", name: "Forced", role: "forced" },
      { url: at("en-cc.m3u8"), ext: "m3u8", name: "CC", role: "captions" },
    ],
    und: [{ url: at("odd.m3u8"), ext: "m3u8", name: "Odd", role: "subtitles" }],
  });
});

test("a multivariant playlist that is cut off lists nothing: what is missing may be all video", () => {
  const media = '#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="n",URI="a.m3u8"\n';
  const text = `${media}#EXT-X-STREAM-INF:BANDWIDTH=1000,AUDIO="a"\nv.m3u8\n`;
  expect(readHls(text, url).formats).toHaveLength(2);
  expect(readHls(media, url).formats).toHaveLength(1);
  for (const end of [media.length - 1, media.length - 20, text.length - 8, text.length - 10]) {
    expect(() => readHls(text.slice(0, end), url)).toThrow(failure("upstream_unreachable", /cut off/));
  }
});

test("I-frame streams and URLs that are not http(s) are no formats", () => {
  const { formats } = read(
    '#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1000,URI="iframes.m3u8"',
    "#EXT-X-STREAM-INF:BANDWIDTH=1000",
    "file:///etc/passwd",
    "#EXT-X-STREAM-INF:BANDWIDTH=2000",
    "data:application/vnd.apple.mpegurl,x",
    "#EXT-X-STREAM-INF:BANDWIDTH=3000",
    "//cdn.example.com/v.m3u8",
    '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="n",URI="javascript:0"',
  );
  expect(formats.map((format) => format.url)).toEqual(["https://cdn.example.com/v.m3u8"]);
});

test("a URL that is too long after percent-encoding is left out", () => {
  expect(read("#EXT-X-STREAM-INF:BANDWIDTH=1000", "日".repeat(1_000)).formats).toEqual([]);
});

test("only keys of a licence server are DRM", () => {
  const session = (key: string) =>
    read(`#EXT-X-SESSION-KEY:${key}`, "#EXT-X-STREAM-INF:BANDWIDTH=1000", "v.m3u8").formats[0];
  const media = (key: string) => read(`#EXT-X-KEY:${key}`, "#EXTINF:4,", "1.ts").formats[0];
  const fairplay = 'METHOD=SAMPLE-AES,URI="skd://k",KEYFORMAT="com.apple.streamingkeydelivery"';
  for (const keyed of [session, media]) {
    expect(keyed(fairplay)?.has_drm).toBe(true);
    expect(keyed('METHOD=SAMPLE-AES,URI="skd://k"')?.has_drm).toBe(true);
    expect(keyed('METHOD=SAMPLE-AES,URI="k",KEYFORMAT="identity"')?.has_drm).toBe(false);
    expect(keyed('METHOD=AES-128,URI="https://example.com/k"')?.has_drm).toBe(false);
    expect(keyed("METHOD=NONE")?.has_drm).toBe(false);
  }
});

test("one other key beside those of a licence server is enough to decrypt", () => {
  const licensed = '#EXT-X-KEY:METHOD=AES-128,URI="skd://k",KEYFORMAT="com.example.drm"';
  const plain = '#EXT-X-KEY:METHOD=AES-128,URI="k"';
  const none = "#EXT-X-KEY:METHOD=NONE";
  const segment = ["#EXTINF:4,", "1.ts"];
  const isLocked = (...lines: string[]) => read(...lines).formats[0]?.has_drm;
  expect(isLocked(plain, licensed, ...segment)).toBe(false);
  expect(isLocked(licensed, plain, ...segment)).toBe(false);
  expect(isLocked(licensed, ...segment, none, ...segment)).toBe(true);
  expect(isLocked(plain, ...segment, none, licensed, ...segment)).toBe(true);
  const [first, second] = [licensed, plain].map((line) => line.replace("KEY", "SESSION-KEY"));
  expect(isLocked(first!, second!, "#EXT-X-STREAM-INF:BANDWIDTH=1000", "v.m3u8")).toBe(false);
});

test("a frame rate may have many decimals", () => {
  const line = "#EXT-X-STREAM-INF:BANDWIDTH=1000,FRAME-RATE=29.97002997002997";
  expect(read(line, "v.m3u8").formats[0]?.fps).toBe(29.97);
});

test("variables are substituted, from their definitions and from the playlist's query", () => {
  const { formats } = read(
    '#EXT-X-DEFINE:NAME="host",VALUE="cdn.example.com"',
    '#EXT-X-DEFINE:NAME="path",VALUE="{$host}/v"',
    '#EXT-X-DEFINE:QUERYPARAM="token"',
    "#EXT-X-STREAM-INF:BANDWIDTH=1000",
    "https://{$path}/{$token}/{$missing}.m3u8",
  );
  expect(formats[0]?.url).toBe("https://cdn.example.com/v/t1/%7B$missing%7D.m3u8");
});

test("nested variables stay bounded", () => {
  const lines = ['#EXT-X-DEFINE:NAME="v0",VALUE="0123456789"'];
  for (let n = 1; n < 60; n += 1) {
    lines.push(`#EXT-X-DEFINE:NAME="v${n}",VALUE="{$v${n - 1}}{$v${n - 1}}"`);
  }
  const { formats } = read(...lines, "#EXT-X-STREAM-INF:BANDWIDTH=1000", "{$v59}.m3u8");
  expect(formats).toEqual([]); // the address is then too long
});

test("loose syntax is accepted: case, CRLF, a byte order mark, white space, missing quotes", () => {
  const text =
    "\uFEFF\r\n#extm3u\r\n  #ext-x-stream-inf: program-id=1, bandwidth = 1280000.7 ,Resolution=640X360," +
    "codecs=avc1.42e01e,mp4a.40.2,,junk,=x\r\n\r\n# a comment\r\n   low.m3u8  \r\n";
  expect(readHls(text, url).formats).toMatchObject([
    { tbr: 1280, width: 640, height: 360, vcodec: "avc1.42e01e", acodec: "mp4a.40.2" },
  ]);
  const unclosed = '#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1000,CODECS="avc1.42e01e\nlow.m3u8';
  expect(readHls(unclosed, url).formats[0]?.vcodec).toBe("avc1.42e01e");
});

test("numbers out of range are unknown, never 0", () => {
  const { formats } = read("#EXT-X-STREAM-INF:BANDWIDTH=0,RESOLUTION=0x99999999,FRAME-RATE=1e9", "a.m3u8");
  const unknown = { tbr: null, width: null, height: null, fps: null };
  expect(formats[0]).toMatchObject({ ...unknown, format_id: "hls-0" });
});

test("the size of a media playlist is that of its byte ranges, else of its bit rates", () => {
  const sizeOf = (...lines: string[]) => {
    const text = ["#EXTM3U", "#EXT-X-TARGETDURATION:10", ...lines, "#EXT-X-ENDLIST"].join("\n");
    return readHls(text, new URL("https://cdn.example.com/a.m3u8")).formats[0]?.filesize_approx;
  };
  const segment = (...tags: string[]) => ["#EXTINF:10,", ...tags, "a.ts"];
  const range = "#EXT-X-BYTERANGE:1000@0";
  expect(sizeOf(...segment(range), ...segment("#EXT-X-BYTERANGE:500"))).toBe(1_500);
  expect(sizeOf("#EXT-X-BITRATE:80", ...segment(), ...segment())).toBe(200_000);
  expect(sizeOf("#EXT-X-BITRATE:80", ...segment(), ...segment(range))).toBe(101_000);
  // A line that is no segment, and has no size.
  expect(sizeOf(...segment(range), "stray", ...segment(range))).toBe(2_000);
  expect(sizeOf(...segment(range), ...segment())).toBeNull();
  expect(sizeOf(...segment(), ...segment(range))).toBeNull();
  expect(sizeOf(...segment("#EXT-X-BYTERANGE:-5"))).toBeNull();
  expect(sizeOf(...segment("#EXT-X-BYTERANGE:9007199254740991"), ...segment(range))).toBeNull();
});

test("a media playlist is one format; its duration is known once it has ended", () => {
  const segments = ["#EXT-X-TARGETDURATION:6", "#EXTINF:6.006,", "1.ts", "#EXTINF:3.5,", "2.ts"];
  const ended = read(...segments, "#EXT-X-ENDLIST");
  expect(ended).toMatchObject({ duration: 9.506, live_status: "not_live" });
  expect(ended.formats).toMatchObject([{ url: url.href, manifest_url: url.href, format_id: "hls" }]);
  expect(read("#EXT-X-PLAYLIST-TYPE:VOD", ...segments)).toMatchObject({
    duration: 9.506,
    live_status: "not_live",
  });
  // The last EXTINF before a URI counts.
  expect(read(...segments.slice(0, 3), "#EXTINF:6,", ...segments.slice(3), "#EXT-X-ENDLIST").duration).toBe(9.506);
  const part = "#EXT-X-PART:DURATION=0.5,URI=p";
  expect(read(...segments.slice(0, 3), part, ...segments.slice(3), part, "#EXT-X-ENDLIST").duration).toBe(10.006);
  const live = { duration: null, live_status: "is_live" };
  expect(read(...segments)).toMatchObject(live);
  expect(read("#EXT-X-PLAYLIST-TYPE:EVENT", ...segments)).toMatchObject(live);
});

test("at most 2,000 formats are listed", () => {
  const lines = Array.from({ length: 3_000 }, (_, n) => [`#EXT-X-STREAM-INF:BANDWIDTH=${n}`, `${n}.m3u8`]);
  const { formats } = read(...lines.flat());
  expect(formats).toHaveLength(2_000);
  expect(new Set(formats.map((format) => format.format_id)).size).toBe(2_000);
});

test("an empty playlist has no formats", () => {
  expect(read()).toEqual({ formats: [], subtitles: {}, duration: null, live_status: null });
});

test.each(["", "\n", "<!doctype html><title>Sign in</title>", "#EXT-X-VERSION:3\n#EXTINF:4,\n1.ts"])(
  "text that does not begin with #EXTM3U is refused: %j",
  (text) => {
    expect(() => readHls(text, url)).toThrow(
      expect.objectContaining({ name: "ServiceError", code: "upstream_invalid" }),
    );
  },
);

test.each([
  [
    "with a header, also if it is long",
    `#EXTM3U\n${"\n".repeat(100_000)}#EXTINF:-1,Otter radio\nhttps://radio.example/live\n`,
  ],
  ["of URLs alone", "https://radio.example/live\nhttps://radio.example/live2\n"],
])("a list of media (M3U) %s is refused", (_, text) => {
  expect(() => readHls(text, url)).toThrow(/it is a list of media \(M3U\) without any tag of HLS/);
});

test("more than 4 Mi characters are refused", () => {
  expect(() => readHls(`#EXTM3U${" ".repeat(4_194_304)}`, url)).toThrow(/the limit is 4194304/);
});
