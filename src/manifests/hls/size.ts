import type { PlaylistLine } from "./lines.ts";

/** Adds up what the lines of a media playlist state of its segments' sizes. */
export interface SizeReader {
  read(line: PlaylistLine): void;
  /** Bytes; `null` if one segment's size is not stated. */
  size(): number | null;
}

/**
 * Creates a reader of EXT-X-BYTERANGE, which is exact, and EXT-X-BITRATE, kbit/s within 10 % of the segments that
 * follow it (RFC 8216bis §4.4.4.2, §4.4.4.8). Init sections are not counted.
 */
export function createSizeReader(): SizeReader {
  let bytes: number | null = 0;
  let kilobits = 0;
  let durationS = 0;
  let range: number | null = null;

  function addSegment(): void {
    const size = range ?? kilobits * durationS * 125;
    bytes = bytes === null || size === 0 ? null : bytes + size;
    durationS = 0;
    range = null;
  }

  return {
    read({ tag, value }) {
      if (tag === null) addSegment();
      else if (tag === "#EXTINF") durationS = positive(value);
      else if (tag === "#EXT-X-BITRATE") kilobits = positive(value);
      else if (tag === "#EXT-X-BYTERANGE") range = positive(value);
    },
    size() {
      const rounded = Math.round(bytes ?? 0);
      return Number.isSafeInteger(rounded) && rounded > 0 ? rounded : null;
    },
  };
}

/** Returns 0 for what is no number above 0. */
function positive(value: string): number {
  const number = Number.parseFloat(value);
  return number > 0 && number <= Number.MAX_SAFE_INTEGER ? number : 0;
}
