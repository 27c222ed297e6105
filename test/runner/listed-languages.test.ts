import { expect, it } from "vitest";
import { chooseAudio } from "../../src/runner/choice/choose-audio.ts";
import { chooseFormat } from "../../src/resolvers/choose-format.ts";
import type { TaskOptions } from "../../src/model/task.ts";
import { chooseSubtitles } from "../../src/runner/choice/choose-subtitles.ts";
import { languageInName } from "../../src/runner/list-files.ts";
import { formatOf } from "../formats.ts";
import { measureStall } from "../fuzz/stall.ts";
import { fileDict, readRecorded, videoDict } from "../resolvers/ytdlp/recorded.ts";
import { pageOf } from "./resolver.ts";

type Listed = readonly [id: string, language: string | null, more?: Record<string, unknown>];

/** A format as yt-dlp lists it; its URL is that of its id. */
const format = (id: string, language: string | null, more: Record<string, unknown>) =>
  fileDict({ format_id: id, url: `https://cdn.example.com/${id}`, language, ...more });
const sound = ([id, language, more = {}]: Listed) =>
  format(id, language, { ext: "m4a", vcodec: "none", acodec: "mp4a.40.2", tbr: 128, ...more });
const muxed = ([id, language, more = {}]: Listed) =>
  format(id, language, { vcodec: "avc1.64001e", acodec: "mp4a.40.2", height: 360, ...more });
const video = format("v", null, { vcodec: "avc1.64001e", acodec: "none", height: 720 });
const webmVideo = format("v-webm", null, { vcodec: "vp9", acodec: "none", height: 1080, ext: "webm" });
const weba = { ext: "webm", acodec: "opus", tbr: 140 };

const by = (language_preference: number, format_note?: string) => ({ language_preference, format_note });
const dubbed = { format_note: "dubbed-auto, medium" };

/** What is chosen, as `id language`, for what is asked for. */
type Choices = readonly [asked: TaskOptions, chosen: readonly string[]][];

const only = (...audio_languages: string[]): TaskOptions => ({ audio_languages });

const listings: Record<string, { formats: readonly unknown[]; choices: Choices }> = {
  "an original and automatic dubs, each in two qualities": {
    formats: [
      sound(["de-low", "de", { ...by(-1, "German dubbed-auto"), tbr: 48 }]),
      sound(["en-low", "en-US", { ...by(10, "English (US) original"), tbr: 48 }]),
      sound(["en", "en-US", by(10, "English (US) original (default)")]),
      sound(["de", "de", { ...by(-1, "German dubbed-auto"), tbr: 160 }]),
      video,
    ],
    choices: [
      [{}, ["v null", "en en-US"]],
      [only("original"), ["v null", "en en-US"]],
      [only("de"), ["v null", "de de"]],
      [only("original", "de"), ["v null", "en en-US", "de de"]],
      [only("all"), ["v null", "en en-US", "de de"]],
      [{ audio_only: true }, ["en en-US"]],
    ],
  },
  "an original and its description at a higher rate": {
    formats: [
      sound(["en", "en", by(10, "English original")]),
      sound(["ad", "en", { ...by(-10, "English descriptive"), tbr: 192 }]),
      video,
    ],
    choices: [
      [{}, ["v null", "en en"]],
      [only("en"), ["v null", "en en"]],
      [only("all"), ["v null", "en en", "ad en"]],
      [{ audio_only: true, audio_languages: ["all"] }, ["en en", "ad en"]],
    ],
  },
  "a dub and its description at a higher rate": {
    formats: [
      sound(["en", "en", by(10)]),
      sound(["de", "de", by(-1)]),
      sound(["de-ad", "de", { ...by(-10), tbr: 192 }]),
      video,
    ],
    choices: [
      [only("de"), ["v null", "de de"]],
      [only("all"), ["v null", "en en", "de de", "de-ad de"]],
    ],
  },
  "notes for people alone, the dubs at higher rates": {
    formats: [
      sound(["fr", "fr", { format_note: "French (original)" }]),
      sound(["en", "en", { ...dubbed, tbr: 160 }]),
      sound(["fr-ad", "fr", { format_note: "Audio description", tbr: 192 }]),
      video,
    ],
    choices: [
      [{}, ["v null", "fr fr"]],
      [{ audio_only: true }, ["fr fr"]],
      [only("all"), ["v null", "fr fr", "en en", "fr-ad fr"]],
    ],
  },
  "notes that name the dubs alone": {
    formats: [sound(["ja", "ja", { tbr: 64 }]), sound(["en", "en", dubbed]), sound(["es", "es", dubbed]), video],
    choices: [
      [{}, ["v null", "ja ja"]],
      [{ audio_only: true }, ["ja ja"]],
      [only("original", "es"), ["v null", "ja ja", "es es"]],
    ],
  },
  "one language, of which a format is the original file": {
    formats: [
      sound(["low", "en", { format_note: "original", tbr: 64 }]),
      sound(["high", "en"]),
      muxed(["file", null, { format_note: "original", height: 240 }]),
      video,
    ],
    choices: [[{}, ["v null", "high en"]]],
  },
  "combined formats of two languages": {
    formats: [muxed(["de", "de", { ...by(-1, "dubbed"), height: 1080 }]), muxed(["en", "en", by(10, "original")])],
    choices: [
      [{}, ["en en"]],
      [only("original"), ["en en"]],
      [{ audio_only: true }, ["en en"]],
    ],
  },
  "a combined format, and separate dubs": {
    formats: [sound(["de", "de", by(-1)]), sound(["es", "es-419", by(-1)]), muxed(["en", "en", by(10)])],
    choices: [
      [{}, ["en en"]],
      [only("de"), ["en en", "de de"]],
      [only("original", "es"), ["en en", "es es-419"]],
      [only("all"), ["en en", "es es-419", "de de"]],
    ],
  },
  "audio alone in three languages": {
    formats: [sound(["es", "es", by(-1)]), sound(["pt", "pt-BR", by(-1)]), sound(["en", "en", by(10)])],
    choices: [
      [{}, ["en en"]],
      [only("es"), ["es es"]],
      [only("pt"), ["pt pt-BR"]],
      [only("pt-PT", "es"), ["es es"]],
    ],
  },
  "dubs in a container that the video does not have": {
    formats: [
      sound(["en", "en", by(10)]),
      sound(["en-webm", "en", { ...by(10), ...weba }]),
      sound(["de", "de", by(-1)]),
      sound(["de-webm", "de", { ...by(-1), ...weba }]),
      sound(["it", "it", by(-1)]),
      video,
      webmVideo,
    ],
    choices: [
      [{}, ["v-webm null", "en-webm en"]],
      [only("original", "de", "it"), ["v-webm null", "en-webm en", "de-webm de", "it it"]],
      [{ ...only("original", "de"), max_height: 720 }, ["v null", "en en", "de de"]],
    ],
  },
};

it.each(Object.entries(listings))("chooses the audio of a page that lists %s", async (_, { formats, choices }) => {
  const info = await readRecorded(videoDict({ formats }));
  for (const [options, chosen] of choices) {
    const { tracks } = chooseAudio(info, chooseFormat(info, options), options);
    const all = [tracks.format, ...(tracks.audio ? [tracks.audio] : []), ...tracks.otherAudio];
    const told = all.map(({ format_id, language }) => `${format_id} ${language}`);
    expect(told, JSON.stringify(options)).toEqual(chosen);
  }
});

it("takes the languages of subtitles that yt-dlp lists with an underscore for tags, as the names of their files show", async () => {
  const track = (name: string) => ({ url: `https://cdn.example.com/${name}.vtt`, ext: "vtt" });
  const subtitles = { zh_CN: [track("a")], "pt-BR": [track("b")], pt_BR: [track("c")], live_chat: [track("d")] };
  const page = await readRecorded(videoDict({ formats: [video], subtitles }));
  const listed = Object.entries(page.subtitles).map(([tag, tracks]) => [
    tag,
    tracks.map(({ url }) => url.slice(-5, -4)),
  ]);
  expect(listed).toEqual([
    ["zh-CN", ["a"]],
    ["pt-BR", ["b", "c"]],
  ]);
  const [{ language } = { language: null }] = chooseSubtitles(page, { subtitles: { languages: ["zh_CN"] } }).wanted;
  expect(languageInName(language)).toBe("zh-CN");
});

it("takes 20 files of a language that yt-dlp lists under several tags", async () => {
  const tracks = Array.from({ length: 15 }, (_, i) => ({ url: `https://cdn.example.com/${i}.vtt`, ext: "vtt" }));
  const page = await readRecorded(videoDict({ formats: [video], subtitles: { zh_CN: tracks, "zh-CN": tracks } }));
  expect(page.subtitles["zh-CN"]).toHaveLength(20);
});

const letters = "abcdefghijklmnopqrstuvwxyz".split("");
const many = letters.flatMap((a) => letters.flatMap((b) => [`en-x-${a}${b}`, `zh-x-${a}${b}`]));

it.each([
  [
    "audio",
    (audio_languages: string[]) => {
      const formats = many.map((language) => formatOf(language, { language, vcodec: "none", acodec: "mp4a" }));
      const page = pageOf(new URL("https://a.test/"), { formats });
      return chooseAudio(page, { format: formats[0]!, audio: null, audioOnly: false }, { audio_languages }).unlisted;
    },
  ],
  [
    "subtitles",
    (languages: string[]) => {
      const listed = (role?: "forced") =>
        Object.fromEntries(
          many.map((tag) => [tag, [{ url: "https://a.test/", ext: "vtt", name: null, ...(role && { role }) }]]),
        );
      const page = pageOf(new URL("https://a.test/"), { subtitles: listed("forced"), automatic_captions: listed() });
      return chooseSubtitles(page, { subtitles: { languages, automatic: true } }).missing;
    },
  ],
])("a task that asks for %s in 20 languages parses those that a page lists once, not 20 times", async (_, choose) => {
  const asked = letters.slice(0, 20).map((letter) => `f${letter}`);
  const timed = async (languages: string[]) => {
    const { outcome, stallMs } = await measureStall(async () => choose(languages));
    expect(outcome).toEqual({ value: languages });
    return stallMs;
  };
  await timed(asked);
  const [one, all] = [await timed(asked.slice(0, 1)), await timed(asked)];
  expect(all / one).toBeLessThan(5);
});
