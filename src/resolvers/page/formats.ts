import type { Format } from "../../page-info.ts";
import { splitCodecs } from "../../manifests/manifest.ts";
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
 * Best first: pictures before mere sound, then height, then bit rate; else the page's order. The worst
 * are left out where all their addresses are longer than 2 Mi characters: a manifest at a long address
 * repeats it in each of its formats.
 */
export function bestFormats(formats: readonly Format[]): Format[] {
  const rank = ({ vcodec, height, tbr }: Format) =>
    [vcodec === "none" ? 0 : 1, height ?? 0, tbr ?? 0] as const;
  const sorted = formats.toSorted((a, b) => {
    const [x, y] = [rank(a), rank(b)];
    return y[0] - x[0] || y[1] - x[1] || y[2] - x[2];
  });
  let room = maxAddressLength;
  const end = sorted.findIndex(({ url, manifest_url }) => {
    room -= url.length + (manifest_url?.length ?? 0);
    return room < 0;
  });
  return end === -1 ? sorted : sorted.slice(0, end);
}
