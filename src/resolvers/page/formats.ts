import { byQuality } from "../../format-ranking.ts";
import type { Format } from "../../page-info.ts";
import { splitCodecs } from "../../manifests/codecs.ts";
import type { Medium } from "./resources.ts";

/**
 * A medium as the page states it. `format_id` is made of what is stated (`https-720p-mp4`, `m3u8`), so
 * that a later call gives the same medium the same id; it is not unique yet.
 */
export function formatOf(medium: Medium): Format {
  const { protocol, ext, height, mime_type, width, tbr, filesize, language } = medium;
  const codecs = splitCodecs(/;\s*codecs\s*=\s*"?([^";]{1,500})/i.exec(medium.type ?? "")?.[1]);
  const url = medium.url.href;
  const parts = [
    protocol,
    height === null ? null : `${height}p`,
    protocol === "https" ? ext : null,
  ];
  return {
    format_id: parts.filter((part) => part !== null).join("-"),
    url,
    manifest_url: protocol === "https" ? null : url,
    protocol,
    ext: protocol === "https" ? ext : null,
    mime_type,
    width,
    height,
    fps: null,
    vcodec: medium.kind === "audio" ? "none" : codecs.vcodec,
    acodec: codecs.acodec,
    tbr,
    filesize,
    language,
    has_drm: false,
  };
}

/** All addresses of a record's formats together, characters. */
const maxAddressLength = 2 * 1024 * 1024;

/**
 * Returns the formats best first; equal ones keep the page's order. Drops the worst if all URLs together
 * have more than 2 Mi characters: a manifest at a long URL repeats it in each of its formats.
 */
export function bestFormats(formats: readonly Format[]): Format[] {
  const sorted = formats.toSorted(byQuality);
  let room = maxAddressLength;
  const end = sorted.findIndex(({ url, manifest_url }) => {
    room -= url.length + (manifest_url?.length ?? 0);
    return room < 0;
  });
  return end === -1 ? sorted : sorted.slice(0, end);
}
