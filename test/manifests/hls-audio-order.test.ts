import { expect, test } from "vitest";
import { openMpd } from "../../src/manifests/dash/dash.ts";
import { readHls } from "../../src/manifests/hls/hls.ts";
import { bestFormats, createAudioFinder } from "../../src/model/format-ranking.ts";

const url = new URL("https://media.example.com/films/42/main.m3u8");

const rendition = (group: string, name: string, choice = "") =>
  `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="${group}",NAME="${name}",URI="${group}/${name}.m3u8"${choice}`;
const variant = (kbits: number, group: string, codec: string) => [
  `#EXT-X-STREAM-INF:BANDWIDTH=${kbits}000,RESOLUTION=1280x720,CODECS="avc1.64001f,${codec}",AUDIO="${group}"`,
  `${kbits}.m3u8`,
];

test("the default rendition of the best variant's group comes first", () => {
  const { formats } = readHls(
    [
      "#EXTM3U",
      rendition("unused", "x", ",DEFAULT=YES"),
      rendition("low", "en", ",DEFAULT=YES"),
      rendition("high", "fr"),
      rendition("high", "de", ",AUTOSELECT=YES"),
      rendition("high", "en", ",DEFAULT=yes,AUTOSELECT=YES"),
      ...variant(800, "low", "mp4a.40.5"),
      ...variant(2_000, "high", "mp4a.40.2"),
      ...variant(3_000, "high", "mp4a.40.2"),
      ...variant(900, "high", "mp4a.40.2"),
    ].join("\n"),
    url,
  );
  expect(formats.map(({ format_id, vcodec, acodec }) => [format_id, vcodec, acodec])).toEqual([
    ["hls-800", "avc1.64001f", "none"],
    ["hls-2000", "avc1.64001f", "none"],
    ["hls-3000", "avc1.64001f", "none"],
    ["hls-900", "avc1.64001f", "none"],
    ["hls-audio-high-en", "none", "mp4a.40.2"],
    ["hls-audio-high-de", "none", "mp4a.40.2"],
    ["hls-audio-high-fr", "none", "mp4a.40.2"],
    ["hls-audio-low-en", "none", "mp4a.40.5"],
    ["hls-audio-unused-x", "none", null],
  ]);
  expect(new Set(formats.map((format) => format.manifest_url))).toEqual(new Set([url.href]));
});

test("the default of a group that no variant references is not played, unless no variant references any", () => {
  const audioOf = (...lines: string[]) => {
    const { formats } = readHls(["#EXTM3U", ...lines].join("\n"), url);
    return createAudioFinder({ formats, language: null })(formats[0]!)?.format_id;
  };
  const french = rendition("unused", "fr", ',LANGUAGE="fr",DEFAULT=YES');
  const [english, german] = [rendition("a", "en", ',LANGUAGE="en"'), rendition("a", "de", ",DEFAULT=YES")];
  expect(audioOf(french, english, ...variant(800, "a", "mp4a.40.2"))).toBe("hls-audio-a-en");
  expect(audioOf(french, english, german, ...variant(800, "a", "mp4a.40.2"))).toBe("hls-audio-a-de");
  expect(audioOf(english, french, "#EXT-X-STREAM-INF:BANDWIDTH=1", "v.m3u8")).toBe("hls-audio-unused-fr");
});

test("the audio of the best variant's group is played, whatever the bit rates and defaults of other groups are", () => {
  const chosen = (...lines: string[]) => {
    const formats = bestFormats(readHls(["#EXTM3U", ...lines].join("\n"), url).formats);
    return [formats[0]?.format_id, createAudioFinder({ formats, language: null })(formats[0]!)?.format_id];
  };
  const stream = (kbps: number, attributes: string) =>
    `#EXT-X-STREAM-INF:BANDWIDTH=${kbps}000,${attributes},CODECS="avc1.64001f,mp4a.40.2"\nv${kbps}.m3u8`;
  const groups = [rendition("lo", "fr", ',LANGUAGE="fr",DEFAULT=YES'), rendition("hi", "en", ',LANGUAGE="en"')];
  const [low, high] = ["RESOLUTION=320x180", "RESOLUTION=640x360"];
  expect(chosen(...groups, stream(900, `${low},AUDIO="lo"`), stream(800, `${high},AUDIO="hi"`))).toEqual([
    "hls-800",
    "hls-audio-hi-en",
  ]);
  expect(
    chosen(...groups, stream(900, `${low},AUDIO="hi",SCORE=2`), stream(950, `${high},AUDIO="lo",SCORE=1`)),
  ).toEqual(["hls-900", "hls-audio-hi-en"]);
  const steering = '#EXT-X-CONTENT-STEERING:SERVER-URI="/s",PATHWAY-ID="B"';
  const pathways = [stream(900, 'AUDIO="lo",PATHWAY-ID="A"'), stream(900, 'AUDIO="hi",PATHWAY-ID="B"')];
  expect(chosen(steering, ...groups, ...pathways)).toEqual(["hls-900", "hls-audio-hi-en"]);
  // The group of a variant that has audio alone is played with that one.
  const alone = '#EXT-X-STREAM-INF:BANDWIDTH=9000000,CODECS="mp4a.40.2",AUDIO="lo"\na.m3u8';
  expect(chosen(...groups, alone, stream(800, `${high},AUDIO="hi"`))).toEqual(["hls-800", "hls-audio-hi-en"]);
});

test("the group of a variant that has audio alone replaces its audio, unless that is its rendition", () => {
  const alone = '#EXT-X-STREAM-INF:BANDWIDTH=64000,CODECS="mp4a.40.2",AUDIO="a"\nalone.m3u8';
  const audioOf = (...lines: string[]) => {
    const formats = bestFormats(readHls(["#EXTM3U", ...lines, alone].join("\n"), url).formats);
    const [video] = formats;
    return createAudioFinder({ formats, language: null })(video!)?.format_id ?? video?.format_id;
  };
  const [french, english] = [rendition("a", "fr", ',LANGUAGE="fr"'), rendition("a", "en", ',LANGUAGE="en"')];
  expect(audioOf(french, english, ...variant(800, "a", "avc1.64001f,mp4a.40.2"))).toBe("hls-audio-a-fr");
  expect(audioOf(french, english)).toBe("hls-audio-a-fr");
  expect(audioOf('#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="x"', french)).toBe("hls-64");
});

test("a variant of less quality is played with the audio of its own group, unless that lacks the language", () => {
  const playlist = [
    "#EXTM3U",
    rendition("lo", "de", ',LANGUAGE="de",DEFAULT=YES'),
    rendition("lo", "described", ',LANGUAGE="en",CHARACTERISTICS="public.accessibility.describes-video"'),
    rendition("hi", "en", ',LANGUAGE="en",DEFAULT=YES'),
    rendition("hi", "de", ',LANGUAGE="de"'),
    ...variant(800, "lo", "mp4a.40.5"),
    ...variant(2_000, "hi", "mp4a.40.2"),
    ...variant(3_000, "none of them", "mp4a.40.2"),
  ];
  const { formats } = readHls(playlist.join("\n"), url);
  const playedIn = (language: string) => {
    const audioOf = createAudioFinder({ formats, language });
    return formats.slice(0, 3).map((format) => audioOf(format)?.format_id);
  };
  expect(playedIn("de")).toEqual(["hls-audio-lo-de", "hls-audio-hi-de", undefined]);
  expect(playedIn("en")).toEqual(["hls-audio-hi-en", "hls-audio-hi-en", undefined]);
});

test("of groups with a language each, the language of the page is played, whatever group the best variant has", () => {
  const groups = [rendition("es", "es", ',LANGUAGE="es"'), rendition("en", "en", ',LANGUAGE="en"')];
  const variants = [...variant(2_100, "es", "mp4a.40.2"), ...variant(2_000, "en", "mp4a.40.2")];
  const formats = bestFormats(readHls(["#EXTM3U", ...groups, ...variants].join("\n"), url).formats);
  const audioOf = createAudioFinder({ formats, language: "en" });
  expect(formats.slice(0, 2).map((format) => audioOf(format)?.format_id)).toEqual([
    "hls-audio-en-en",
    "hls-audio-en-en",
  ]);
});

test("audio with the name of that which the best variant has is played with the others", () => {
  const listed = (group: string, choice = "") => [rendition(group, "Director"), rendition(group, "Film", choice)];
  const groups = [...listed("lo"), ...listed("hi", ",DEFAULT=YES")];
  const variants = [...variant(800, "lo", "mp4a.40.5"), ...variant(2_000, "hi", "mp4a.40.2")];
  const { formats } = readHls(["#EXTM3U", ...groups, ...variants].join("\n"), url);
  const audioOf = createAudioFinder({ formats, language: null });
  expect(formats.slice(0, 2).map((format) => audioOf(format)?.format_id)).toEqual([
    "hls-audio-lo-Film",
    "hls-audio-hi-Film",
  ]);
});

test("a group in a codec that few players decode is not played if another one is there", () => {
  const listed = [rendition("plain", "en"), rendition("rare", "en")];
  const variants = [...variant(800, "plain", "mp4a.40.2"), ...variant(2_000, "rare", "ac-4.02.01.01")];
  const formats = bestFormats(readHls(["#EXTM3U", ...listed, ...variants].join("\n"), url).formats);
  const audioOf = createAudioFinder({ formats, language: null });
  expect([formats[0]!.format_id, audioOf(formats[0]!)?.format_id]).toEqual(["hls-2000", "hls-audio-plain-en"]);
});

test("audio in a codec that few players decode is played rather than a dub in another language", () => {
  const sets = ["ac-4.02.01.01 en main", "mp4a.40.2 de dub"].map((set) => {
    const [codecs, lang, role] = set.split(" ");
    const roles = `<Role schemeIdUri="urn:mpeg:dash:role:2011" value="${role}"/>`;
    return `<AdaptationSet mimeType="audio/mp4" codecs="${codecs}" lang="${lang}">${roles}<Representation id="${lang}" bandwidth="1"/></AdaptationSet>`;
  });
  const video = `<AdaptationSet mimeType="video/mp4" codecs="avc1.64001f"><Representation id="v" bandwidth="1"/></AdaptationSet>`;
  const template = `<SegmentTemplate media="$RepresentationID$/$Number$" duration="4"/>`;
  const mpd = `<MPD mediaPresentationDuration="PT8S"><Period>${template}${video}${sets.join("")}</Period></MPD>`;
  const formats = bestFormats(openMpd(mpd, url).listing.formats);
  expect(createAudioFinder({ formats, language: null })(formats[0]!)?.format_id).toBe("dash-en");
});

test("the name of a group is one line of at most 2,000 characters", () => {
  const lines = ["a\0b", "c".repeat(3_000)].flatMap((id) => [rendition(id, "en"), ...variant(800, id, "mp4a.40.2")]);
  const { formats } = readHls(["#EXTM3U", ...lines].join("\n"), url);
  const names = ["ab", "c".repeat(2_000)];
  expect(formats.map(({ audio_group }) => audio_group)).toEqual([...names, ...names]);
});

test("one audio group is not named", () => {
  const { formats } = readHls(
    ["#EXTM3U", rendition("a", "en"), rendition("unused", "en"), ...variant(800, "a", "mp4a.40.2")].join("\n"),
    url,
  );
  expect(formats.map(({ audio_group }) => audio_group)).toEqual([undefined, undefined, undefined]);
});

test("the group replaces the audio of a variant without CODECS, unless none of its renditions has a URL", () => {
  const acodecOf = (attributes: string, ...renditions: string[]) => {
    const lines = ["#EXTM3U", ...renditions, `#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="a"${attributes}`, "v.m3u8"];
    return readHls(lines.join("\n"), url).formats[0]?.acodec;
  };
  const included = '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="x",DEFAULT=YES';
  expect(acodecOf(",RESOLUTION=640x360", rendition("a", "en"))).toBe("none");
  expect(acodecOf(",RESOLUTION=640x360", rendition("a", "en"), included)).toBeNull();
  expect(acodecOf(",RESOLUTION=640x360", rendition("b", "en"))).toBeNull();
  expect(acodecOf("", rendition("a", "en"))).toBe("none");
  expect(acodecOf("", '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="x",URI="data:,"')).toBeNull();
});

test("audio that the variants have, but that is not the default, is listed beside the default one", () => {
  const included = '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="English",LANGUAGE="en"';
  const list = (...lines: string[]) => readHls(["#EXTM3U", ...lines].join("\n"), url).formats;
  const french = rendition("a", "fr", ',LANGUAGE="fr",DEFAULT=YES');
  const variants = [...variant(800, "a", "mp4a.40.2"), ...variant(2_000, "a", "mp4a.40.2")];
  const found = list(included, french, ...variants);
  expect(found.map(({ format_id, acodec, language }) => [format_id, acodec, language])).toEqual([
    ["hls-800", "none", null],
    ["hls-2000", "none", null],
    ["hls-audio-a-fr", "mp4a.40.2", "fr"],
    ["hls-audio-a-English", "mp4a.40.2", "en"],
  ]);
  expect(found.at(-1)).toMatchObject({ vcodec: "none", url: "https://media.example.com/films/42/2000.m3u8" });

  const unstated = ['#EXT-X-STREAM-INF:BANDWIDTH=900000,RESOLUTION=640x360,AUDIO="a"', "v.m3u8"];
  expect(list(included, french, ...unstated), "without CODECS").toMatchObject([
    { acodec: "none", language: null },
    { vcodec: "none", language: "fr" },
    { vcodec: "none", language: "en", url: "https://media.example.com/films/42/v.m3u8" },
  ]);

  const own = list(`${included},DEFAULT=YES`, rendition("a", "fr", ',LANGUAGE="fr"'), ...variants);
  expect(own.map(({ language }) => language)).toEqual(["en", "en", "fr"]);
  const silent = list(included, french, '#EXT-X-STREAM-INF:BANDWIDTH=1,CODECS="avc1.64001f",AUDIO="a"', "v.m3u8");
  expect(silent.map(({ language }) => language)).toEqual([null, "fr"]);
});
