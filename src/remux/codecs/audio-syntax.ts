/** Parses the stream of an audio codec with self-contained frames (ADTS, MPEG audio, AC-3). */
export interface AudioSyntax {
  readonly firstByte: number;
  /** Bytes that show whether a frame starts. */
  readonly headerLength: number;
  /**
   * Returns the frame at `at`; `null` if none starts there; `"incomplete"` if `bytes` is too short to
   * decide (not with `isLast`: then no more bytes follow).
   */
  frameAt(bytes: Uint8Array, at: number, isLast: boolean): AudioFrame | "incomplete" | null;
  /** Returns whether the checksums of a frame are right; absent: not every frame has one. */
  isIntact?(frame: Uint8Array): boolean;
}

export interface AudioFrame {
  /** Bytes, header included. */
  size: number;
  /** Bytes of the header, if an MP4 leaves it out; else 0. */
  headerSize: number;
  sampleRate: number;
  /** Samples per channel. */
  samples: number;
  /** Frames with the same key have the same sample entry. */
  key: string;
  makeSampleEntry(): Uint8Array;
}

/** Returns the frame at `at` if no more bytes follow; `null`: none starts there. */
export function frameIn(syntax: AudioSyntax, bytes: Uint8Array, at: number): AudioFrame | null {
  const frame = syntax.frameAt(bytes, at, true);
  return frame === "incomplete" ? null : frame;
}

/** Returns whether a frame is at `at`, and after it another one or the end. */
export function isFrame(syntax: AudioSyntax, bytes: Uint8Array, at: number): boolean {
  const frame = frameIn(syntax, bytes, at);
  if (frame === null) return false;
  const end = at + frame.size;
  return end + syntax.headerLength > bytes.length || frameIn(syntax, bytes, end) !== null;
}

/** So many frames in a row are no other bytes by chance. */
const runFrames = 3;

/** Returns whether frames of one sampling rate follow each other at `at`, in full. */
export function isRun(syntax: AudioSyntax, bytes: Uint8Array, at: number): boolean {
  let rate: number | undefined;
  let end = at;
  for (let count = 0; count < runFrames; count++) {
    const frame = frameIn(syntax, bytes, end);
    if (frame === null || frame.sampleRate !== (rate ?? frame.sampleRate)) return false;
    rate = frame.sampleRate;
    end += frame.size;
  }
  return end <= bytes.length;
}
