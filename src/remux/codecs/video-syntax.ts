/** Parses the NAL units of a video codec (H.264, HEVC). */
export interface VideoSyntax {
  /** Bytes of a NAL unit that `classify` reads. */
  readonly headerLength: number;
  /** Returns the roles of the NAL unit with its header at `at`: bits of `nal`. Missing bytes count as 0. */
  classify(bytes: Uint8Array, at: number): number;
  /** Returns whether an SEI NAL unit has a recovery point: decoding can start here. */
  isRecoveryPoint(unit: Uint8Array): boolean;
  /** Returns level and id of a parameter set; `null` if it is damaged. */
  identify(unit: Uint8Array): Pick<ParameterSet, "level" | "id"> | null;
  /** Returns `null` while sets are missing or if they are damaged. */
  describe(sets: readonly ParameterSet[]): VideoDescription | null;
}

export interface ParameterSet {
  level: "video" | "sequence" | "picture";
  id: number;
  /** The NAL unit. */
  unit: Uint8Array;
}

export interface VideoDescription {
  sampleEntry: Uint8Array;
  /** Pixels as shown. */
  width: number;
  height: number;
}

/** Roles of a NAL unit in an access unit; it may have several. */
export const nal = {
  /** Starts a new access unit, if the current one already has a picture. */
  start: 1,
  picture: 2,
  sync: 4,
  parameters: 8,
  /** Is not needed in an MP4: delimiters and filler. */
  filler: 16,
  message: 32,
} as const;
