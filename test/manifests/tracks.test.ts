import { Value } from "@sinclair/typebox/value";
import { expect, test } from "vitest";
import { openMpd } from "../../src/manifests/dash/dash.ts";
import { readHls } from "../../src/manifests/hls/hls.ts";
import { byQuality, createAudioFinder } from "../../src/model/format-ranking.ts";
import { Format } from "../../src/model/page-info.ts";

const url = new URL("https://media.example.com/films/42/main");

const template = '<SegmentTemplate media="$Number$.m4s" duration="4"/>';

/** Returns the formats of an MPD, the best first. */
function readDash(...sets: string[]): Format[] {
  const mpd = `<MPD mediaPresentationDuration="PT8S"><Period>${template}${sets.join("")}</Period></MPD>`;
  const { formats } = openMpd(mpd, url).listing;
  for (const format of formats) expect(Value.Check(Format, format)).toBe(true);
  return formats.toSorted(byQuality);
}

const dashSet = (type: string, id: string, bandwidth: number, children = "", attributes = "") =>
  `<AdaptationSet mimeType="${type}/mp4" ${attributes}>${children}` +
  `<Representation id="${id}" bandwidth="${bandwidth}" codecs="${type === "video" ? "avc1.64001f" : "mp4a.40.2"}"/></AdaptationSet>`;
const video = (...rest: [string, number, string?, string?]) => dashSet("video", ...rest);
const audio = (...rest: [string, number, string?, string?]) => dashSet("audio", ...rest);
const descriptor = (name: string) => (value: string, scheme: string) =>
  `<${name} schemeIdUri="${scheme}" value="${value}"/>`;
const role = (value: string, scheme = "urn:mpeg:dash:role:2011") => descriptor("Role")(value, scheme);
const accessibility = descriptor("Accessibility");
const essential = descriptor("EssentialProperty");
const supplemental = descriptor("SupplementalProperty");

const trickMode = "http://dashif.org/guidelines/trickmode";
const ids = (formats: readonly Format[]) => formats.map(({ format_id }) => format_id);
const preferences = (formats: readonly Format[]) => formats.map(({ preference = 0 }) => preference);

test("the main track comes before one without a role, a dub, and a description, whatever their bit rates are", () => {
  const formats = readDash(
    audio("description", 900, accessibility("1", "urn:tva:metadata:cs:AudioPurposeCS:2007") + role("alternate")),
    audio("dub", 800, role("dub"), 'lang="fr"'),
    audio("plain", 700),
    audio("main", 64, role("main")),
    audio("both", 600, role("main") + accessibility("description", "urn:mpeg:dash:role:2011")),
  );
  expect(ids(formats)).toEqual(["dash-main", "dash-plain", "dash-dub", "dash-both", "dash-description"]);
  expect(preferences(formats)).toEqual([0, -1, -2, -3, -4]);
  expect(formats.map(({ roles }) => roles)).toEqual([
    ["main"],
    undefined,
    ["dub"],
    ["main", "description"],
    ["description", "alternate"],
  ]);
});

test("codecs that few players decode come after others, but before what is not the programme", () => {
  const sound = (id: string, bandwidth: number, codecs: string, children = "", attributes = "") =>
    `<AdaptationSet mimeType="audio/mp4" ${attributes}>${children}<Representation id="${id}" bandwidth="${bandwidth}" codecs="${codecs}"/></AdaptationSet>`;
  const picture = (id: string, height: number, codecs: string) =>
    `<AdaptationSet mimeType="video/mp4"><Representation id="${id}" bandwidth="${height}" height="${height}" codecs="${codecs}"/></AdaptationSet>`;
  const formats = readDash(
    picture("vision", 2160, "dvh1.05.06"),
    picture("compatible", 1440, "dvh1.08.06"),
    picture("vvc", 4320, "vvc1.1.L93"),
    picture("avc", 720, "avc1.64001f"),
    sound("mpegh", 900, "mhm1.0x0D", "", 'lang="fr"'),
    sound("dts", 800, "dtsc"),
    sound("surround", 640, "ec-3"),
    sound("stereo", 128, "mp4a.40.2", "", 'lang="en"'),
    sound("dub", 2_000, "mp4a.40.2", role("dub")),
  );
  const names = ["compatible", "avc", "vvc", "vision", "surround", "stereo", "mpegh", "dts", "dub"];
  expect(ids(formats)).toEqual(names.map((name) => `dash-${name}`));
});

test("of audio that only languages distinguish, the language that is listed first comes first, in its best quality", () => {
  const lang = (tag: string) => `lang="${tag}"`;
  const formats = readDash(
    video("picture", 64, "", lang("de")),
    video("taller", 900, "", lang("en")),
    audio("description", 900, role("description"), lang("fr")),
    audio("low", 64, "", lang("en")),
    audio("german", 128, "", lang("de")),
    audio("unknown", 96),
    audio("high", 100, "", lang("en")),
    audio("french", 160, "", lang("fr")),
  );
  const names = ["taller", "picture", "high", "unknown", "low", "german", "french", "description"];
  expect(ids(formats)).toEqual(names.map((name) => `dash-${name}`));
  expect(preferences(formats)).toEqual([0, 0, 0, 0, 0, -1, -2, -3]);
  const marked = readDash(
    audio("first", 900, "", lang("en")),
    audio("preferred", 64, "", `${lang("de")} selectionPriority="2"`),
  );
  expect(ids(marked)).toEqual(["dash-preferred", "dash-first"]);
});

test("roles of other schemes and unknown values choose nothing", () => {
  const formats = readDash(
    audio("a", 900, role("dub", "urn:example:roles") + accessibility("9", "urn:tva:metadata:cs:AudioPurposeCS:2007")),
    audio("b", 64, role("unheard-of")),
  );
  expect(ids(formats)).toEqual(["dash-a", "dash-b"]);
  expect(preferences(formats)).toEqual([0, 0]);
});

test("a piece of the picture, and audio that is to be mixed with other, come after what is whole", () => {
  const piece = (value: string) => supplemental(value, "urn:mpeg:dash:srd:2014");
  const mixed = (value: string) => supplemental(value, "urn:mpeg:dash:audio-receiver-mix:2014");
  const rolesOf = (...sets: string[]) => readDash(...sets).map(({ format_id, roles }) => [format_id, roles?.join()]);
  expect(
    rolesOf(video("right", 900, piece("1,640,0,640,720,1280,720")), video("whole", 1, piece("1,0,0,1,1,1,1"))),
  ).toEqual([
    ["dash-whole", undefined],
    ["dash-right", "supplementary"],
  ]);
  expect(rolesOf(video("untold", 900, piece("1,0,0,640,360")), video("odd", 1, piece("")))).toEqual([
    ["dash-untold", undefined],
    ["dash-odd", undefined],
  ]);
  expect(rolesOf(audio("mixed", 900, mixed("1")), audio("alone", 1, mixed("0")))).toEqual([
    ["dash-alone", undefined],
    ["dash-mixed", "supplementary"],
  ]);
});

test("kinds of HTML tracks are roles", () => {
  const kind = (value: string) => role(value, "about:html-kind");
  const formats = readDash(
    audio("main-desc", 900, kind("main-desc")),
    audio("translation", 800, kind("translation")),
    audio("commentary", 700, kind("commentary")),
    audio("unheard-of", 600, kind("unheard-of")),
    audio("main", 64, kind("main")),
  );
  expect(formats.map(({ roles }) => roles?.join())).toEqual(["main", undefined, "dub", "description", "commentary"]);
});

test("sign language and alternate videos come after the programme", () => {
  const formats = readDash(
    video("sign", 900, role("sign"), 'height="1080"'),
    video("angle", 900, role("alternate"), 'height="1080"'),
    video("film", 300, "", 'height="360"'),
  );
  expect(ids(formats)).toEqual(["dash-film", "dash-angle", "dash-sign"]);
});

test("selectionPriority counts between tracks of the same roles", () => {
  const formats = readDash(
    video("first", 900),
    video("second", 300, "", 'selectionPriority="2"'),
    video("last", 999, role("alternate"), 'selectionPriority="4294967295"'),
    video("odd", 900, "", 'selectionPriority="-5"'),
  );
  expect(ids(formats)).toEqual(["dash-second", "dash-first", "dash-odd", "dash-last"]);
});

test("what is for fast forward only is not listed", () => {
  const formats = readDash(
    video("fast", 900, essential("1", trickMode)),
    video("faster", 900, supplemental("1", trickMode.toUpperCase())),
    video("film", 300),
  );
  expect(ids(formats)).toEqual(["dash-film"]);
});

test("a set is ignored if one of its essential properties is not understood", () => {
  const formats = readDash(
    video("tile", 900, essential("0,0,0,1,1,2,2", "urn:mpeg:dash:srd:2014")),
    video("hdr", 600, essential("16", "urn:mpeg:mpegB:cicp:TransferCharacteristics")),
    video("film", 300, supplemental("0,0,0,2,2,2,2", "urn:mpeg:dash:srd:2014")),
  );
  expect(ids(formats)).toEqual(["dash-hdr", "dash-film"]);
});

test("a manifest of which nothing else is left of the video or of the audio is refused by the property's name", () => {
  const unknown = essential("x", "urn:example:unknown");
  const refusal = expect.objectContaining({
    code: "upstream_invalid",
    message: expect.stringMatching(/audio has an EssentialProperty that is not understood, got "urn:example:unknown"/),
  });
  expect(() => readDash(video("film", 300), audio("a", 64, unknown))).toThrow(refusal);
  expect(() => readDash(video("film", 300, unknown), audio("a", 64))).toThrow(/all its video/);
  expect(() => readDash(unknown, video("film", 300), audio("a", 64))).toThrow(/all its video/);
  expect(ids(readDash(video("film", 300), audio("a", 64), audio("b", 64, unknown)))).toEqual(["dash-film", "dash-a"]);
});

test("a manifest with more descriptors in one element than are read is refused", () => {
  const sets = video("film", 300, role("main").repeat(65));
  const mpd = openMpd(`<MPD mediaPresentationDuration="PT8S"><Period>${template}${sets}</Period></MPD>`, url);
  expect(() => mpd.segments("dash-film")).toThrow(/more Representations or descriptors than are read/);
});

test("in another Period, the track with the same roles continues", () => {
  const period = (first: string, second: string) =>
    `<Period duration="PT4S"><SegmentTemplate media="$RepresentationID$-$Number$.m4s" duration="4"/>${first}${second}</Period>`;
  const described = (id: string) => audio(id, 64, role("description"));
  const main = (id: string) => audio(id, 96, role("main"));
  const mpd = openMpd(`<MPD>${period(main("m1"), described("d1"))}${period(described("d2"), main("m2"))}</MPD>`, url);
  const segments = (id: string) =>
    mpd.segments(id).segments.flatMap((segment) => (segment.isOptional ? [] : segment.url.replace(/.*\//, "")));
  expect(segments("dash-m1")).toEqual(["m1-1.m4s", "m2-1.m4s"]);
  expect(segments("dash-d1")).toEqual(["d1-1.m4s", "d2-1.m4s"]);
});

test("Periods that have audio in another language or as a description only are told, those of an unknown language are not", () => {
  const period = (...sets: string[]) => `<Period duration="PT4S">${template}${sets.join("")}</Period>`;
  const english = audio("en", 64, role("main"), 'lang="en"');
  const replacedIn = (second: string, start = "") => {
    const pictures = (language: string) => video("v", 90, "", `lang="${language}"`);
    const periods = `${period(english, pictures("en"))}${period(second, pictures("fr"))}`;
    const mpd = openMpd(`<MPD>${periods.replace("<Period", `<Period ${start}`)}</MPD>`, url);
    return [mpd.segments("dash-en").replaced, mpd.segments("dash-v").replaced];
  };
  const french = audio("fr", 64, role("main"), 'lang="fr"');
  const described = audio("ad", 64, role("description"), 'lang="en-GB"');
  expect(replacedIn(french)).toEqual([
    [{ startS: 4, endS: 8, what: 'Period 2 has this track only as "fr, main"' }],
    undefined,
  ]);
  expect(replacedIn(described)).toEqual([
    [{ startS: 4, endS: 8, what: 'Period 2 has this track only as "en-GB, description"' }],
    undefined,
  ]);
  // A cut counts from where the file starts.
  expect(replacedIn(french, 'start="PT1H"')).toEqual(replacedIn(french));
  expect(replacedIn(french + described + english)).toEqual([undefined, undefined]);
  expect(replacedIn(audio("us", 64, "", 'lang="en-US"'))).toEqual([undefined, undefined]);
  expect(replacedIn(audio("any", 64))).toEqual([undefined, undefined]);
});

test("of equal Periods, that with roles says which track is the programme", () => {
  const period = (french: string, english: string) =>
    `<Period duration="PT4S">${template}${audio("fr", 900, french, 'lang="fr"')}${audio("en", 64, english, 'lang="en"')}</Period>`;
  const best = (...periods: string[]) =>
    ids(openMpd(`<MPD>${periods.join("")}</MPD>`, url).listing.formats.toSorted(byQuality))[0];
  expect(best(period("", ""), period("", role("main")))).toBe("dash-en");
  expect(best(period(role("main"), ""), period("", ""))).toBe("dash-fr");
  expect(best(period("", ""), period("", ""))).toBe("dash-fr");
});

test("auxiliary pictures and depth are not formats, but what is associated otherwise is", () => {
  const associated = (types: string) =>
    `<AdaptationSet mimeType="video/mp4"><Representation id="a" bandwidth="900" associationId="film" associationType="${types}"/></AdaptationSet>`;
  const listed = (types: string) => ids(readDash(video("film", 300), associated(types)));
  expect(["vdep", "cdsc auxl", "auxv\n"].map(listed)).toEqual([["dash-film"], ["dash-film"], ["dash-film"]]);
  expect(listed("cdsc")).toEqual(["dash-a", "dash-film"]);
});

function listHls(...lines: string[]): Format[] {
  const { formats } = readHls(["#EXTM3U", ...lines].join("\n"), url);
  for (const format of formats) expect(Value.Check(Format, format)).toBe(true);
  return formats;
}
const bestHls = (...lines: string[]) => listHls(...lines).toSorted(byQuality);

const media = (type: string, group: string, name: string, rest = "") =>
  `#EXT-X-MEDIA:TYPE=${type},GROUP-ID="${group}",NAME="${name}"${rest}`;
const own = (name: string) => `,URI="${name}.m3u8"`;
test("the roles of a Preselection are those of its set, if no other one has it and the set has none of its own", () => {
  const set = (id: string, inner = "") =>
    `<AdaptationSet id="${id}" mimeType="audio/mp4">${inner}<Representation id="${id}" bandwidth="64000"/></AdaptationSet>`;
  const preselection = (sets: string, value: string) =>
    `<Preselection preselectionComponents="${sets}">${role(value)}</Preselection>`;
  const rolesOf = (...inner: string[]) => {
    const mpd = openMpd(`<MPD mediaPresentationDuration="PT4S"><Period>${inner.join("")}</Period></MPD>`, url);
    return mpd.listing.formats.map(({ roles = [] }) => roles.join());
  };
  expect(rolesOf(set("1"), set("2"), preselection("2", "description"))).toEqual(["", "description"]);
  expect(rolesOf(set("1"), set("2"), preselection(" 1 2 ", "description"))).toEqual(["", ""]);
  expect(rolesOf(set("1"), preselection("1", "description"), preselection("1", "main"))).toEqual([""]);
  expect(rolesOf(set("1", role("dub")), preselection("1", "description"))).toEqual(["dub"]);
});

test("thousands of Preselections take linear time", () => {
  const list = (of: (id: number) => string) => Array.from({ length: 3_000 }, (_, id) => of(id)).join("");
  const sets = list(
    (id) => `<AdaptationSet id="${id}" mimeType="audio/mp4"><Representation bandwidth="9"/></AdaptationSet>`,
  );
  const preselections = list(
    (id) => `<Preselection preselectionComponents="${id} ${id + 1}">${role("main")}</Preselection>`,
  );
  const secondsOf = (inner: string) => {
    const began = process.cpuUsage();
    openMpd(`<MPD mediaPresentationDuration="PT4S"><Period>${inner}</Period></MPD>`, url);
    const { user, system } = process.cpuUsage(began);
    return (user + system) / 1e6;
  };
  secondsOf(sets);
  // Twice as long a text takes about twice as long; a look at all of them for each set took 13 times.
  expect(secondsOf(sets + preselections) / secondsOf(sets)).toBeLessThan(7);
});

const described = ',CHARACTERISTICS="public.accessibility.describes-video"';
const variant = (kbits: number, rest: string) =>
  `#EXT-X-STREAM-INF:BANDWIDTH=${kbits}000,CODECS="avc1.64001f,mp4a.40.2"${rest}\n${kbits}.m3u8`;

test("a described rendition comes last, even if it is the first or the default one", () => {
  for (const choice of [",AUTOSELECT=YES", ",DEFAULT=YES,AUTOSELECT=YES"]) {
    const formats = bestHls(
      media("AUDIO", "a", "described", own("d") + choice + described),
      media("AUDIO", "a", "plain", own("p") + ",AUTOSELECT=YES"),
      media("AUDIO", "a", "never", own("n")),
      variant(400, ',AUDIO="a"'),
    );
    expect(ids(formats)).toEqual(["hls-400", "hls-audio-a-plain", "hls-audio-a-never", "hls-audio-a-described"]);
    expect(formats.at(-1)?.roles).toContain("description");
  }
});

test("a rendition that states that it is dubbed or no part of the programme comes after others", () => {
  for (const [word, stated] of [
    ["translation.dubbed", "dub"],
    ["translation.voice-over", "dub"],
    ["auxiliary-content", "supplementary"],
  ]) {
    const formats = bestHls(
      media("AUDIO", "a", "other", `${own("o")},AUTOSELECT=YES,CHARACTERISTICS="public.${word}"`),
      media("AUDIO", "a", "plain", `${own("p")},AUTOSELECT=YES,CHARACTERISTICS="public.main-program-content"`),
      variant(400, ',AUDIO="a"'),
    );
    expect(ids(formats)).toEqual(["hls-400", "hls-audio-a-plain", "hls-audio-a-other"]);
    expect(formats.map(({ roles }) => roles)).toEqual([undefined, undefined, [stated]]);
  }
});

test("audio that only its name calls a description comes after other audio, unless it is the default", () => {
  const firstOf = (name: string, rest = "") =>
    bestHls(
      media("AUDIO", "a", name, own("d") + rest),
      media("AUDIO", "a", "English", own("p")),
      variant(400, ',AUDIO="a"'),
    )[1]?.format_id;
  const names = [
    "English (Audio Description)",
    "Audiodescripción",
    "Audiodeskrypcja",
    "English - Descriptive",
    "English AD",
    "eng_AD",
    "[AD]",
    "Syntolkat",
  ];
  for (const name of names) expect(firstOf(name)).toBe("hls-audio-a-English");
  expect(firstOf("English (Audio Description)", ",DEFAULT=YES")).toBe("hls-audio-a-English (Audio Description)");
  for (const name of ["Description", "Commentary", "Load", "Ad", "AD hoc"]) {
    expect(firstOf(name)).toBe(`hls-audio-a-${name}`);
  }
  const labelled = (roles: string) =>
    readDash(audio("d", 900, `<Label>English Audio Description</Label>${roles}`), audio("p", 64));
  expect(labelled("").map(({ format_id, roles }) => [format_id, roles])).toEqual([
    ["dash-p", undefined],
    ["dash-d", ["description"]],
  ]);
  expect(ids(labelled(role("main")))).toEqual(["dash-d", "dash-p"]);
  expect(labelled(role("dub")).map(({ roles }) => roles)).toEqual([undefined, ["dub", "description"]]);
  const dubbed = ',CHARACTERISTICS="public.translation.dubbed"';
  const dubs = [
    media("AUDIO", "a", "Audiodeskription", own("d") + dubbed),
    media("AUDIO", "a", "Deutsch", own("p") + dubbed),
  ];
  expect(bestHls(...dubs, variant(400, ',AUDIO="a"'))[1]?.format_id).toBe("hls-audio-a-Deutsch");
});

test("a group of described audio alone comes after the other groups", () => {
  const formats = bestHls(
    media("AUDIO", "ad", "described", own("d") + ",DEFAULT=YES" + described),
    media("AUDIO", "a", "plain", own("p") + ",DEFAULT=YES"),
    variant(900, ',AUDIO="ad"'),
    variant(400, ',AUDIO="a"'),
  );
  const [best] = formats;
  expect(createAudioFinder({ formats, language: null })(best!)?.format_id).toBe("hls-audio-a-plain");
});

test("the default rendition replaces another one that is in the variant", () => {
  const [muxed] = bestHls(
    media("AUDIO", "a", "Commentary", ",AUTOSELECT=YES"),
    media("AUDIO", "a", "Film", own("film") + ",DEFAULT=YES,AUTOSELECT=YES"),
    variant(400, ',AUDIO="a"'),
  );
  expect(muxed).toMatchObject({ format_id: "hls-400", acodec: "none" });
});

test("a variant whose own audio is a description comes after one with the plain audio", () => {
  const formats = bestHls(
    media("AUDIO", "d", "described", described),
    media("AUDIO", "a", "plain"),
    variant(900, ',AUDIO="d"'),
    variant(400, ',AUDIO="a"'),
  );
  expect(formats.map(({ format_id, roles }) => [format_id, roles])).toEqual([
    ["hls-400", undefined],
    ["hls-900", ["description"]],
  ]);
});

test("the default rendition of a VIDEO group is played, the other angles are listed after it", () => {
  const formats = bestHls(
    media("VIDEO", "v", "Goal", own("goal")),
    media("VIDEO", "v", "Field", own("field") + ",DEFAULT=YES"),
    variant(400, ',VIDEO="v"'),
  );
  expect(formats.map(({ format_id, url: address }) => [format_id, address.replace(/.*\//, "")])).toEqual([
    ["hls-400", "field.m3u8"],
    ["hls-video-v-Goal", "goal.m3u8"],
  ]);
  expect(formats[1]).toMatchObject({ roles: ["alternate"], preference: -1 });
});

test("without a default angle, the variant's own one is played", () => {
  const formats = bestHls(media("VIDEO", "v", "A"), media("VIDEO", "v", "B", own("b")), variant(400, ',VIDEO="v"'));
  expect(formats.map(({ url: address }) => address.replace(/.*\//, ""))).toEqual(["400.m3u8", "b.m3u8"]);
});

test("SCORE orders variants if all have one", () => {
  const scored = (score: string) => bestHls(variant(900, ",SCORE=1.5"), variant(400, score));
  expect(ids(scored(",SCORE=2.25"))).toEqual(["hls-400", "hls-900"]);
  expect(ids(scored(""))).toEqual(["hls-900", "hls-400"]);
});

test("video of two views or of a sphere comes after what a screen shows", () => {
  const rolesOf = (layout: string) =>
    readHls(`#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1,RESOLUTION=640x360,REQ-VIDEO-LAYOUT="${layout}"\nv.m3u8`, url)
      .formats[0]?.roles;
  for (const layout of ["CH-STEREO", "CH-MONO/PROJ-EQUI", "PROJ-HEQU", "ch-stereo/proj-rect"]) {
    expect(rolesOf(layout), layout).toEqual(["alternate"]);
  }
  for (const layout of ["CH-MONO", "PROJ-RECT", "PROJ-RECT/CH-MONO", "CH-STEREO,CH-MONO", "unheard-of", ""]) {
    expect(rolesOf(layout), layout).toBeUndefined();
  }
});

test("I-frame playlists are not formats", () => {
  const formats = bestHls('#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=9000000,URI="i.m3u8"', variant(400, ""));
  expect(ids(formats)).toEqual(["hls-400"]);
});

test("the original is chosen, not a dub or a description in the page's language", () => {
  const find = (kind: string, original: string) => {
    const formats = readDash(
      video("film", 300),
      audio("main", 64, original, 'lang="fr"'),
      audio("other", 96, role(kind), 'lang="en"'),
    );
    return createAudioFinder({ formats, language: "en" })(formats[0]!)?.format_id;
  };
  expect(find("dub", role("main"))).toBe("dash-main");
  expect(find("description", role("main"))).toBe("dash-main");
  // Where nothing is said to be the original.
  expect(find("dub", "")).toBe("dash-other");
  expect(find("description", "")).toBe("dash-main");
});
