import type { ByteRange } from "../../../net/byte-range.ts";

/** A resource, or a range of one, that is downloaded into one file. */
export interface Part {
  /** File name: 1 to 64 lower-case letters, digits and hyphens. */
  name: string;
  url: URL;
  range: ByteRange | null;
}

export interface FetchOptions {
  signal: AbortSignal;
  /** Called for each response whose bytes are used. */
  onResponse?: (response: PartResponse) => void;
  /** Called after each write; `PartStore.bytes` is then up to date. Must not throw. */
  onBytes?: () => void;
}

export interface PartResponse {
  /** Bytes of the complete part; `null`: unknown. */
  total: number | null;
  contentType: string | null;
}

export interface FetchedPart {
  path: string;
  /** Bytes. */
  size: number;
  /** As stated by the server. */
  contentType: string | null;
}
