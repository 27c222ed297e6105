/** What a codec of NAL units (H.264, HEVC) tells about its byte stream. */
export interface VideoSyntax {
  /** Bytes of a NAL unit that `classify` looks at. */
  readonly headerLength: number;
  /** What the NAL unit with its header at `at` is: bits of `nal`; what is not there counts as 0. */
  classify(bytes: Uint8Array, at: number): number;
  /** Whether an SEI message says that a decoder can start here. */
  isRecoveryPoint(unit: Uint8Array): boolean;
  /** Which parameter set this is; `null` where it cannot be read. */
  identify(unit: Uint8Array): ParameterSetName | null;
  /** `null` while sets are missing or cannot be read. */
  describe(sets: readonly ParameterSet[]): VideoDescription | null;
}

export interface ParameterSetName {
  level: ParameterSetLevel;
  id: number;
}

export interface ParameterSet extends ParameterSetName {
  unit: Uint8Array;
}

export type ParameterSetLevel = "video" | "sequence" | "picture";

export interface VideoDescription {
  sampleEntry: Uint8Array;
  /** Pixels as shown. */
  width: number;
  height: number;
}

/** Roles of a NAL unit in an access unit; several may hold at once. */
export const nal = {
  /** The first of a new access unit, if the one before already has a picture. */
  start: 1,
  picture: 2,
  sync: 4,
  parameters: 8,
  /** Means nothing in an MP4: delimiters and filler. */
  filler: 16,
  message: 32,
} as const;
