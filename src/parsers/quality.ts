const maxLength = 60;
const maxPathLength = 200;

const words = String.raw`[\W_]*(?:(?:u?hd|fhd|sd|[hl]q|high|medium|low|quality|video|mp4|webm|hls|dash)[\W_]*)*`;
/** A number alone, or next to words for quality and formats: any other text may have a number. */
const bareHeight = new RegExp(String.raw`^${words}(\d{3,4})${words}$`, "i");
/** `720p`, `1080p60` or `1280x720`; the number in `h264` or `x265` is no height. */
const labelledHeight = /(?:^|[^\dhx])(?:(\d{3,4})p\d{0,2}\b|\d{3,4}x(\d{3,4})(?:p\d{0,2}\b|\s|$))/i;

/** Returns the height in pixels that a label such as `720`, `HD 720p`, `1080p60`, `1280x720` or `4K` names; else `null`. */
export function parseQuality(label: string | null | undefined): number | null {
  const text = label?.slice(0, maxLength) ?? "";
  const [, lines, rows] = labelledHeight.exec(text) ?? [];
  const height = Number(lines ?? rows ?? bareHeight.exec(text)?.[1] ?? 0);
  if (height >= 100 && height <= 4_320) return height;
  const [, thousands] = /(?:^|[^\w.])([48])k\b/i.exec(text) ?? [];
  return thousands === undefined ? null : Number(thousands) * 540;
}

/** Returns the height in pixels in the name of a file, as in `otters-720p.mp4`; else `null`. */
export function qualityInPath({ pathname }: URL): number | null {
  const [, digits] = /[-_./](\d{3,4})p(?=[-_./]|$)/i.exec(pathname.slice(-maxPathLength)) ?? [];
  return digits === undefined ? null : parseQuality(digits);
}
