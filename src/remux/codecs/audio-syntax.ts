/** What an audio codec of self-contained frames (ADTS, MPEG audio, AC-3) tells about its stream. */
export interface AudioSyntax {
  /** First byte of every frame. */
  readonly firstByte: number;
  /** Bytes that tell whether a frame begins. */
  readonly headerLength: number;
  /**
   * The frame at `at`; `null`: none begins there; `"incomplete"`: the bytes do not tell yet (not with
   * `isLast`: then nothing follows them).
   */
  frameAt(bytes: Uint8Array, at: number, isLast: boolean): AudioFrame | "incomplete" | null;
}

export interface AudioFrame {
  /** Bytes, header included. */
  size: number;
  /** Of these, what an MP4 leaves out. */
  headerSize: number;
  sampleRate: number;
  /** Samples per channel. */
  samples: number;
  /** Frames with the same key have the same sample entry. */
  key: string;
  makeSampleEntry(): Uint8Array;
}
