import { createDecipheriv } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { type SegmentKey, readDataKey } from "../../../manifests/segments.ts";
import { isServiceError, isUpstreamError, ServiceError } from "../../../model/errors.ts";
import type { HeadersFor, HttpClient } from "../../../net/client.ts";
import { urlForMessage } from "../../../net/http-url.ts";
import { packetLength, sync } from "../../../remux/mpeg-ts/packets.ts";
import { decryptSamples } from "../../../remux/sample-encryption.ts";
import { sniffContainer } from "../../../remux/sniff.ts";
import { maxFailures, RetryPolicy } from "../parts/retry-policy.ts";

export interface AesKey extends Pick<SegmentKey, "isOfSamples" | "cipher"> {
  key: Buffer;
  iv: Buffer;
  /** Resolves with a key of the same URL that is none of these, fetched again if need be; `null`: there is none. */
  another: (wrong: readonly Buffer[]) => Promise<Buffer | null>;
}

type KeyRequest = Readonly<{ headers: HeadersFor; signal: AbortSignal }>;
/** `bytes`: how many the key must have. */
type SizedKeyRequest = KeyRequest & Readonly<{ bytes: number }>;

/** Returns a function that fetches each key once, and again if it is wrong. What is fetched is never written to the disk. */
export function createKeyReader(
  client: HttpClient,
  options: KeyRequest,
): (key: SegmentKey | null) => Promise<AesKey | null> {
  const keys = new Map<string, KeyAtUrl>();
  return async (segmentKey) => {
    if (segmentKey === null) return null;
    const { url, iv, ...how } = segmentKey;
    const bytes = how.cipher === undefined ? 16 : 32;
    const key = keys.getOrInsertComputed(`${bytes} ${url}`, () => new KeyAtUrl(url, client, { ...options, bytes }));
    const another = (wrong: readonly Buffer[]) => key.another(wrong);
    return { key: await key.latest(), iv: Buffer.from(iv, "hex"), ...how, another };
  };
}

/** How many keys of one URL are remembered. */
const maxKnown = 16;

/** The keys that a URL has had: a server may send another one for a moment, and that of a live stream may change it at any time. */
class KeyAtUrl {
  readonly #known: Buffer[] = [];
  readonly #fetch: () => Promise<Buffer>;
  readonly #retryPolicy: RetryPolicy;
  /** How often it may be fetched again for one segment: that of a `data:` URL is always the same. */
  readonly #maxAgain: number;
  #latest: Promise<Buffer> | undefined;
  /** Fetching again was in vain, the latest time: many segments may have been encrypted with a key that is gone. */
  #isWrong = false;

  constructor(url: string, client: HttpClient, options: SizedKeyRequest) {
    const given = readDataKey(url);
    if (given !== null) checkLength("the key in the playlist", given, options);
    this.#maxAgain = given === null ? maxFailures : 0;
    this.#fetch = async () => given ?? fetchKey(new URL(url), client, options);
    this.#retryPolicy = new RetryPolicy(keyBackoffMs, options.signal);
  }

  latest(): Promise<Buffer> {
    return this.#latest ?? this.#fetchLatest();
  }

  /** As `AesKey.another`. */
  async another(wrong: readonly Buffer[]): Promise<Buffer | null> {
    if (wrong.length > maxKnown) return null;
    const maxAgain = this.#isWrong ? Math.min(1, this.#maxAgain) : this.#maxAgain;
    const isOther = (key: Buffer) => !wrong.some((other) => other.equals(key));
    for (let failures = 0; ; failures += 1) {
      const found = this.#known.find(isOther);
      const isLast = found !== undefined || failures === maxAgain;
      if (isLast && failures > 0) this.#isWrong = found === undefined;
      if (isLast) return found ?? null;
      if (failures > 0) await this.#retryPolicy.wait(failures);
      await this.#fetchLatest();
    }
  }

  /** A failure is forgotten: the key of a live stream may come to its server later than the playlist that names it. */
  #fetchLatest(): Promise<Buffer> {
    const latest = this.#fetchAgain().catch((error: unknown) => {
      if (this.#latest === latest) this.#latest = undefined;
      throw error;
    });
    return (this.#latest = latest);
  }

  async #fetchAgain(): Promise<Buffer> {
    const key = await this.#fetch();
    if (!this.#known.some((known) => known.equals(key))) this.#known.unshift(key);
    this.#known.splice(maxKnown);
    return key;
  }
}

const keyBackoffMs = 500;

/** Retries as often as a part is retried; what is no key, too: a server may send a message with status 200 for a moment. */
async function fetchKey(url: URL, client: HttpClient, options: SizedKeyRequest): Promise<Buffer> {
  const { signal } = options;
  const retryPolicy = new RetryPolicy(keyBackoffMs, signal);
  for (;;) {
    try {
      const response = await client.get(url, { ...options, maxBytes: 1024 });
      const key = await buffer(response.body);
      checkLength(`the key at ${urlForMessage(url)}`, key, options);
      return key;
    } catch (error) {
      signal.throwIfAborted();
      await (isServiceError(error, "upstream_invalid") ? retryPolicy.repeat(error) : retryPolicy.backOff(error, 0));
    }
  }
}

function checkLength(name: string, { length }: Buffer, { bytes }: SizedKeyRequest): void {
  if (length === bytes) return;
  throw new ServiceError("upstream_invalid", `${name} must have ${bytes} bytes, it has ${length}`);
}

/**
 * Decrypts a segment (RFC 8216 §4.3.2.4). The padding may be missing, as CTR mode always has none.
 *
 * @throws ServiceError `upstream_invalid` if all keys of a whole segment are wrong, also when fetched again: there is neither padding nor
 *   known media; what fetching it rejects with.
 */
export async function decrypt(bytes: Buffer, aesKey: AesKey): Promise<Uint8Array> {
  const { key: first, iv, isOfSamples, cipher, another } = aesKey;
  if (bytes.length === 0) return bytes;
  if (isOfSamples) return decryptSamples(bytes, { key: first, iv });
  const wrong: Buffer[] = [];
  let doubtful: Buffer | undefined;
  for (let key = first; ;) {
    const plain = decryptBlocks(bytes, { ...aesKey, key });
    const padding = cipher === "aes-256-ctr" || isWholePackets(plain) ? 0 : paddingOf(plain);
    const found = plain.subarray(0, plain.length - padding);
    if (padding >= certainPadding || sniffContainer(plain) !== null) return found;
    if (padding > 0) doubtful ??= found;
    wrong.push(key);
    const other = await another(wrong).catch((error: unknown) => {
      if (doubtful === undefined || !isUpstreamError(error)) throw error;
      return null;
    });
    if (other !== null) key = other;
    else if (doubtful !== undefined) return doubtful;
    else throw undecryptableError();
  }
}

/** What one of 256 wrong keys gives ends with a byte that looks like padding; with more, hardly any does. */
const certainPadding = 4;

function decryptBlocks(bytes: Buffer, { key, iv, cipher }: Pick<AesKey, "key" | "iv" | "cipher">): Buffer {
  try {
    const decipher = createDecipheriv(cipher ?? "aes-128-cbc", key, iv).setAutoPadding(false);
    const plain = decipher.update(bytes);
    decipher.final();
    return plain;
  } catch (cause) {
    throw undecryptableError(cause);
  }
}

function undecryptableError(cause?: unknown): ServiceError {
  const message = "a segment cannot be decrypted with its key";
  return new ServiceError("upstream_invalid", message, { cause });
}

/** Returns the length of the PKCS #7 padding (RFC 5652 §6.3) at the end; 0 if there is none. */
function paddingOf(plain: Buffer): number {
  const length = plain.at(-1) ?? 0;
  const isPadding = length <= 16 && plain.subarray(-length).every((byte) => byte === length);
  return isPadding ? length : 0;
}

/** Returns whether a transport stream ends with a whole packet: its last bytes are no padding then. */
function isWholePackets(plain: Buffer): boolean {
  return plain.length % packetLength === 0 && plain[0] === sync && plain.at(-packetLength) === sync;
}
