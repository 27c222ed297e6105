import { type ComponentChild, h } from "preact";
import { useState } from "preact/hooks";
import { createAudioFinder, hasAudio, hasVideo } from "../../format-ranking.ts";
import type { Format, PageInfo } from "../../page-info.ts";
import { formatBytes } from "../texts.ts";
import type { FoundProps } from "./finding.ts";

const shownAtFirst = 12;

/** The formats of a page, each with a button that downloads exactly it. */
export function FormatTable({ info, finder }: FoundProps): ComponentChild {
  const [isWhole, setWhole] = useState(false);
  const audioOf = createAudioFinder(info);
  const formats = isWhole ? info.formats : info.formats.slice(0, shownAtFirst);
  const hidden = info.formats.length - formats.length;
  const title = info.title ?? info.url;
  return [
    h(
      "table",
      { key: "table", class: "formats" },
      h("caption", { class: "spoken" }, "Formats, best first"),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          ["Quality", "Size", "Codecs", "Language", "Download"].map((name) =>
            h("th", { key: name, scope: "col" }, name),
          ),
        ),
      ),
      h(
        "tbody",
        {},
        formats.map((format) => {
          const parts = partsOf(format, audioOf(format));
          const quality = qualityOf(format, parts);
          const size = sizeOf(parts, info);
          return h(
            "tr",
            { key: format.format_id },
            h("th", { scope: "row" }, quality),
            h("td", {}, size),
            h("td", {}, codecsOf(parts)),
            h("td", {}, languagesOf(parts)),
            h(
              "td",
              {},
              format.has_drm
                ? "Protected by DRM"
                : h(
                    "button",
                    {
                      "aria-label": `Download ${quality}, ${size}`,
                      onClick: () =>
                        finder.download(info.url, { format_id: format.format_id }, title),
                    },
                    "Download",
                  ),
            ),
          );
        }),
      ),
    ),
    hidden > 0 &&
      h(
        "p",
        { key: "more" },
        h("button", { onClick: () => setWhole(true) }, `Show ${hidden} more formats`),
      ),
  ];
}

/** Returns the name of a language in English, "German", or its tag, shortened, if it has none. */
export function languageName(tag: string): string {
  try {
    return languageNames.of(tag)?.slice(0, 40) ?? tag;
  } catch {
    return tag.slice(0, 20);
  }
}

const languageNames = new Intl.DisplayNames("en", { type: "language" });

/** The format, and the separate audio that is downloaded with it. */
function partsOf(format: Format, audio: Format | null): Format[] {
  return audio === null ? [format] : [format, audio];
}

function qualityOf(format: Format, parts: readonly Format[]): string {
  const { width, height, fps, tbr } = format;
  const rate = tbr === null ? "" : `, ${Math.round(tbr)} kbit/s`;
  if (!hasVideo(format)) return `Audio${rate}`;
  const silent = parts.some(hasAudio) ? "" : ", no audio";
  if (height === null) return `Video${rate}${silent}`;
  // By its shorter side, as people call a video that is held upright.
  const lines = Math.min(height, width ?? height);
  return `${lines}p${fps !== null && fps > 30 ? Math.round(fps) : ""}${silent}`;
}

function sizeOf(parts: readonly Format[], { duration, live_status }: PageInfo): string {
  if (live_status === "is_live") return "live";
  // The bit rate and the estimate of an HLS variant are for its separate audio too.
  const counted = parts[0]?.protocol === "m3u8" ? parts.slice(0, 1) : parts;
  const sizes = counted.map((part) => part.filesize ?? approximateSize(part, duration));
  if (sizes.some((size) => size === null)) return "unknown";
  const total = sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
  const isExact = counted.every(({ filesize }) => filesize !== null);
  return isExact ? formatBytes(total) : `about ${formatBytes(Number(total.toPrecision(2)))}`;
}

function approximateSize({ filesize_approx, tbr }: Format, duration: number | null): number | null {
  if (typeof filesize_approx === "number") return filesize_approx;
  return tbr === null || duration === null ? null : (tbr * 1000 * duration) / 8;
}

/** Names that people know, by how the codec's RFC 6381 name begins. */
const codecNames: readonly (readonly [RegExp, string])[] = [
  [/^avc|^h264/, "H.264"],
  [/^h(ev|vc)|^h265/, "H.265"],
  [/^av01|^av1/, "AV1"],
  [/^vp0?9/, "VP9"],
  [/^vp0?8/, "VP8"],
  [/^dv[ah]/, "Dolby Vision"],
  [/^mp4a\.(40|6[67])|^aac/, "AAC"],
  [/^mp4a\.(69|6b)|^mp3/i, "MP3"],
  [/^opus/i, "Opus"],
  [/^vorbis/, "Vorbis"],
  [/^ac-3|^ac3/, "AC-3"],
  [/^ec-3|^eac3/, "E-AC-3"],
  [/^flac/i, "FLAC"],
];

function codecsOf(parts: readonly Format[]): string {
  const codecs = parts.flatMap(({ vcodec, acodec }) => [vcodec, acodec]);
  const names = codecs
    .flatMap((codec) => (codec === null || codec === "none" ? [] : codec))
    .map((codec) => codecNames.find(([begin]) => begin.test(codec))?.[1] ?? codec.slice(0, 20));
  return names.length > 0 ? names.join(", ") : (parts[0]?.ext ?? "unknown");
}

function languagesOf(parts: readonly Format[]): string {
  const tags = parts.map(({ language }) => language).filter((tag) => tag !== null);
  return [...new Set(tags.map(languageName))].join(", ");
}
