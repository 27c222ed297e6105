import { type ComponentChild, h } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { createAudioFinder, hasAudio, hasVideo } from "../../model/format-ranking.ts";
import { downloadSize } from "../../model/format-sizes.ts";
import type { Format, PageInfo } from "../../model/page-info.ts";
import { Button } from "../elements.ts";
import { formatBytes } from "../texts.ts";
import type { ExtraProps } from "./finding.ts";

const shownAtFirst = 12;

/** The formats of a page, each with a button that downloads exactly it. */
export function FormatTable({ info, finder, extras }: ExtraProps): ComponentChild {
  const [isWhole, setWhole] = useState(false);
  const body = useRef<HTMLTableSectionElement>(null);
  // The button that was pressed is gone.
  useLayoutEffect(() => {
    if (isWhole) body.current?.rows[shownAtFirst]?.querySelector("button")?.focus();
  }, [isWhole]);
  const rows = describeFormats(info);
  const shown = isWhole ? rows : rows.slice(0, shownAtFirst);
  const hidden = rows.length - shown.length;
  return [
    h(
      "table",
      { key: "table", class: "formats" },
      h("caption", { class: "spoken" }, "Formats, best first"),
      h("thead", {}, h("tr", {}, columns)),
      h(
        "tbody",
        { ref: body },
        shown.map((row) => h(Row, { key: row.format.format_id, row, info, finder, extras })),
      ),
    ),
    hidden > 0 &&
      h("p", { key: "more" }, h("button", { onClick: () => setWhole(true) }, `Show ${hidden} more formats`)),
  ];
}

const columns = ["Quality", "Size", "Codecs", "Language", "Download"].map((name) =>
  h("th", { key: name, scope: "col" }, name),
);

function Row({ row, info, finder, extras }: ExtraProps & { row: FormatRow }): ComponentChild {
  const { format, quality, note, size, codecs, languages } = row;
  const button = {
    "aria-label": `Download ${joinTexts(quality, note, size)}`,
    isDisabled: finder.adding.value,
    onClick: () => finder.download(info.url, { format_id: format.format_id, ...extras }, info.title ?? info.url),
  };
  return h(
    "tr",
    {},
    h("th", { scope: "row" }, quality, note !== "" && h("span", { class: "muted" }, ` ${note}`)),
    h("td", {}, size),
    h("td", {}, codecs),
    h("td", {}, languages),
    h("td", {}, format.has_drm ? "Protected by DRM" : h(Button, button, "Download")),
  );
}

interface FormatRow {
  format: Format;
  quality: string;
  /** What distinguishes it from formats that would read the same; "" if there are none. */
  note: string;
  size: string;
  codecs: string;
  languages: string;
}

function describeFormats(info: PageInfo): FormatRow[] {
  const audioOf = createAudioFinder(info);
  const rows = info.formats.map((format): FormatRow => {
    const audio = audioOf(format);
    const parts = audio === null ? [format] : [format, audio];
    return {
      format,
      quality: qualityOf(format, parts),
      note: "",
      size: sizeText(format, audio, info),
      codecs: codecsOf(parts),
      languages: languagesOf(parts),
    };
  });
  // A size does not show which of two formats is HLS and which is a file.
  tellApart(rows, textWithoutSize, containerOf);
  tellApart(rows, textOf, rolesOf);
  tellApart(rows, textOf, rateOf);
  tellApart(rows, textOf, ({ format_id }) => format_id.slice(0, 40));
  return rows;
}

/** Adds a trait to the notes of rows that have the same text, unless they have the same trait too. */
function tellApart(
  rows: readonly FormatRow[],
  text: (row: FormatRow) => string,
  trait: (format: Format) => string,
): void {
  for (const same of Map.groupBy(rows, text).values()) {
    const traits = same.map(({ format }) => trait(format));
    if (new Set(traits).size === 1) continue;
    for (const row of same) row.note = joinTexts(row.note, trait(row.format));
  }
}

const textWithoutSize = ({ quality, codecs, languages }: FormatRow) => [quality, codecs, languages].join("\n");
const textOf = (row: FormatRow) => [textWithoutSize(row), row.size, row.note].join("\n");

function containerOf({ protocol, ext }: Format): string {
  if (protocol !== "https") return protocol === "m3u8" ? "HLS" : "DASH";
  return ext?.slice(0, 20).toUpperCase() ?? "file";
}

function rolesOf({ roles = [] }: Format): string {
  return roles.filter((role) => role !== "main").join(" ");
}

function rateOf({ tbr }: Format): string {
  return tbr === null ? "" : `${Math.round(tbr)} kbit/s`;
}

/** Returns the texts that are not empty, with commas between them. */
function joinTexts(...texts: readonly string[]): string {
  return texts.filter((text) => text !== "").join(", ");
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

function qualityOf(format: Format, parts: readonly Format[]): string {
  const { width, height, fps } = format;
  const rate = rateOf(format);
  if (!hasVideo(format)) return joinTexts("Audio", rate);
  const silent = parts.some(hasAudio) ? "" : "no audio";
  if (height === null) return joinTexts("Video", rate, silent);
  // By its shorter side, as people call a video that is held upright.
  const lines = Math.min(height, width ?? height);
  return joinTexts(`${lines}p${fps !== null && fps > 30 ? Math.round(fps) : ""}`, silent);
}

function sizeText(format: Format, audio: Format | null, { live_status }: Pick<PageInfo, "live_status">): string {
  if (live_status === "is_live") return "live";
  const size = downloadSize(format, audio);
  if (size === null) return "size unknown";
  const { bytes, isExact } = size;
  return isExact ? formatBytes(bytes) : `about ${formatBytes(Number(bytes.toPrecision(2)))}`;
}

/** Names that people know, by how the codec's RFC 6381 name begins. */
const codecNames: readonly (readonly [RegExp, string])[] = [
  [/^avc|^h264/, "H.264"],
  [/^h(ev|vc)|^h265/, "H.265"],
  [/^av01|^av1/, "AV1"],
  [/^vp0?9/, "VP9"],
  [/^vp0?8/, "VP8"],
  [/^dv[ah]/, "Dolby Vision"],
  [/^mp4a\.(69|6b|40\.34)|^mp3/i, "MP3"],
  [/^mp4a\.(40|6[67])|^aac/, "AAC"],
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
