import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Value } from "@sinclair/typebox/value";
import { describe, expect, test } from "vitest";
import { ServiceError } from "../../src/model/errors.ts";
import { Format } from "../../src/model/page-info.ts";
import { openMpd } from "../../src/manifests/dash/dash.ts";
import { readHls } from "../../src/manifests/hls/hls.ts";
import type { Manifest } from "../../src/manifests/manifest.ts";

const corpus = resolve(process.env["CORPUS_DIR"] ?? "../shared/corpus");
const isThere = existsSync(join(corpus, "manifests.json"));
const url = new URL("https://manifests.example.com/a/b/main?q=1");

interface Variant {
  uri: string;
  bandwidth: number | null;
  avg_bandwidth: number | null;
  width: number | null;
  height: number | null;
  codecs: string | null;
  fps: string | null;
  audio: string | null;
}

interface Rendition {
  type: string;
  group: string;
  uri: string | null;
}

interface Representation {
  id: string;
  bandwidth: number;
  width: number | null;
  height: number | null;
  codecs: string | null;
  mimeType: string;
  fps: string | null;
  lang: string | null;
}

interface Row {
  file: string;
  format: string;
  expected: { endList?: boolean; segments?: { duration?: number }[] } | null;
  derived?: {
    type: string;
    duration: number | null;
    representations?: Representation[];
    variants?: Variant[];
    media?: Rendition[];
  };
  second_opinion?: { agrees: boolean };
}

const rows: Row[] = isThere ? JSON.parse(readFileSync(join(corpus, "manifests.json"), "utf8")) : [];

function read(row: Row): Manifest | ServiceError {
  const text = readFileSync(join(corpus, row.file), "utf8");
  try {
    const isXml = /\.(?:mpd|xml|f4m|Manifest)$/.test(row.file);
    return isXml ? openMpd(text, url).listing : readHls(text, url);
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
}

describe.skipIf(!isThere)(`the manifests of CORPUS_DIR (${corpus})`, () => {
  test("each is read or refused as invalid, and each format matches the schema", () => {
    const refused = rows.filter((row) => {
      const manifest = read(row);
      if (manifest instanceof ServiceError) {
        expect(manifest.code).toBe("upstream_invalid");
        return true;
      }
      const invalid = manifest.formats.filter((format) => !Value.Check(Format, format));
      expect(invalid, row.file).toEqual([]);
      const ids = manifest.formats.map((format) => format.format_id);
      expect(new Set(ids).size, row.file).toBe(ids.length);
      return false;
    });
    // f4m and Smooth Streaming, and four playlists that do not begin with #EXTM3U.
    expect(refused).toHaveLength(6);
    expect(rows).toHaveLength(242);
  });

  test("at least 98 % of those that two readers agree on list exactly the same variants", () => {
    const agreed = rows.filter((row) => row.second_opinion?.agrees === true);
    const missed = agreed.filter((row) => !isAsDerived(row));
    expect(agreed).toHaveLength(80);
    expect(missed.map((row) => row.file).join("\n")).toBe("manifests/062-hls-master.m3u8");
    expect(missed.length).toBeLessThanOrEqual(agreed.length * 0.02);
  });

  test("media playlists have ended, and last as long, as their source expects", () => {
    let compared = 0;
    for (const row of rows.filter(({ format }) => format === "hls-media")) {
      const manifest = read(row);
      if (row.expected === null || manifest instanceof ServiceError) continue;
      const hasEnded = row.expected.endList === true;
      expect(manifest.live_status, row.file).toBe(hasEnded ? "not_live" : "is_live");
      compared += 1;
      const segments = row.expected.segments ?? [];
      const stated = readFileSync(join(corpus, row.file), "utf8").match(/#EXTINF/g)?.length ?? 0;
      if (stated !== segments.length) continue; // that reader adds unstated durations
      const seconds = segments.reduce((sum, segment) => sum + (segment.duration ?? 0), 0);
      // That reader also takes a segment of 0 s as 0.01.
      const tolerance = seconds < 0.02 ? 0.01 : 1e-5;
      if (hasEnded) expect(Math.abs((manifest.duration ?? 0) - seconds)).toBeLessThanOrEqual(tolerance);
      else expect(manifest.duration, row.file).toBeNull();
    }
    expect(compared).toBe(23);
  });
});

function isAsDerived(row: Row): boolean {
  const manifest = read(row);
  if (manifest instanceof ServiceError || row.derived === undefined) return false;
  const { variants, media: renditions = [], representations } = row.derived;
  if (variants !== undefined) {
    const put = variablesOf(row);
    const key = (variant: Variant) => variantKey(put(variant), isAudioSeparate(put(variant), put(renditions)));
    return same(manifest.formats, hlsKey, variants, key);
  }
  const media = (representations ?? []).filter(({ mimeType }) => /^(?:audio|video)/.test(mimeType));
  return (
    same(manifest.formats, dashKey, media, representationKey) &&
    (manifest.live_status === "is_live") === (row.derived.type === "dynamic") &&
    Math.abs((manifest.duration ?? -1) - (row.derived.duration ?? -1)) < 1e-5
  );
}

/** A group whose audio is in the variants has a rendition without a URL. */
function isAudioSeparate({ audio }: Variant, renditions: Rendition[]): boolean {
  const group = renditions.filter((entry) => entry.type === "AUDIO" && entry.group === audio);
  return group.length > 0 && group.every((entry) => entry.uri !== null);
}

/** `derived` shows variables as they stand in the playlist. */
function variablesOf(row: Row): <T>(value: T) => T {
  const text = readFileSync(join(corpus, row.file), "utf8");
  const values = new Map(
    Array.from(text.matchAll(/DEFINE:NAME="(.*?)",VALUE="(.*?)"/g), ([, name, value]) => [name, value]),
  );
  return (value) =>
    JSON.parse(JSON.stringify(value).replaceAll(/\{\$(.*?)\}/g, (all, name: string) => values.get(name) ?? all));
}

/** Whether both lists have the same keys equally often, renditions left out. */
function same<T>(
  formats: Format[],
  keyOf: (format: Format) => unknown,
  derived: T[],
  derivedKey: (entry: T) => unknown,
): boolean {
  const listed = formats.filter((format) => !/^hls-(?:audio|video)-/.test(format.format_id));
  const keys = (list: unknown[]) => list.map((key) => JSON.stringify(key)).toSorted();
  const found = keys(listed.map((format) => keyOf(format)));
  return JSON.stringify(found) === JSON.stringify(keys(derived.map((entry) => derivedKey(entry))));
}

const hlsKey = ({ url: address, tbr, width, height, fps, vcodec, acodec }: Format) => [
  address,
  tbr,
  width,
  height,
  fps,
  // Audio in a group is not the variant's; its codec is in the group's formats.
  [vcodec, acodec].filter((codec) => codec !== null && codec !== "none"),
];

function variantKey(variant: Variant, isSeparate: boolean) {
  const { uri, bandwidth, width, height, fps, codecs } = variant;
  const [vcodec, acodec] = split(codecs);
  return [
    new URL(uri, url).href,
    bandwidth === null ? null : bandwidth / 1000,
    width || null,
    height || null,
    rate(fps),
    [vcodec, isSeparate && vcodec !== undefined ? undefined : acodec].filter(Boolean),
  ];
}

const dashKey = (format: Format) => [
  format.format_id,
  format.tbr,
  format.width,
  format.height,
  format.fps,
  format.mime_type,
  format.language,
  [format.vcodec, format.acodec].filter((codec) => codec !== null && codec !== "none"),
];

function representationKey({ id, bandwidth, width, height, ...rest }: Representation) {
  const language = rest.lang === null || rest.lang === "und" ? null : rest.lang;
  return [
    `dash-${id}`,
    bandwidth / 1000,
    width,
    height,
    rate(rest.fps),
    rest.mimeType,
    language && Intl.getCanonicalLocales(language)[0],
    split(rest.codecs).filter(Boolean),
  ];
}

function rate(fps: string | null): number | null {
  const [over, under] = (fps ?? "").split("/");
  return fps === null ? null : Number((Number(over) / Number(under ?? 1)).toFixed(3));
}

function split(codecs: string | null) {
  const names = (codecs ?? "").split(",").map((name) => name.trim());
  return [
    names.find((name) => /^(?:avc1|avc3|hvc1|hev1|vp9|vp09|av1|av01|dvh1)(?:\.|$)/.test(name)),
    names.find((name) => /^(?:mp4a|ac-3|ec-3|opus|vorbis)(?:\.|$)/.test(name)),
  ];
}
