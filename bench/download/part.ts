import type { MediaMaker } from "./media.ts";

/** What every part of the bench is given. */
export interface Bench {
  /** Address of the media server. */
  base: string;
  maker: MediaMaker;
  /** For results of other tools. */
  folder: string;
  rounds: number;
  /** Size of the large media. */
  largeBytes: number;
  isQuick: boolean;
}

/** Of the segments of large streams. */
export const segmentBytes = 4 * 1024 * 1024;
