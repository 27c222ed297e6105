import type { Format } from "./page-info.ts";

type SizedFormat = Pick<Format, "protocol" | "filesize" | "filesize_approx">;

/**
 * Returns the format with an estimate of its size if it has none: `tbr` (kbit/s; default its own) × `duration`
 * (seconds).
 */
export function withApproximateSize<F extends Format>(
  format: F,
  duration: number | null,
  tbr: number | null = format.tbr,
): F {
  if (sizeOf(format) !== null) return format;
  const bytes = Math.round((tbr ?? 0) * (duration ?? 0) * 125);
  const isKnown = Number.isSafeInteger(bytes) && bytes > 0;
  return { ...format, filesize_approx: isKnown ? bytes : null };
}

/**
 * Returns how large the download of `format` is with its separate audio (`createAudioFinder`; `null`: none); `null` if
 * that is not known. `isExact`: it is the size of the one file that is downloaded. The size of an HLS variant includes the
 * audio (RFC 8216 §4.3.4.2).
 */
export function downloadSize(format: SizedFormat, audio: SizedFormat | null) {
  const own = sizeOf(format);
  const added = audio === null || format.protocol === "m3u8" ? 0 : sizeOf(audio);
  if (own === null || added === null) return null;
  return { bytes: own + added, isExact: format.filesize !== null && audio === null };
}

function sizeOf({ filesize, filesize_approx = null }: SizedFormat): number | null {
  return filesize ?? filesize_approx;
}
