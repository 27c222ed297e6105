import type { ByteRange } from "../../../net/byte-range.ts";
import type { HeadersFor } from "../../../net/client.ts";

/** A resource, or a range of one, that is downloaded into one file. */
export interface Part {
  /** File name: 1 to 64 lower-case letters, digits and hyphens. */
  name: string;
  url: URL;
  range: ByteRange | null;
  /** Most bytes that one request asks for; default all. */
  chunkBytes?: number | undefined;
}

export interface FetchOptions {
  signal: AbortSignal;
  /** Further header fields of each request. */
  headers?: HeadersFor;
  /** Called for each response whose bytes are used, with the size of the complete part; `null`: unknown. */
  onTotal?: (bytes: number | null) => void;
  /** Called after each write; `PartStore.bytes` is then up to date. Must not throw. */
  onBytes?: () => void;
}

export interface FetchedPart {
  path: string;
  /** Bytes. */
  size: number;
}
