import { createDecipheriv, createHash } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { ServiceError } from "../../errors.ts";
import type { InitSection, Segment, SegmentKey } from "../../manifests/segments.ts";
import type { HttpClient } from "../../net/client.ts";
import { mapConcurrent } from "./map-concurrent.ts";
import { followLive } from "./live.ts";
import type { FetchedPart, Part } from "./part-store.ts";
import { createRetryPolicy } from "./parts/retry-policy.ts";
import type { Source } from "./plan.ts";
import type { SegmentTiming } from "../../remux/samples.ts";

/** An init section or segment on the disk, in the order of the presentation. */
export interface FetchedSegment {
  path: string;
  size: number;
  /** How its bytes are to be read; `null`: as they are. */
  cipher: Cipher | null;
  place: SegmentTiming;
}

export interface Cipher {
  key: Buffer;
  iv: Buffer;
}

export interface FetchSegmentsOptions {
  fetch: (part: Part) => Promise<FetchedPart>;
  client: HttpClient;
  signal: AbortSignal;
  maxLiveS: number;
  /** How many are fetched ahead of the one that is read. */
  ahead: number;
  /** A piece is on the disk. */
  onPiece: (durationS: number, bytes: number) => void;
}

/** Fetches the segments of `source`, several at a time. */
export async function* fetchSegments(
  source: Extract<Source, { kind: "segments" }>,
  options: FetchSegmentsOptions,
): AsyncGenerator<FetchedSegment> {
  const { fetch, ahead, onPiece } = options;
  const { liveMemory } = source;
  const readKey = createKeyReader(options);
  const fetchPiece = async ({
    part,
    key,
    place,
    durationS,
  }: Item): Promise<FetchedSegment | null> => {
    try {
      const [{ path, size }, cipher] = await Promise.all([fetch(part), readKey(key)]);
      onPiece(durationS, size);
      return { path, size, cipher, place };
    } catch (error) {
      if (liveMemory !== null && isGone(error)) return null;
      throw error;
    }
  };
  const { list, reload } = source;
  const segments =
    liveMemory === null
      ? list.segments
      : followLive({ ...options, first: list, reload, memory: liveMemory });
  for await (const piece of mapConcurrent(itemsOf(source.name, segments), ahead, fetchPiece)) {
    if (piece !== null) yield piece;
  }
}

interface Item {
  part: Part;
  key: SegmentKey | null;
  place: SegmentTiming;
  durationS: number;
}

/** Each init section comes before the first segment that needs it, and again where it changes back. */
async function* itemsOf(
  name: string,
  segments: Iterable<Segment> | AsyncIterable<Segment>,
): AsyncGenerator<Item> {
  let init: string | null = null;
  for await (const segment of segments) {
    const place = { timeline: segment.timeline, offsetS: segment.offsetS };
    const wanted = segment.init && nameOfInit(name, segment.init);
    if (segment.init !== null && wanted !== null && wanted !== init) {
      const { url, range, key } = segment.init;
      yield { part: { name: wanted, url: new URL(url), range }, key, place, durationS: 0 };
    }
    init = wanted;
    const { url, range, key, sequence, durationS } = segment;
    const part = { name: `${name}-${`${sequence}`.padStart(6, "0")}`, url: new URL(url), range };
    yield { part, key, place, durationS };
  }
}

function nameOfInit(name: string, { url, range }: InitSection): string {
  const hash = createHash("sha256").update(`${url} ${range?.offset} ${range?.length}`);
  return `${name}-init-${hash.digest("hex").slice(0, 16)}`;
}

/** A live segment that the server no longer has is a gap in the recording, not its end. */
function isGone(error: unknown): boolean {
  return error instanceof ServiceError && [404, 410].includes(error.upstreamStatus ?? 0);
}

/** Keys are fetched once and never written to the disk. */
function createKeyReader({ client, signal }: FetchSegmentsOptions) {
  const keys = new Map<string, Promise<Buffer>>();
  return async (key: SegmentKey | null): Promise<Cipher | null> => {
    if (key === null) return null;
    const known = keys.get(key.url) ?? fetchKeyPatiently(new URL(key.url), client, signal);
    keys.set(key.url, known);
    return { key: await known, iv: Buffer.from(key.iv, "hex") };
  };
}

const keyBackOffMs = 500;

/** As often as a part is tried. */
async function fetchKeyPatiently(
  url: URL,
  client: HttpClient,
  signal: AbortSignal,
): Promise<Buffer> {
  const patience = createRetryPolicy(keyBackOffMs, signal);
  for (;;) {
    try {
      return await fetchKey(url, client, signal);
    } catch (error) {
      signal.throwIfAborted();
      await patience.backOff(error, 0);
    }
  }
}

const keyLength = 16;

async function fetchKey(url: URL, client: HttpClient, signal: AbortSignal): Promise<Buffer> {
  const answer = await client.get(url, { signal, maxBytes: 1024 });
  const key = await buffer(answer.body);
  if (key.length === keyLength) return key;
  throw new ServiceError(
    "upstream_invalid",
    `the key at ${url.origin}${url.pathname} must be ${keyLength} bytes long, it has ${key.length}`,
  );
}

/** Undoes AES-128 in CBC mode (RFC 8216 §4.3.2.4). @throws ServiceError `upstream_invalid` */
export function decipher(bytes: Buffer, { key, iv }: Cipher): Buffer {
  if (bytes.length === 0) return bytes;
  try {
    const cipher = createDecipheriv("aes-128-cbc", key, iv);
    return Buffer.concat([cipher.update(bytes), cipher.final()]);
  } catch (cause) {
    throw new ServiceError("upstream_invalid", "a segment cannot be decrypted with its key", {
      cause,
    });
  }
}
