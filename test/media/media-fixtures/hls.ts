import type { MediaFixture, Source } from "../media-fixtures.ts";
import {
  type AudioRendition,
  type Laid,
  layEncrypted,
  layFiles,
  layOneFile,
  mediaPlaylist,
  multivariant,
  type Variant,
} from "../hls.ts";
import { readMedium, readPackedAudio, readRendition } from "../rendition.ts";
import { hls, merge } from "../resources.ts";

/** HLS in one timeline. */
export function hlsFixtures(): MediaFixture[] {
  return [...transportStreams(), ...fragments(), ...encrypted(), ...severalPlaylists()];
}

function transportStreams(): MediaFixture[] {
  const one = (name: string, file: string) => single(name, layFiles("ts", readRendition(file), "ts"), ts(file));
  const packed = layFiles("aac", readPackedAudio("tone.aac", 47, 1.458667), "aac");
  return [
    one("HLS in MPEG-TS with B-frames", "high.m2t"),
    one("HLS in MPEG-TS without sound", "silent.m2t"),
    one("HLS of HEVC in MPEG-TS", "hevc.m2t"),
    one("HLS in MPEG-TS with AC-3", "ac3.m2t"),
    one("HLS in MPEG-TS with E-AC-3", "eac3.m2t"),
    one("HLS in MPEG-TS with MP3", "mp3.m2t"),
    single("HLS in byte ranges of one MPEG-TS file", layOneFile("whole.ts", readRendition("high.m2t")), ts("high.m2t")),
    single("HLS of packed AAC alone", packed, { data: readMedium("tone.aac"), ext: "aac" }, "m4a"),
  ];
}

function fragments(): MediaFixture[] {
  return [
    single(
      "HLS in fMP4 with both tracks in one",
      layFiles("fmp4", readRendition("muxed.m4s"), "m4s"),
      mp4("muxed.m4s"),
    ),
    single(
      "HLS in byte ranges of one fMP4 file",
      layOneFile("muxed.mp4", readRendition("muxed.m4s")),
      mp4("muxed.m4s"),
    ),
  ];
}

function encrypted(): MediaFixture[] {
  const under = (name: string, file: string, hasIv: boolean, rotation: number) => {
    const [ext, source] = file.endsWith(".m4s") ? ["m4s", mp4(file)] : ["ts", ts(file)];
    const laid = layEncrypted("crypt", readRendition(file), { ext, hasIv, rotation });
    return single(name, laid, source);
  };
  return [
    under("HLS under AES-128 with the segment's number as IV", "high.m2t", false, 10),
    under("HLS under AES-128 with a stated IV", "high.m2t", true, 10),
    under("HLS under AES-128 with a new key every two segments", "high.m2t", true, 2),
    under("HLS in fMP4 under AES-128, its init section in the clear", "muxed.m4s", true, 10),
  ];
}

const h264 = "avc1.64000c";
const aac = "mp4a.40.2";

function severalPlaylists(): MediaFixture[] {
  const high = { uri: "high.m3u8", bandwidth: 110_000, codecs: `${h264},${aac}` };
  const low = { uri: "low.m3u8", bandwidth: 90_000, codecs: `${h264},${aac}` };
  const withSizes: Variant[] = [
    { ...low, resolution: "96x54" },
    { ...high, resolution: "160x90" },
  ];
  const withSound = withSizes.map((variant) => ({ ...variant, audio: "sound" }));
  const languages: AudioRendition[] = ["de", "en"].map((language) => ({
    group: "sound",
    language,
    uri: `${language}.m3u8`,
    isDefault: language === "en",
  }));
  return [
    listing("HLS in MPEG-TS of two qualities", multivariant(withSizes), {
      sources: [ts("high.m2t")],
      high: layFiles("high", readRendition("high.m2t"), "ts"),
      low: layFiles("low", readRendition("low.m2t"), "ts"),
    }),
    listing("HLS in fMP4 with sound of two languages apart", multivariant(withSound, languages), {
      sources: [mp4("video.m4s"), mp4("audio-en.m4s")],
      high: layFiles("high", readRendition("video.m4s"), "m4s"),
      low: layFiles("low", readRendition("video-low.m4s"), "m4s"),
      en: layFiles("en", readRendition("audio-en.m4s"), "m4s"),
      de: layFiles("de", readRendition("audio-de.m4s"), "m4s"),
    }),
    listing(
      "HLS in MPEG-TS with packed AAC of two languages apart",
      multivariant([{ ...high, resolution: "160x90", audio: "sound" }], languages),
      {
        sources: [ts("silent.m2t"), { data: readMedium("tone.aac"), ext: "aac" }],
        high: layFiles("high", readRendition("silent.m2t"), "ts"),
        en: layFiles("en", readPackedAudio("tone.aac", 47, 1.458667), "aac"),
        de: layFiles("de", readPackedAudio("tone.aac", 94, 1.458667), "aac"),
      },
    ),
  ];
}

/** One media playlist. */
export function single(name: string, laid: Laid, source: Source, ext = "mp4", times = 1): MediaFixture {
  const playlist = hls(mediaPlaylist(laid.lines));
  const resources = merge(laid.resources, new Map([["index.m3u8", playlist]]));
  return { name, entry: "index.m3u8", resources, sources: [source], times, ext };
}

/** A multivariant playlist and what it lists: `high` is kept in `high.m3u8` … */
function listing(
  name: string,
  master: string,
  { sources, ...playlists }: { sources: Source[]; high: Laid; low?: Laid; en?: Laid; de?: Laid },
): MediaFixture {
  const laid = Object.entries(playlists).map(([key, { resources, lines }]) =>
    merge(resources, new Map([[`${key}.m3u8`, hls(mediaPlaylist(lines))]])),
  );
  const resources = merge(...laid, new Map([["master.m3u8", hls(master)]]));
  return { name, entry: "master.m3u8", resources, sources, times: 1, ext: "mp4" };
}

export function ts(file: string): Source {
  return { data: readMedium(file), ext: "ts" };
}

export function mp4(file: string): Source {
  return { data: readMedium(file), ext: "mp4" };
}
