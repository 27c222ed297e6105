/**
 * What demuxers give and the MP4 writer takes. Times are whole ticks of the track's own timescale, on
 * one presentation timeline for all tracks, and may be negative or start late: the writer moves the
 * earliest presentation time of all tracks to 0 and keeps their distances (edit lists). Sound up to a
 * second before time 0 is the decoder's priming: it is kept, but not shown.
 */
export interface TrackFormat {
  kind: "video" | "audio";
  /** Ticks per second, a positive integer below 2^32. */
  timescale: number;
  /** One whole SampleEntry box (ISO/IEC 14496-12 §8.5.2): `avc1`, `hvc1`, `av01`, `mp4a` … */
  sampleEntry: Uint8Array;
  /** Pixels as shown; 0 for audio. */
  width: number;
  height: number;
  /** BCP 47, or `null`. */
  language: string | null;
}

export interface Sample {
  /** One access unit in the form that an MP4 file has (length-prefixed NAL units, raw AAC …). */
  data: Uint8Array;
  /** Ticks. Those of one track rise; where they do not, the writer makes them. */
  dts: number;
  pts: number;
  /** Ticks; 0: until the next sample of the track. */
  duration: number;
  /** A decoder can start here. */
  isSync: boolean;
}

/** Takes one or more tracks' samples; what it is given is copied or written before it returns. */
export interface SampleSink {
  /**
   * Adds a track, or says that the samples of `track` from now on are of this format (another
   * SampleEntry after a discontinuity; kind and timescale stay). Gives the track's number.
   */
  setFormat(format: TrackFormat, track?: number): number;
  write(track: number, sample: Sample): void;
}

/** A demuxer of one stream of pieces, fed in order; it writes into a sink as it goes. */
export interface Demuxer {
  /**
   * Reads one piece (segment, already decrypted, init sections included as pieces of their own).
   * @throws ServiceError `upstream_invalid` for what is not of this container or is damaged beyond
   * reading; `format_unavailable` for a codec that cannot be put into an MP4; `drm_protected`.
   */
  read(piece: Uint8Array, place: SegmentTiming): void;
  /** Writes what is held back (the last access units). */
  flush(): void;
}

/** Where a piece stands in the presentation. */
export interface SegmentTiming {
  timeline: number;
  /** As in `Segment`. */
  offsetS: number | null;
}
