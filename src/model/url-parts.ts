/** Returns the last segment of a URL's path without extension, decoded; `null` if it is empty. */
export function nameInPath(url: string): string | null {
  const last = URL.parse(url)?.pathname.split("/").at(-1) ?? "";
  const stem = last.replace(/\.[a-z\d]{2,5}$/i, "");
  try {
    return decodeURIComponent(stem) || null;
  } catch {
    return stem;
  }
}

/** Returns the host by which tasks are limited; `""` if `url` is not a URL. */
export function hostOf(url: string): string {
  // Stored URLs are normalised, so that the parser is rarely needed.
  return /^https?:\/\/([a-z0-9.-]+)\//.exec(url)?.[1] ?? URL.parse(url)?.host ?? "";
}

/** A host (`URL.host`) that is left alone, and for how long from now. */
export interface HostPause {
  host: string;
  seconds: number;
}
