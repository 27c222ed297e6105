import { describe, expect, it } from "vitest";
import { openMpd } from "../../src/manifests/dash/dash.ts";
import { readHls } from "../../src/manifests/hls/hls.ts";

const url = new URL("https://media.example.com/film/main.m3u8");

const rendition = (group: string, name: string, rest = "") =>
  `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="${group}",NAME="${name}",LANGUAGE="en",URI="${group}-${name.length}.m3u8"${rest}`;
const variant = (kbits: number, group: string) =>
  `#EXT-X-STREAM-INF:BANDWIDTH=${kbits}000,RESOLUTION=1280x720,CODECS="avc1.64001f,mp4a.40.2",AUDIO="${group}"\n${kbits}.m3u8`;
const namesOf = (formats: readonly { format_id: string; name?: string }[]) =>
  Object.fromEntries(formats.flatMap(({ format_id, name }) => (name === undefined ? [] : [[format_id, name]])));
const readNames = (...lines: string[]) => namesOf(readHls(["#EXTM3U", ...lines, ""].join("\n"), url).formats);

describe("the name of audio in HLS", () => {
  it("is there where a group has several in one language, also in its other qualities", () => {
    const groups = ["low", "high"].flatMap((group) => [
      rendition(group, "English", ",DEFAULT=YES"),
      rendition(group, "Jokes"),
    ]);
    expect(readNames(...groups, rendition("mono", "English"), variant(800, "low"), variant(900, "high"))).toEqual({
      "hls-audio-low-English": "English",
      "hls-audio-low-Jokes": "Jokes",
      "hls-audio-high-English": "English",
      "hls-audio-high-Jokes": "Jokes",
      "hls-audio-mono-English": "English",
    });
  });

  it("is not there if it says which quality it is: each group has one", () => {
    expect(readNames(rendition("low", "English 64k"), rendition("high", "English 128k"), variant(800, "low"))).toEqual(
      {},
    );
  });

  it("is not there where languages or purposes tell them apart", () => {
    const described = ',CHARACTERISTICS="public.accessibility.describes-video"';
    const french = rendition("a", "French").replace('"en"', '"fr"');
    expect(readNames(rendition("a", "English"), rendition("a", "Described", described), french)).toEqual({});
  });

  it("is also that of the audio which is inside the variants", () => {
    const inside = rendition("a", "English", ",DEFAULT=YES").replace(/,URI="[^"]*"/, "");
    expect(readNames(inside, rendition("a", "Jokes"), variant(800, "a"))).toEqual({
      "hls-800": "English",
      "hls-audio-a-Jokes": "Jokes",
    });
  });
});

describe("the name of audio in DASH", () => {
  const set = (id: string, label: string, codecs = "mp4a.40.2") =>
    `<AdaptationSet contentType="audio" mimeType="audio/mp4" lang="en"><Label>${label}</Label>
      <Representation id="${id}" codecs="${codecs}" bandwidth="64000"><BaseURL>${id}.mp4</BaseURL></Representation>
      <Representation id="${id}-low" codecs="${codecs}" bandwidth="32000"><BaseURL>${id}l.mp4</BaseURL></Representation>
    </AdaptationSet>`;
  const read = (...sets: string[]) => {
    const mpd = `<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" mediaPresentationDuration="PT6S"><Period>${sets.join("")}</Period></MPD>`;
    return namesOf(openMpd(mpd, url).listing.formats);
  };

  it("is the Label where several sets of one codec have one language", () => {
    expect(read(set("a", "English"), set("b", "Jokes"))).toEqual({
      "dash-a": "English",
      "dash-a-low": "English",
      "dash-b": "Jokes",
      "dash-b-low": "Jokes",
    });
  });

  it("is not there if the codec differs: it may be another quality", () => {
    expect(read(set("a", "English"), set("b", "English 5.1", "ac-3"))).toEqual({});
  });
});

describe("a name that is a language alone", () => {
  const languagesOf = (...names: string[]) => {
    const lines = names.map((name, i) => `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="${name}",URI="${i}.m3u8"`);
    const { formats } = readHls(["#EXTM3U", ...lines, variant(800, "a"), ""].join("\n"), url);
    return formats.filter(({ vcodec }) => vcodec === "none").map(({ language }) => language);
  };

  it("says what LANGUAGE leaves out, in English or in that language", () => {
    expect(languagesOf("English", "german", " Deutsch ", "Français", "日本語", "Hebrew")).toEqual([
      "en",
      "de",
      "de",
      "fr",
      "ja",
      "he",
    ]);
  });

  it("says nothing if it is more, or no language, or LANGUAGE is there", () => {
    expect(languagesOf("English (Director)", "Stereo", "audio_1", "Original", "en", "")).toEqual([
      null,
      null,
      null,
      null,
      null,
      null,
    ]);
    const stated = rendition("a", "Deutsch");
    expect(
      readHls(`#EXTM3U\n${stated}\n${variant(800, "a")}\n`, url).formats.map(({ language }) => language),
    ).toContain("en");
  });

  it("leaves their names to others in its group, whose languages are unknown", () => {
    const lines = ["English", "Deutsch (Original)", "Français"].map((name) =>
      rendition("a", name).replace(',LANGUAGE="en"', ""),
    );
    expect(readNames(...lines, variant(800, "a"))).toEqual({ "hls-audio-a-Deutsch (Original)": "Deutsch (Original)" });
  });

  it("says what lang leaves out in DASH, but not of video", () => {
    const set = (kind: string) =>
      `<AdaptationSet mimeType="${kind}/mp4"><Label>Deutsch</Label><Representation id="${kind}" bandwidth="64000"/></AdaptationSet>`;
    const mpd = `<MPD mediaPresentationDuration="PT4S"><Period>${set("video")}${set("audio")}</Period></MPD>`;
    expect(openMpd(mpd, url).listing.formats.map(({ language }) => language)).toEqual([null, "de"]);
  });
});
