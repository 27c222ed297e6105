import type { MediaMaker } from "./media.ts";

/** The parameters of every part of the benchmark. */
export interface Bench {
  /** URL of the media server. */
  base: string;
  /** When it has sent the last byte so far, milliseconds since 1970. */
  lastSentMs: () => Promise<number>;
  maker: MediaMaker;
  /** For output of other tools. */
  folder: string;
  rounds: number;
  /** Size of the large media. */
  largeBytes: number;
  isQuick: boolean;
}

/** Size of a segment of large streams. */
export const segmentBytes = 4 * 1024 * 1024;
