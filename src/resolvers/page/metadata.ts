import type { PageInfo, Thumbnail } from "../../page-info.ts";

/**
 * What one vocabulary states, normalised but not yet weighed against the others. Absent, `null` and
 * empty all mean: states nothing.
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
  thumbnails?: Thumbnail[];
  tags?: string[];
  subtitles?: PageInfo["subtitles"];
  /** Media and players, in the order stated. */
  resources?: Resource[];
  /** The page is about a video or a sound, even if nothing tells where it is. */
  media_type?: PageInfo["media_type"] | null;
}

/** An address under which the medium can be got or seen. */
export interface Resource {
  url: URL;
  /** Media type as stated. */
  type: string | null;
  /** `player`: a page to embed; `media`: the file itself; `either`: the vocabulary does not say. */
  role: "player" | "media" | "either";
  /** What it is where neither type nor address tell. */
  fallback: "video" | "audio" | null;
  width: number | null;
  height: number | null;
  tbr: number | null;
  filesize: number | null;
  language: string | null;
}

export function resource(
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
