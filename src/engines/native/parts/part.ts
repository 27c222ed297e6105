import type { ByteRange } from "../../../net/client.ts";

/** A resource, or bytes of one. */
export interface Part {
  /** Of its file: lower-case letters, digits and hyphens, at most 64. */
  name: string;
  url: URL;
  range: ByteRange | null;
}

export interface FetchOptions {
  signal: AbortSignal;
  /** Called with each answer that bytes are taken from. */
  onStart?: (start: PartStart) => void;
  /** Called whenever more is in the file; `Parts.bytes` says how far it all is. Must not throw. */
  onBytes?: () => void;
}

export interface PartStart {
  /** Bytes of the whole part; `null`: not told. */
  total: number | null;
  contentType: string | null;
}

export interface FetchedPart {
  path: string;
  /** Bytes. */
  size: number;
  /** As the server stated it. */
  contentType: string | null;
}
