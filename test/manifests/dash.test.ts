import { Value } from "@sinclair/typebox/value";
import { expect, test } from "vitest";
import { Format } from "../../src/model/page-info.ts";
import { openMpd } from "../../src/manifests/dash/dash.ts";
import { failure } from "./failure.ts";

const url = new URL("https://media.example.com/films/42/main.mpd");

function read(body: string, attributes = 'type="static"') {
  const { listing: manifest } = openMpd(`<?xml version="1.0"?>\n<MPD ${attributes}>${body}</MPD>`, url);
  for (const format of manifest.formats) expect(Value.Check(Format, format)).toBe(true);
  return manifest;
}

const segments = '<SegmentTemplate media="$Number$.m4s" duration="4"/>';
const set = (attributes: string, body: string) => `<AdaptationSet ${attributes}>${segments}${body}</AdaptationSet>`;
const period = (body: string, attributes = "") => `<Period ${attributes}>${body}</Period>`;

test("a Representation has its own and inherited attributes", () => {
  const { formats } = read(
    period(
      set(
        'mimeType="video/mp4" codecs="avc1.42e01e" frameRate="30000/1001" width="640" height="360"',
        '<Representation id="lo" bandwidth="800000"/>' +
          '<Representation id="hi" bandwidth="2500500" width="1280" height="720" codecs="avc1.64001f"/>',
      ),
    ),
  );
  expect(formats).toMatchObject([
    { format_id: "dash-lo", width: 640, height: 360, vcodec: "avc1.42e01e", tbr: 800 },
    { format_id: "dash-hi", width: 1280, height: 720, vcodec: "avc1.64001f", tbr: 2500.5 },
  ]);
  expect(formats[0]).toMatchObject({
    url: url.href,
    manifest_url: url.href,
    protocol: "dash",
    ext: "mp4",
    mime_type: "video/mp4",
    fps: 29.97,
    acodec: "none",
    has_drm: false,
  });
});

test("audio has a language and no video", () => {
  const { formats } = read(
    period(
      set('mimeType="audio/mp4" lang="de"', '<Representation id="a" codecs="mp4a.40.2"/>') +
        set('contentType="audio" mimeType="audio/webm" lang="und"', '<Representation id="b"/>'),
    ),
  );
  expect(formats).toMatchObject([
    { ext: "m4a", vcodec: "none", acodec: "mp4a.40.2", language: "de", tbr: null },
    { ext: "webm", vcodec: "none", acodec: null, language: null },
  ]);
});

test("contentType says what a set is, then the media type, then the codecs, but the last two together count more", () => {
  const kinds = (attributes: string, codecs = "") => {
    const { formats } = read(period(set(attributes, `<Representation id="x" ${codecs}/>`)));
    return formats.map(({ vcodec, acodec }) => (vcodec === "none" ? "audio" : acodec === "none" ? "video" : "both"));
  };
  const [avc, aac, both] = ['codecs="avc1.64001f"', 'codecs="mp4a.40.2"', 'codecs="avc1.64001f,mp4a.40.2"'];
  expect(kinds('contentType="audio" mimeType="video/mp2t"', aac)).toEqual(["audio"]);
  expect(kinds('contentType="Audio" mimeType="video/mp4"')).toEqual(["audio"]);
  expect(kinds('contentType="video" mimeType="audio/mp4"', avc)).toEqual(["video"]);
  expect(kinds('contentType="video" mimeType="audio/mp4"', aac)).toEqual(["audio"]);
  expect(kinds('contentType="audio" mimeType="video/mp4"', avc)).toEqual(["video"]);
  expect(kinds('contentType="video" mimeType="video/mp4"', aac)).toEqual(["both"]);
  expect(kinds('contentType="text" mimeType="video/mp4"')).toEqual([]);
  expect(kinds('contentType="image" mimeType="video/mp4"', avc)).toEqual([]);
  expect(kinds('mimeType="video/mp4"', both)).toEqual(["both"]);
  expect(kinds('mimeType="application/mp4"', aac)).toEqual(["audio"]);
  expect(kinds('contentType="application" mimeType="application/mp4"', avc)).toEqual(["video"]);
});

test("a media type of audio has no video, and one of video may have audio alone, unless it has a size", () => {
  const kinds = (attributes: string) => {
    const { formats } = read(period(set(attributes, '<Representation id="x"/>')));
    return formats.map(({ vcodec }) => (vcodec === "none" ? "audio" : "video"));
  };
  const aac = 'codecs="mp4a.40.2"';
  expect(kinds('contentType="video" mimeType="audio/mp4"')).toEqual(["audio"]);
  expect(kinds(`mimeType="video/mp4" ${aac}`)).toEqual(["audio"]);
  // Codecs that are not all of them.
  expect(kinds(`mimeType="video/mp4" ${aac} width="640"`)).toEqual(["video"]);
  expect(kinds(`mimeType="video/mp4" codecs="mp4a.40.2,unheard-of"`)).toEqual(["video"]);
  expect(kinds(`contentType="video" mimeType="video/mp4" ${aac}`)).toEqual(["video"]);
});

test("what has codecs of text alone is text, images are no video, and other words for the content count as none", () => {
  const kinds = (attributes: string) => {
    const { formats } = read(period(set(attributes, '<Representation id="x"/>')));
    return formats.map(({ vcodec }) => (vcodec === "none" ? "audio" : "video"));
  };
  expect(kinds('mimeType="video/mp4" codecs="stpp.ttml.im1t" width="640"')).toEqual([]);
  expect(kinds('mimeType="audio/mp4" codecs="wvtt"')).toEqual([]);
  expect(kinds('mimeType="video/mp4" codecs="avc1.64001f,wvtt"')).toEqual(["video"]);
  expect(kinds('contentType="video" mimeType="image/jpeg" width="640"')).toEqual([]);
  expect(kinds('contentType="muxed" mimeType="video/mp4"')).toEqual(["video"]);
  expect(kinds('contentType="application" mimeType="video/mp4"')).toEqual([]);
});

test("without a media type, a size says that it is video, and a sampling rate or channels that it is audio", () => {
  const video = set('mimeType="video/mp4" codecs="avc1.64001f"', '<Representation id="v"/>');
  const audio = set('mimeType="audio/mp4" codecs="mp4a.40.2"', '<Representation id="a"/>');
  const kinds = (attributes: string, body = "") => {
    const { formats } = read(period(video + audio + set(attributes, `${body}<Representation id="x"/>`)));
    return formats.slice(2).map(({ vcodec }) => (vcodec === "none" ? "audio" : "video"));
  };
  expect(kinds('width="640" height="360"')).toEqual(["video"]);
  expect(kinds('mimeType="application/mp4" width="640"')).toEqual(["video"]);
  expect(kinds('audioSamplingRate="48000"')).toEqual(["audio"]);
  expect(kinds("", '<AudioChannelConfiguration schemeIdUri="urn:x" value="2"/>')).toEqual(["audio"]);
  expect(kinds('mimeType="video/mp4" codecs="avc1.64001f" audioSamplingRate="48000"')).toEqual(["video"]);
  expect(kinds('codecs="stpp" width="640"')).toEqual([]);
  expect(kinds('contentType="application" width="640"')).toEqual([]);
  // All that it may be is there.
  expect(kinds('codecs="unheard-of"')).toEqual([]);
  for (const body of [video, audio]) {
    expect(() => read(period(body + set('codecs="unheard-of"', '<Representation id="x"/>')))).toThrow(
      failure("upstream_invalid", /has no mimeType, so it may be missing audio or video, got "unheard-of"/),
    );
  }
});

test("white space around a value is not part of it", () => {
  const { formats } = read(
    period(set('mimeType=" video/mp4 "', '<Representation id="x" bandwidth=" 800000 " frameRate=" 25 "/>')),
  );
  expect(formats).toMatchObject([{ tbr: 800, fps: 25, mime_type: "video/mp4" }]);
});

test("a ContentComponent describes its set, that of the video one with several", () => {
  const component = (attributes: string, children = "") =>
    `<ContentComponent ${attributes}>${children}</ContentComponent>`;
  const role = '<Role schemeIdUri="urn:mpeg:dash:role:2011" value="dub"/>';
  const { formats } = read(
    period(
      set("", `${component('contentType="audio" lang="fr"', role)}<Representation id="a"/>`) +
        set('lang="de"', `${component('contentType="audio" lang="fr"')}<Representation id="own"/>`) +
        set("", `${component('contentType="audio"')}${component('contentType="Video"')}<Representation id="v"/>`),
    ),
  );
  expect(formats).toMatchObject([
    { format_id: "dash-a", vcodec: "none", language: "fr", roles: ["dub"] },
    { format_id: "dash-own", vcodec: "none", language: "de" },
    { format_id: "dash-v", vcodec: null, language: null },
  ]);
});

test("a Representation that is one file has that file's URL", () => {
  const body =
    '<BaseURL>https://cdn.example.com/x/</BaseURL><Period><AdaptationSet mimeType="video/mp4">' +
    "<BaseURL>y/</BaseURL>" +
    '<Representation id="1"><BaseURL>v.mp4?a=1&amp;b=2</BaseURL><BaseURL>other.mp4</BaseURL><SegmentBase indexRange="1-2"/></Representation>' +
    '<Representation id="2"><BaseURL>file:///etc/passwd</BaseURL></Representation>' +
    "</AdaptationSet></Period>";
  expect(read(body).formats).toMatchObject([
    { format_id: "dash-1", url: "https://cdn.example.com/x/y/v.mp4?a=1&b=2", protocol: "https" },
  ]);
});

const video = (attributes: string, body = "") =>
  set('mimeType="video/mp4"', `<Representation ${attributes}>${body}</Representation>`);

test("what belongs together in several Periods is one format", () => {
  const { formats } = read(
    period(video('id="a" bandwidth="1000" frameRate="25"') + video('id="b" bandwidth="1000"')) +
      period(video('id="c" bandwidth="1500"') + video('id="a" bandwidth="3000"')) +
      period(video('id="a" bandwidth="1000" codecs="avc1.64001f"')),
  );
  expect(formats.map(({ format_id, tbr }) => [format_id, tbr])).toEqual([
    ["dash-a", 1],
    ["dash-b", 1],
  ]);
});

test("the Period that offers most is listed, of several the longest", () => {
  const sizes = (...heights: number[]) => heights.map((height) => video(`id="${height}" height="${height}"`)).join("");
  const heights = (body: string) => read(body).formats.map(({ height }) => height);
  const ad = period(sizes(360, 1080), 'duration="PT600S"');
  expect(heights(ad + period(sizes(240, 480, 720), 'duration="PT60S"'))).toEqual([240, 480, 720]);
  expect(heights(period(sizes(240, 480), 'duration="PT60S"') + ad)).toEqual([360, 1080]);
});

test("a format that no other Period can continue is left out, unless there is no other", () => {
  const codecs = (...names: string[]) => period(names.map((name) => video(`id="${name}" codecs="${name}"`)).join(""));
  const listed = (body: string) => read(body).formats.map(({ vcodec }) => vcodec);
  expect(listed(codecs("hvc1.1", "avc1.64001f") + codecs("avc3.42e01e"))).toEqual(["avc1.64001f"]);
  expect(listed(codecs("hvc1.1") + codecs("avc3.42e01e"))).toEqual(["hvc1.1"]);
});

test("a language that the longest Period lacks is not listed, but one that another Period lacks is", () => {
  const audio = (lang: string) => set(`mimeType="audio/mp4" lang="${lang}"`, `<Representation id="${lang}"/>`);
  const languages = (long: readonly string[], short: readonly string[]) => {
    const [program, ad] = [long, short].map((each) => each.map(audio).join(""));
    const body = period(program!, 'duration="PT600S"') + period(ad!, 'duration="PT60S"');
    return read(body).formats.map(({ language }) => language);
  };
  expect(languages(["en-GB"], ["de", "en"])).toEqual(["en"]);
  expect(languages(["de", "en"], ["fr"])).toEqual(["de", "en"]);
  expect(languages(["en"], ["de", "fr"])).toEqual(["de", "fr"]);
  expect(languages([""], ["de", "en"])).toEqual(["de", "en"]);
});

test("a format is protected if one of its Periods is", () => {
  const clear = video('id="1"');
  const encrypted = video('id="1"', "<ContentProtection/>");
  const isProtected = (body: string) => read(body).formats.map(({ has_drm }) => has_drm);
  expect(isProtected(period(clear) + period(encrypted))).toEqual([true]);
  expect(isProtected(period(clear + clear) + period(encrypted + clear))).toEqual([false, false]);
});

test("layers that cannot be decoded alone are left out", () => {
  const { formats } = read(
    period(
      video('id="base" codecs="avc1.64001f" height="540"') +
        video('id="lcevc" codecs="lvc1.1.1" height="1080" dependencyId="base"') +
        video('id="layer" codecs="avc1.64001f" height="1080" dependencyId="base"') +
        video('id="enhancement" codecs="lvc1" height="1080"'),
    ),
  );
  expect(formats.map(({ format_id }) => format_id)).toEqual(["dash-base"]);
});

test("ContentProtection of a set or a Representation is DRM", () => {
  const protection = '<ContentProtection schemeIdUri="urn:mpeg:dash:mp4protection:2011"/>';
  const { formats } = read(
    period(
      set('mimeType="video/mp4"', `${protection}<Representation id="1"/>`) +
        set('mimeType="video/mp4"', `<Representation id="2">${protection}</Representation><Representation id="3"/>`),
    ),
  );
  expect(formats.map((format) => format.has_drm)).toEqual([true, true, false]);
});

test("text becomes subtitles, images are left out", () => {
  const role = (value: string) => `<Role schemeIdUri="urn:mpeg:dash:role:2011" value="${value}"/>`;
  const listed = { url: url.href, manifest_url: url.href };
  const { formats, subtitles } = read(
    period(
      '<AdaptationSet mimeType="text/vtt" lang="en"><Label>English</Label><Representation id="t"><BaseURL>en.vtt</BaseURL></Representation></AdaptationSet>' +
        set(
          'mimeType="application/mp4" codecs="stpp.ttml" lang="fr"',
          `${role("forced_subtitle")}<Representation id="s"/>`,
        ) +
        set('mimeType="application/mp4" codecs="wvtt" lang="fr"', `${role("caption")}<Representation id="w"/>`) +
        set('mimeType="image/jpeg" contentType="image"', '<Representation id="i"/>') +
        set('mimeType="application/x-other"', '<Representation id="o"/>'),
    ),
  );
  expect(formats).toEqual([]);
  expect(subtitles).toEqual({
    en: [{ url: "https://media.example.com/films/42/en.vtt", ext: "vtt", name: "English", role: "subtitles" }],
    fr: [
      { ...listed, ext: "ttml", name: null, role: "forced", format_id: "text-s" },
      { ...listed, ext: "vtt", name: null, role: "captions", format_id: "text-w" },
    ],
  });
});

test.each([
  ["PT1H2M3.5S", 3723.5],
  ["P1Y2M3DT4H5M6S", 31_536_000 + 2 * 2_592_000 + 3 * 86_400 + 4 * 3600 + 5 * 60 + 6],
  ["P0Y0M0DT0H0M16S", 16],
  ["PT30.016666666666666S", 30.016_667],
  ["PT0S", null],
  ["-PT5S", null],
  ["5 minutes", null],
])("the duration %s is %j seconds", (stated, seconds) => {
  expect(read("", `mediaPresentationDuration="${stated}"`).duration).toBe(seconds);
});

test("without a stated duration the Periods' durations count if all have one", () => {
  const timed = period("", 'duration="PT10.5S"') + period("", 'start="PT10.5S" duration="PT5S"');
  expect(read(timed).duration).toBe(15.5);
  expect(read(timed + period("")).duration).toBeNull();
  expect(read(timed, 'type="dynamic"').duration).toBeNull();
});

test("a dynamic MPD whose end is over was live", () => {
  const status = (attributes: string) => read(period(""), `type="dynamic" ${attributes}`).live_status;
  const [past, future] = ["2020-01-01T00:00:00Z", "9999-01-01T00:00:00Z"];
  expect(status(`availabilityStartTime="${past}" mediaPresentationDuration="PT8S"`)).toBe("was_live");
  expect(status(`availabilityStartTime="${future}" mediaPresentationDuration="PT8S"`)).toBe("is_live");
  expect(status(`availabilityStartTime="${past}" minimumUpdatePeriod="PT2S"`)).toBe("is_live");
});

test("a dynamic MPD is live, and will be as long as it has no Period with a start", () => {
  const status = (body: string) => read(body, 'type="dynamic"').live_status;
  expect(status("<Period/>")).toBe("is_live");
  expect(status("")).toBe("is_upcoming");
  expect(status('<Period start="PT0S" duration="PT9S"/><Period/><Period/>')).toBe("is_live");
  expect(read("").live_status).toBe("not_live");
  expect(read("").live_status).toBe("not_live");
});

test("namespace prefixes, CDATA and comments are accepted", () => {
  const text =
    '\uFEFF<!-- made by hand --><dash:MPD xmlns:dash="urn:mpeg:dash:schema:mpd:2011"><dash:Period>' +
    '<dash:AdaptationSet mimeType="video/webm; codecs=vp9"><cenc:pssh>AAAA</cenc:pssh>' +
    "<dash:Representation id='9'><dash:BaseURL><![CDATA[a.webm?x=1&y=2]]></dash:BaseURL></dash:Representation></dash:AdaptationSet></dash:Period></dash:MPD>";
  expect(openMpd(text, url).listing.formats).toMatchObject([
    { format_id: "dash-9", ext: "webm", url: "https://media.example.com/films/42/a.webm?x=1&y=2" },
  ]);
});

test("an MPD that is cut off lists nothing: what is missing may be all audio", () => {
  const text = `<MPD>${period(set('mimeType="video/mp4"', '<Representation id="v"/>'))}</MPD>`;
  expect(openMpd(text, url).listing.formats).toHaveLength(1);
  for (const end of ["</MPD>", "</Period></MPD>", "</AdaptationSet></Period></MPD>"]) {
    const cut = () => openMpd(text.slice(0, text.indexOf(end)), url);
    expect(cut).toThrow(failure("upstream_unreachable", /cut off/));
  }
});

test("elements of other namespaces are ignored, whatever their names are", () => {
  const other = set('mimeType="video/mp4"', '<Representation id="other" bandwidth="9"/>');
  const own = set('mimeType="video/mp4"', '<Representation id="own"/>');
  const ids = (text: string) => openMpd(text, url).listing.formats.map(({ format_id }) => format_id);
  const dashUrn = "urn:mpeg:dash:schema:mpd:2011";
  const prefixed = (prefix: string, text: string) => text.replace(/<(\/?)/g, `<$1${prefix}:`);
  // With a prefix, without one, declared on the element itself or on one around it.
  expect(ids(`<MPD xmlns="${dashUrn}" xmlns:x="urn:x"><Period>${prefixed("x", other)}${own}</Period></MPD>`)).toEqual([
    "dash-own",
  ]);
  const bare = other.replace("<AdaptationSet", '<AdaptationSet xmlns="urn:x"');
  expect(ids(`<MPD xmlns="${dashUrn}"><Period>${bare}${own}</Period></MPD>`)).toEqual(["dash-own"]);
  const around = `<d:MPD xmlns="urn:x" xmlns:d="${dashUrn}"><d:Period>${other}${prefixed("d", own)}</d:Period></d:MPD>`;
  expect(ids(around)).toEqual(["dash-own"]);
  // Within such an element, nothing is of the MPD but what says so.
  const within = `<MPD xmlns="${dashUrn}"><Period><Extension xmlns="urn:x">${other}</Extension>${own}</Period></MPD>`;
  expect(ids(within)).toEqual(["dash-own"]);
  // The namespace of an earlier edition, no namespace, and a prefix that nothing declares are no other ones.
  const earlier = own.replace("<AdaptationSet", '<AdaptationSet xmlns="urn:mpeg:DASH:schema:MPD:2011"');
  expect(ids(`<MPD xmlns="${dashUrn}"><Period>${earlier}</Period></MPD>`)).toEqual(["dash-own"]);
  expect(ids(`<MPD><Period>${prefixed("x", own)}</Period></MPD>`)).toEqual(["dash-own"]);
});

test("base URLs and names that are refused count only in the MPD's own namespace", () => {
  const foreign = '<x:BaseURL byteRange="$base$">https://other.example/</x:BaseURL><x:Pattern/>';
  const own = '<AdaptationSet mimeType="video/mp4"><Representation id="1"><BaseURL>v.mp4</BaseURL></Representation>';
  const text = `<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" xmlns:x="urn:x">${foreign}${period(own)}</MPD>`;
  expect(openMpd(text, url).listing.formats).toMatchObject([{ url: "https://media.example.com/films/42/v.mp4" }]);
});

test("declared entities are not expanded", () => {
  const text =
    '<!DOCTYPE MPD [<!ENTITY a "https://evil.example/"><!ENTITY f SYSTEM "file:///etc/passwd">]>' +
    '<MPD><Period><AdaptationSet mimeType="video/mp4"><Representation id="&f;"><BaseURL>&a;v.mp4</BaseURL>' +
    "</Representation></AdaptationSet></Period></MPD>";
  const { formats } = openMpd(text, url).listing;
  expect(formats[0]).toMatchObject({
    format_id: "dash-&f;",
    url: "https://media.example.com/films/42/&a;v.mp4",
  });
});

test("at most 2,000 formats are listed", () => {
  const many = Array.from({ length: 3_000 }, (_, n) => `<Representation id="1" bandwidth="${n}"/>`);
  const { formats } = read(period(set('mimeType="video/mp4"', many.join(""))));
  expect(new Set(formats.map((format) => format.format_id)).size).toBe(2_000);
});

test.each([
  "",
  "not XML at all",
  "<!doctype html><html><body>Sign in</body></html>",
  '<SmoothStreamingMedia MajorVersion="2"/>',
  "<Period/>",
  "<MPD>".repeat(100),
])("other text than an MPD is refused: %s", (text) => {
  expect(() => openMpd(text, url)).toThrow(expect.objectContaining({ name: "ServiceError", code: "upstream_invalid" }));
});

test("more than 4 Mi characters are refused", () => {
  expect(() => openMpd(`<MPD>${" ".repeat(4_194_304)}</MPD>`, url)).toThrow(/the limit is 4194304/);
});

test.each([
  ['mediaPresentationDuration="PT108S"', 'start="PT100S"', 8],
  ['mediaPresentationDuration="PT8S"', 'start="PT100S"', 8],
  ['mediaPresentationDuration="PT8S"', "", 8],
  ["", 'start="PT100S" duration="PT8S"', 8],
])("the time before the first Period does not count: %s, %s", (total, times, duration) => {
  expect(read(period("", times), `type="static" ${total}`).duration).toBe(duration);
});
