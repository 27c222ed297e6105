import { parseLanguage } from "../parsers/text.ts";

/** Returns a BCP 47 tag in canonical spelling; `null` for `und`, `mis`, `mul`, `zxx` and invalid tags. */
export function languageTag(value: string | undefined): string | null {
  const tag = parseLanguage(value);
  return tag === null || noLanguage.has(tag) ? null : tag;
}

/** Converts bit/s in decimal digits to kbit/s; `null` unless it is a number above 0. */
export function kilobits(bitsPerSecond: string | undefined): number | null {
  if (bitsPerSecond === undefined || !/^\d{1,12}(?:\.\d{0,9})?$/.test(bitsPerSecond)) return null;
  return Math.trunc(Number(bitsPerSecond)) / 1_000 || null;
}

/** Parses a frame rate such as `25`, `59.940` or `30000/1001`; `null` unless above 0 and at most 1,000. */
export function framesPerSecond(value: string | undefined): number | null {
  const parts = /^(\d{1,9}(?:\.\d{0,30})?)(?:\/(\d{1,9}))?$/.exec(value ?? "");
  if (parts === null) return null;
  const rate = Math.round((Number(parts[1]) / Number(parts[2] ?? 1)) * 1_000) / 1_000;
  return rate > 0 && rate <= 1_000 ? rate : null;
}

/** Rounds to microseconds; `null` for 0 and numbers that are not finite. */
export function roundSeconds(seconds: number): number | null {
  return Number.isFinite(seconds) ? Math.round(seconds * 1e6) / 1e6 || null : null;
}

const noLanguage: ReadonlySet<string> = new Set(["und", "mis", "mul", "zxx"]);

/** The codecs of a format by kind; `"none"`: the format has no such stream; `null`: unknown. */
export interface Codecs {
  vcodec: string | null;
  acodec: string | null;
  /** A subtitle codec is listed. */
  text: boolean;
}

const maxCodecLength = 200;

/**
 * Returns the codecs of an RFC 6381 list (`CODECS` in HLS, `codecs` in DASH and media types). If the list
 * is empty or has an unknown name, a kind without a known codec is `null`, else `"none"`. Reads at most
 * 1,000 characters; a codec is cut to 200, without what is no printable ASCII.
 */
export function splitCodecs(list: string | undefined): Codecs {
  const found: Codecs = { vcodec: null, acodec: null, text: false };
  let isComplete = true;
  for (const entry of (list ?? "").slice(0, 1_000).split(",")) {
    const codec = entry.replaceAll(/[^\x21-\x7e]/g, "");
    if (codec === "") continue;
    const name = codec.slice(0, maxCodecLength).split(".", 1)[0]?.toLowerCase() ?? "";
    if (videoCodecs.has(name)) found.vcodec ??= codec.slice(0, maxCodecLength);
    else if (audioCodecs.has(name)) found.acodec ??= codec.slice(0, maxCodecLength);
    else if (textCodecs.has(name)) found.text = true;
    else isComplete = false;
  }
  const isKnown = found.vcodec !== null || found.acodec !== null || found.text;
  if (isKnown && isComplete) {
    found.vcodec ??= "none";
    found.acodec ??= "none";
  }
  return found;
}

/**
 * Returns the name that all codes of one codec share (`avc1` and `avc3` → `avc`), for others their own; `null` for `null`.
 */
export function codecFamily(codec: string | null): string | null {
  if (codec === null) return null;
  const lower = codec.toLowerCase();
  // Object types (ISO/IEC 14496-1 §7.2.6.6; of 40, ISO/IEC 14496-3 §1.5.1.1) of MPEG audio; the others are kinds of AAC.
  if (/^mp4a\.(?:69|6b|40\.34)$/.test(lower)) return "mp3";
  const [name = ""] = lower.split(".", 1);
  return families.get(name) ?? name;
}

const families: ReadonlyMap<string, string> = new Map(
  [
    "avc avc1 avc3 dva1 dvav h264",
    "hevc hvc1 hev1 dvh1 dvhe h265",
    "vvc vvc1 vvi1",
    "vp8 vp08",
    "vp9 vp09",
    "av1 av01 dav1",
    "ac3 ac-3",
    "eac3 ec-3",
  ].flatMap((line) => {
    const [family = "", ...names] = line.split(" ");
    return names.map((name) => [name, family] as const);
  }),
);

const videoCodecs: ReadonlySet<string> = new Set(
  (
    "avc1 avc2 avc3 avc4 hvc1 hvc2 hev1 hev2 lhv1 lhe1 vvc1 vvi1 evc1 dva1 dvav dvh1 dvhe dvc1 dvi1 " +
    "vp8 vp9 vp08 vp09 vp10 av1 av01 dav1 mp4v mp2v s263 h263 h264 h265 theora apcn apch jpeg mjpg"
  ).split(" "),
);

const audioCodecs: ReadonlySet<string> = new Set(
  (
    "mp4a mp3 aac opus vorbis flac alac ac-3 ec-3 ac-4 eac3 ac3 dtsc dtse dtsh dtsl dtsx dtsy " +
    "samr sawb mha1 mha2 mhm1 mhm2 iamf twos sowt ipcm fpcm pcm speex"
  ).split(" "),
);

const textCodecs: ReadonlySet<string> = new Set(
  "stpp wvtt tx3g c608 c708 eia608 cea608 cea708 ttml vtt webvtt".split(" "),
);
