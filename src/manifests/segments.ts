/**
 * What a manifest says about fetching one format: its segments in order. HLS media playlists (RFC
 * 8216 §4.3.3) and DASH Representations (ISO/IEC 23009-1 §5.3.9) come down to the same.
 */
export interface SegmentList {
  segments: Segment[];
  /** The list is complete: no later reading of the manifest will show more. */
  hasEnded: boolean;
  /** How often a list that is not over may be read again, seconds. */
  refreshS: number;
}

export interface Segment {
  url: string;
  /** Bytes of the resource; `null`: all of it. */
  range: SegmentRange | null;
  /** What a decoder must have before it (EXT-X-MAP, Initialization); `null`: nothing. */
  init: InitSection | null;
  key: SegmentKey | null;
  /** Seconds as stated; 0 where nothing is. */
  durationS: number;
  /** Counts up through the list (EXT-X-MEDIA-SEQUENCE, or the number in the whole presentation). */
  sequence: number;
  /** Media times go on from one segment to the next only while this stays the same. */
  timeline: number;
  /**
   * To be added to the media's own times to get presentation times, seconds (DASH: start of the
   * Period − presentationTimeOffset). `null`: a timeline goes on where the one before it ended.
   */
  offsetS: number | null;
}

export interface SegmentRange {
  offset: number;
  length: number;
}

export interface InitSection {
  url: string;
  range: SegmentRange | null;
  key: SegmentKey | null;
}

/** AES-128 in CBC mode with PKCS #7 padding over the whole segment (RFC 8216 §5.2). */
export interface SegmentKey {
  url: string;
  /** 16 bytes in hexadecimal. */
  iv: string;
}
