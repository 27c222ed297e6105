import { deserialize, serialize } from "node:v8";
import { deserializeError, type SerializedError, serializeError, ServiceError } from "../../../model/errors.ts";
import { urlForMessage } from "../../../net/http-url.ts";
import type { ReadJob, ReadKind, ReadResults } from "./reader.ts";

/** Restoring a larger result would take the service's process too long. */
const maxResultBytes = 16 * 1024 * 1024;

/** Bytes of the length that precedes a message. */
export const lengthBytes = 4;

/** Returns the message for a job: its length, and the job with the length of its body. */
export function packJob({ url, ...job }: ReadJob, bodyBytes: number): Buffer {
  return withLength(serialize({ job: { ...job, url: url.href }, bodyBytes }));
}

/** Returns what `packJob` was called with; `bytes` are those after the length. */
export function unpackJob(bytes: Uint8Array): { job: ReadJob; bodyBytes: number } {
  const { job, bodyBytes } = deserialize(bytes);
  return { job: { ...job, url: new URL(job.url) }, bodyBytes };
}

/** Returns the message for what `read` returns or throws; instead of a result of more than 16 MiB, an error. */
export function packOutcome<K extends ReadKind>(job: ReadJob<K>, read: () => ReadResults[K]): Buffer {
  try {
    const bytes = serialize({ result: withoutUrls(read()) });
    if (bytes.length <= maxResultBytes) return withLength(bytes);
    throw tooComplexError(job, `what is read from it takes ${bytes.length} bytes, the limit is ${maxResultBytes}`);
  } catch (error) {
    return withLength(serialize({ failure: serializeError(error) }));
  }
}

/** Returns or throws what `packOutcome` was called with; `bytes` are those after the length. */
export function unpackOutcome<K extends ReadKind>(job: ReadJob<K>, bytes: Uint8Array): ReadResults[K] {
  const outcome = deserialize(bytes) as { result: unknown } | { failure: SerializedError };
  if ("failure" in outcome) throw deserializeError(outcome.failure, `reading ${nameOf(job)}`);
  return withUrls(outcome.result) as ReadResults[K];
}

function withLength(message: Buffer): Buffer {
  const length = Buffer.alloc(lengthBytes);
  length.writeUInt32LE(message.length);
  return Buffer.concat([length, message]);
}

/** Puts a message together as it arrives. */
export class MessageParts {
  #chunks: Buffer[] = [];
  #bytes = 0;
  /** Of the message with its length. */
  #total = Infinity;

  /** Returns the message, without its length, once it is complete; until then null. */
  add(chunk: Buffer): Buffer | null {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#total === Infinity && this.#bytes >= lengthBytes) {
      this.#chunks = [Buffer.concat(this.#chunks)];
      this.#total = lengthBytes + (this.#chunks[0]?.readUInt32LE() ?? 0);
    }
    return this.#bytes < this.#total ? null : Buffer.concat(this.#chunks).subarray(lengthBytes);
  }
}

/** The error for what needs more than one body may; `rule` has the limit. */
export function tooComplexError(job: ReadJob, rule: string, cause?: Error): ServiceError {
  return new ServiceError("upstream_invalid", `${nameOf(job)} is too complex: ${rule}`, { cause });
}

const names: Readonly<Record<ReadKind, string>> = {
  page: "page",
  oembed: "oEmbed response",
  m3u8: "HLS playlist",
  dash: "MPD",
  chapters: "file of chapters",
  feed: "feed",
  m3u: "M3U",
  pls: "PLS",
};

function nameOf({ kind, url }: ReadJob): string {
  return `the ${names[kind]} at ${urlForMessage(url)}`;
}

/** Puts a `Map` in the place of each URL in a result: URLs cannot be serialized, and no result has other maps. */
function withoutUrls(value: unknown): unknown {
  return value instanceof URL ? new Map([["href", value.href]]) : replaceWithin(value, withoutUrls);
}

/** Reverts `withoutUrls`. */
function withUrls(value: unknown): unknown {
  return value instanceof Map ? new URL(value.get("href")) : replaceWithin(value, withUrls);
}

/** Replaces the objects in an object, which has no other owner; copies would take several times as long. */
function replaceWithin(value: unknown, replace: (value: unknown) => unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  const parent = value as Record<string, unknown>;
  for (const name of Object.keys(parent)) {
    if (typeof parent[name] === "object") parent[name] = replace(parent[name]);
  }
  return value;
}
