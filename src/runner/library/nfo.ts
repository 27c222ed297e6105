import type { PageInfo } from "../../model/page-info.ts";

/** The number of season and episode in a file's name, as Jellyfin and Kodi look for it. */
const numbersInName = /s0*(\d+)[ ._-]?e0*(\d+)/i;

/**
 * Returns the text of the file from which Jellyfin and Kodi read what a video is, as their documents describe it. It is a `<movie>`, which both
 * read beside any video, or an `<episodedetails>` if the page states series, season and episode and `name`, that of the video's file, has
 * the two numbers as in `S01E02`: without them neither looks for an episode.
 */
export function createNfo(info: PageInfo, addedAt: string, name: string): string {
  const isEpisode = isNamedEpisode(info, name);
  const { title, description, duration, uploaded_at, uploader, site_name, tags, video_id, extractor } = info;
  const date = uploaded_at?.slice(0, 10);
  const lines = [
    element("title", title),
    ...(isEpisode ? episodeElements(info) : []),
    element("plot", description),
    element("runtime", duration === null ? null : String(Math.max(1, Math.round(duration / 60)))),
    element(isEpisode ? "aired" : "premiered", date),
    element("year", date?.slice(0, 4)),
    element("studio", uploader ?? site_name),
    ...(isEpisode ? [] : tags.map((tag) => element("tag", tag))),
    element("uniqueid", video_id, ` type="${escape(extractor ?? "site")}" default="true"`),
    element("dateadded", addedAt.slice(0, 19).replace("T", " ")),
  ];
  const content = lines.filter((line) => line !== "").map((line) => `  ${line}\n`);
  const root = isEpisode ? "episodedetails" : "movie";
  return `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<${root}>\n${content.join("")}</${root}>\n`;
}

function isNamedEpisode({ series, season_number, episode_number }: PageInfo, name: string): boolean {
  const [, season, episode] = numbersInName.exec(name) ?? [];
  if (series === undefined || season_number === undefined || episode_number === undefined) return false;
  return Number(season) === season_number && Number(episode) === episode_number;
}

function episodeElements({ series, season_number, episode_number }: PageInfo): string[] {
  const numbers = [element("season", `${season_number}`), element("episode", `${episode_number}`)];
  return [element("showtitle", series), ...numbers];
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
