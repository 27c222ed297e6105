import { type ComponentChild, h } from "preact";
import { useState } from "preact/hooks";
import { hasAudio, hasVideo } from "../../model/format-ranking.ts";
import type { PageInfo, Vocabulary } from "../../model/page-info.ts";
import { Button, Check, Picture } from "../elements.ts";
import { formatDuration, formatTime } from "../texts.ts";
import { formatDay } from "./day.ts";
import { Entries } from "./entries.ts";
import type { ExtraProps, Extras, FoundProps } from "./finding.ts";
import { FormatTable, languageName } from "./format-table.ts";
import { Parts } from "./parts.ts";

/** What is on a page, and what can be downloaded from it. */
export function Found({ info, finder }: FoundProps): ComponentChild {
  const [extras, setExtras] = useState<Extras>({});
  const { formats, entries = [], warnings = [] } = info;
  const usable = formats.filter(({ has_drm }) => !has_drm);
  const note = noteOf(info, usable.length);
  return [
    h(Summary, { key: "summary", info }),
    note !== null && h("p", { key: "note" }, note),
    warnings.map(({ message }) => h("p", { key: message, class: "muted" }, `Something is missing: ${message}`)),
    usable.length > 0 && h(Best, { key: "best", info, finder, extras }),
    usable.length > 0 && h(ExtraChoices, { key: "extras", info, extras, onChange: setExtras }),
    usable.length > 0 &&
      h(Parts, {
        key: "parts",
        onChange: (ranges) => setExtras((before) => withRanges(before, ranges)),
      }),
    formats.length > 0 && h(FormatTable, { key: "formats", info, finder, extras }),
    entries.length > 0 && h(Entries, { key: "entries", info, finder }),
    h(Subtitles, { key: "subtitles", info }),
    h(Sources, { key: "sources", info }),
  ];
}

function Summary({ info }: { info: PageInfo }): ComponentChild {
  const { uploader, site_name, duration, uploaded_at: uploadedAt, live_status } = info;
  const details = [
    uploader,
    site_name === uploader ? null : site_name,
    duration === null ? null : formatDuration(duration),
    uploadedAt === null ? null : formatDay(uploadedAt),
    live_status === "is_live" ? "live" : null,
  ].filter((detail) => detail !== null);
  return h(
    "div",
    { class: "summary" },
    info.thumbnails.length > 0 &&
      h(Picture, { class: "thumbnail", src: `info/thumbnail?url=${encodeURIComponent(info.url)}` }),
    h(
      "ul",
      {},
      details.map((detail) => h("li", { key: detail, dir: "auto" }, detail)),
      h("li", { key: "" }, h(OutsideLink, { url: info.webpage_url, text: "Open original page" })),
    ),
  );
}

/** What to know before choosing; `null` if there is nothing special. */
function noteOf({ formats, entries = [], live_status }: PageInfo, usable: number): string | null {
  if (live_status === "is_upcoming") return "This stream has not begun yet.";
  if (formats.length === 0) {
    if (entries.length > 0) return "This is a list. Choose what to download.";
    return "There is no video on this page to download.";
  }
  if (usable === 0) return "This video is protected by DRM, so it cannot be downloaded.";
  if (live_status !== "is_live") return null;
  return "This is a live stream. It is recorded from the start of the download until it ends or you stop it.";
}

function withRanges(extras: Extras, ranges: Extras["ranges"]): Extras {
  const { ranges: _, ...others } = extras;
  return ranges === undefined ? others : { ...others, ranges };
}

/** A box for each kind of extras that the page lists. */
function ExtraChoices({
  info,
  extras,
  onChange,
}: Pick<ExtraProps, "info" | "extras"> & { onChange: (extras: Extras) => void }): ComponentChild {
  const offered = subtitlesOf(info);
  const languages = new Set(info.formats.filter((format) => !hasVideo(format)).map(({ language }) => language));
  const { subtitles: _, ...withoutSubtitles } = extras;
  const { audio_languages: __, ...withoutLanguages } = extras;
  const choices = [
    offered !== null &&
      h(
        Check,
        {
          key: "subtitles",
          isChecked: extras.subtitles !== undefined,
          onCheck: (isChosen) => onChange(isChosen ? { ...extras, subtitles: offered.option } : withoutSubtitles),
        },
        offered.text,
      ),
    languages.size > 1 &&
      h(
        Check,
        {
          key: "languages",
          isChecked: extras.audio_languages !== undefined,
          onCheck: (isChosen) => onChange(isChosen ? { ...extras, audio_languages: ["all"] } : withoutLanguages),
        },
        "With all audio languages",
      ),
  ].filter((choice) => choice !== false);
  return choices.length === 0 ? null : h("p", { class: "row" }, choices);
}

/** Returns which subtitles a page offers: those that people wrote, else automatic ones in a single language; `null`: none. */
function subtitlesOf({ subtitles, automatic_captions: automatic = {}, language }: PageInfo) {
  if (Object.keys(subtitles).length > 0) return { option: true as const, text: "With subtitles" };
  const tags = Object.keys(automatic);
  const tag = [...navigator.languages, language ?? ""].flatMap((wanted) => matching(tags, wanted) ?? [])[0] ?? tags[0];
  if (tag === undefined) return null;
  return {
    option: { languages: [tag], automatic: true },
    text: `With automatic subtitles (${languageName(tag)})`,
  };
}

/** Returns the tag that is `wanted`, else that of the language alone, else the first one of the same language. */
function matching(tags: readonly string[], wanted: string): string | undefined {
  const languageOf = (tag: string) => tag.toLowerCase().split("-")[0];
  const same = tags.filter((tag) => languageOf(tag) === languageOf(wanted));
  return same.find((tag) => tag === wanted) ?? same.find((tag) => tag === languageOf(tag)) ?? same[0];
}

function Best({ info, finder, extras }: ExtraProps): ComponentChild {
  const download = (options: { audio_only?: true }): void =>
    finder.download(info.url, { ...options, ...extras }, info.title ?? info.url);
  const hasBoth = info.formats.some(hasVideo) && info.formats.some(hasAudio);
  const isDisabled = finder.adding.value;
  const best = { class: "primary", isDisabled, onClick: () => download({}) };
  const audio = { isDisabled, onClick: () => download({ audio_only: true }) };
  return h(
    "p",
    { class: "row" },
    h(Button, best, "Download the best"),
    hasBoth && h(Button, audio, "Download only the audio"),
  );
}

function Subtitles({ info: { subtitles } }: { info: PageInfo }): ComponentChild {
  const listed = Object.entries(subtitles).flatMap(([language, files]) =>
    files.map(({ url, ext, manifest_url, name, role = "subtitles" }) => {
      const text = `${name ?? languageName(language)}${role === "subtitles" ? "" : `, ${role}`}`;
      // A browser would show, or save, the list of its segments.
      if (ext === "m3u8" || manifest_url !== undefined) return { url, item: text };
      return { url, item: h(OutsideLink, { url, text: `${text}${ext === null ? "" : ` (${ext})`}` }) };
    }),
  );
  if (listed.length === 0) return null;
  return h(
    "details",
    {},
    h("summary", {}, `Subtitles (${listed.length})`),
    h(
      "ul",
      { class: "row" },
      listed.map(({ url, item }) => h("li", { key: url }, item)),
    ),
  );
}

const vocabularyNames: Record<Vocabulary, string> = {
  "json-ld": "JSON-LD",
  microdata: "microdata",
  og: "Open Graph",
  twitter: "Twitter card",
  player: "the page's player",
  oembed: "oEmbed",
  html: "the page's HTML",
  manifest: "the manifest",
  feed: "the feed",
  m3u: "the playlist file",
  pls: "the playlist file",
  playlist: "the playlist",
  media: "the media file",
  "yt-dlp": "yt-dlp",
};

function Sources({ info }: { info: PageInfo }): ComponentChild {
  const { sources, resolver, extractor, fetched_at } = info;
  const name = resolver === "page" ? "the service itself" : resolver;
  const reader = extractor === undefined ? name : `${name} (${extractor})`;
  return h(
    "details",
    {},
    h("summary", {}, "How do we know?"),
    h("p", { class: "muted" }, `Read by ${reader}, ${formatTime(fetched_at)}.`),
    h(
      "dl",
      { class: "sources" },
      Object.entries(sources).map(([field, source]) => [
        h("dt", { key: `${field} name`, class: "muted" }, field.replaceAll("_", " ")),
        h("dd", { key: field }, vocabularyNames[source] ?? source),
      ]),
    ),
  );
}

/** A link to another site, which does not learn where it comes from. */
function OutsideLink({ url, text }: { url: string; text: string }): ComponentChild {
  if (!/^https?:/i.test(url)) return text;
  return h("a", { class: "button", href: url, target: "_blank", rel: "noopener noreferrer" }, text);
}
