import type { TrackOutput } from "../track-output.ts";
import type { StreamClock } from "./clock.ts";
import type { ElementaryStream } from "./stream.ts";

/** Makes samples of one elementary stream. */
export interface TrackReader {
  /** Reads what is complete; with `isLast` everything. */
  read(isLast: boolean): void;
  /** Bytes were lost: what follows does not continue what is held. */
  skip(): void;
}

export interface TrackReaderOptions<Syntax> {
  stream: ElementaryStream;
  syntax: Syntax;
  clock: StreamClock;
  output: TrackOutput;
  /** Called at each place where media are left out: an access unit that cannot be decoded, damaged bytes between frames. */
  onDrop?: () => void;
  /** BCP 47; `null`: unknown. */
  language: string | null;
}
