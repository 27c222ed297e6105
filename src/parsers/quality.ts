const maxLength = 60;
const maxPathLength = 200;

/** Returns the height in pixels that a label such as `720`, `HD 720p`, `1080p60`, `1280x720` or `4K` states; else `null`. */
export function parseQuality(label: string | null | undefined): number | null {
  // The number in `h264` or `x265` is no height.
  const text = label?.slice(0, maxLength) ?? "";
  const found = /(?:^|[^\dhx])(?:\d{3,4}x)?(\d{3,4})(?:p\d{0,2}\b|\s|$)/i.exec(text);
  const height = Number(found?.[1] ?? 0);
  if (height >= 100 && height <= 4_320) return height;
  const [, thousands] = /(?:^|[^\w.])([48])k\b/i.exec(text) ?? [];
  return thousands === undefined ? null : Number(thousands) * 540;
}

/** Returns the height in pixels that the name of a file states, as in `otters-720p.mp4`; else `null`. */
export function qualityInPath({ pathname }: URL): number | null {
  const [, digits] = /[-_./](\d{3,4})p(?=[-_./]|$)/i.exec(pathname.slice(-maxPathLength)) ?? [];
  return digits === undefined ? null : parseQuality(digits);
}
