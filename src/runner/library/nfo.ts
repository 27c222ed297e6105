import type { PageInfo } from "../../model/page-info.ts";

/**
 * Returns the text of a file that tells Jellyfin and Kodi what a video is, as their documents describe it: a `<movie>`, since that is
 * what both read beside any video; an `<episodedetails>` counts only if the file's name has the number of season and episode.
 */
export function movieNfo(info: PageInfo, addedAt: string): string {
  const { title, description, duration, uploaded_at, uploader, site_name, tags, video_id, extractor } = info;
  const date = uploaded_at?.slice(0, 10);
  const lines = [
    element("title", title),
    element("plot", description),
    element("runtime", duration === null ? null : String(Math.max(1, Math.round(duration / 60)))),
    element("premiered", date),
    element("year", date?.slice(0, 4)),
    element("studio", uploader ?? site_name),
    ...tags.map((tag) => element("tag", tag)),
    element("uniqueid", video_id, ` type="${escape(extractor ?? "site")}" default="true"`),
    element("dateadded", addedAt.slice(0, 19).replace("T", " ")),
  ];
  const content = lines.filter((line) => line !== "").map((line) => `  ${line}\n`);
  return `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<movie>\n${content.join("")}</movie>\n`;
}

function element(name: string, text: string | null | undefined, attributes = ""): string {
  const escaped = escape(text ?? "");
  return escaped === "" ? "" : `<${name}${attributes}>${escaped}</${name}>`;
}

const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** Leaves out what is no character of XML 1.0 (§2.2). */
function escape(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/gu, "")
    .replaceAll(/[&<>"]/g, (character) => entities[character] ?? "")
    .trim();
}
