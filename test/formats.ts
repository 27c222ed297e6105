import type { Format } from "../src/model/page-info.ts";

/** A format of which only its name is known, and what `changes` says. */
export function formatOf(format_id: string, changes: Partial<Format> = {}): Format {
  return {
    format_id,
    url: `https://media.example.com/${format_id}`,
    manifest_url: null,
    protocol: "https",
    ext: "mp4",
    mime_type: null,
    width: null,
    height: null,
    fps: null,
    vcodec: null,
    acodec: null,
    tbr: null,
    filesize: null,
    language: null,
    has_drm: false,
    ...changes,
  };
}
