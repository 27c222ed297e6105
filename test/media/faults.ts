import type { MediaRequest } from "./server.ts";

/** How one answer differs from a good one: 200 or 206 with length, ETag and all bytes. */
export interface Fault {
  /** Instead of the medium: this status with a short text as body. */
  status?: number;
  /** Added to the header, or put in place of its own fields; `null` takes one away. */
  headers?: Readonly<Record<string, string | null>>;
  /** Before the header, milliseconds. */
  delayMs?: number;
  /** No length is stated: the body comes in chunks, or ends with the connection. */
  length?: "chunked" | "closing";
  /** `Range` is ignored. */
  ignoresRange?: boolean;
  /** The end of `Range` is ignored: all that follows its start is sent. */
  ignoresRangeEnd?: boolean;
  /** `If-Range` is ignored: a range is sent whatever the validator. */
  ignoresIfRange?: boolean;
  /** Added to the stated length; of what is stated too short the rest is sent all the same. */
  lengthLie?: number;
  /** The connection is reset once so many bytes of the body are sent. */
  cutAfter?: number;
  /** Nothing more comes once so many bytes of the body are sent. */
  stallAfter?: number;
  /** The medium is sent gzipped, whole. */
  gzip?: boolean;
}

/** The fault of an answer; a function may tell requests apart, by `request.nth` above all. */
export type Faults = Fault | ((request: MediaRequest) => Fault);

/** `fault` for the first `count` requests of a path; the others get a good answer. */
export function first(count: number, fault: Fault): (request: MediaRequest) => Fault {
  return ({ nth }) => (nth < count ? fault : {});
}
