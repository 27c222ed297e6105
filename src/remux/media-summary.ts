/** The media of a file by its own fields. */
export interface MediaSummary {
  hasVideo: boolean;
  /** Seconds; `null`: unknown. */
  durationS: number | null;
  /** Of the first format of the video, pixels as displayed; `null`: no video, or not known. */
  width: number | null;
  height: number | null;
}

/** The media of a file by its first bytes; `null`: unknown. */
export interface FileHeader {
  container: "mp4" | "webm" | "matroska";
  /** Seconds. */
  duration: number | null;
  /** Pixels as displayed, of the first video track. */
  width: number | null;
  height: number | null;
  /** Mean frames per second. */
  fps: number | null;
  /** As in RFC 6381, but not always complete; `"none"`: no such track. */
  vcodec: string | null;
  acodec: string | null;
}

/** Rounds to thousandths; `null` unless it is a number above 0 that JSON can have. */
export function roundNumber(value: number): number | null {
  return Number.isFinite(value) && value > 0 ? Math.round(value * 1e3) / 1e3 || null : null;
}
