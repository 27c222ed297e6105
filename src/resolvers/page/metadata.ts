import type { Entry } from "../../model/entry.ts";
import type { PageInfo, Thumbnail } from "../../model/page-info.ts";

/**
 * What one source states, normalised; `mergeMetadata` chooses between sources. A field that is absent,
 * `null` or empty is not stated.
 */
export interface Metadata {
  webpage_url?: string | null;
  site_name?: string | null;
  title?: string | null;
  description?: string | null;
  language?: string | null;
  duration?: number | null;
  uploaded_at?: string | null;
  uploader?: string | null;
  uploader_url?: string | null;
  view_count?: number | null;
  like_count?: number | null;
  live_status?: PageInfo["live_status"];
  age_limit?: number | null;
  series?: string | null;
  season_number?: number | null;
  episode_number?: number | null;
  thumbnails?: Thumbnail[];
  tags?: string[];
  subtitles?: PageInfo["subtitles"];
  chapters?: NonNullable<PageInfo["chapters"]>;
  chapters_url?: string | null;
  /** What a page lists, if it has no medium of its own. */
  list?: ListedMedia | null;
  /** The parts of a medium that has no URL of its own. */
  parts?: ListedMedia | null;
  /** Media and players, in the source's order. */
  resources?: Resource[];
  /** What the page is about, also if no resource is stated. */
  media_type?: PageInfo["media_type"] | null;
}

/** The media that a page lists, and how many there are in all, if it says so. */
export interface ListedMedia {
  entries: Entry[];
  entries_count: number | null;
}

/** A URL at which the medium can be fetched or played. */
export interface Resource {
  url: URL;
  /** Media type as stated. */
  type: string | null;
  /** `player`: a page to embed; `media`: a file or manifest; `either`: the vocabulary does not say. */
  role: "player" | "media" | "either";
  /** Its kind if neither type nor URL show it. */
  fallback: "video" | "audio" | null;
  width: number | null;
  height: number | null;
  tbr: number | null;
  filesize: number | null;
  language: string | null;
}

/** Returns the image at `url` as a list; an empty one without a URL. */
export function thumbnailsAt(url: URL | null, width: number | null = null, height: number | null = null): Thumbnail[] {
  return url === null ? [] : [{ url: url.href, width, height }];
}

/** Creates a resource; what is not in `stated` is `null`. */
export function createResource(
  url: URL,
  role: Resource["role"],
  stated: Partial<Omit<Resource, "url" | "role">> = {},
): Resource {
  return {
    url,
    role,
    type: null,
    fallback: null,
    width: null,
    height: null,
    tbr: null,
    filesize: null,
    language: null,
    ...stated,
  };
}
