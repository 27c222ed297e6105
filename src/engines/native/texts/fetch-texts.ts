import { mapConcurrent } from "../../../async/map-concurrent.ts";
import type { Segment } from "../../../manifests/segments.ts";
import { ServiceError } from "../../../model/errors.ts";
import type { FileWarning } from "../../../model/file-warnings.ts";
import type { Subtitle } from "../../../model/entry.ts";
import type { ByteRange } from "../../../net/byte-range.ts";
import type { HeadersFor, HttpClient, HttpResponse } from "../../../net/client.ts";
import { createSiteHeaders } from "../../../net/http/site-headers.ts";
import { sniffContainer } from "../../../remux/sniff.ts";
import { createMp4TextReader } from "../../../subtitles/mp4-text.ts";
import { readCues } from "../../../subtitles/read.ts";
import { invalidSubtitlesError, maxSubtitleBytes } from "../../../subtitles/text.ts";
import type { DownloadJob, WantedSubtitles } from "../../engine.ts";
import { maxFailures, RetryPolicy } from "../parts/retry-policy.ts";
import { createKeyReader, decrypt } from "../sources/encryption.ts";
import { ManifestReader } from "../sources/manifest-reader.ts";
import { fetchTextSegments } from "./fetch-text-segments.ts";
import type { StoredText, TextSink, TextStore } from "./text-store.ts";

/** Subtitles that were fetched; their cues have no times of the file yet. */
export interface FetchedText {
  wanted: Pick<WantedSubtitles, "language" | "name" | "role" | "automatic">;
  stored: StoredText;
  /** `null`: nothing. */
  lost: LostText | null;
}

/** What is not in subtitles, or is of others. */
interface LostText {
  /** What is said of them. */
  what: string;
  reason: string;
}

export interface FetchedTexts {
  texts: readonly FetchedText[];
  /** What cannot be had. */
  warnings: readonly FileWarning[];
}

const tracksAtATime = 4;
const maxSegments = 20_000;
const retryBackoffMs = 500;

const messageBytes = 64;
/** A web page or JSON; no subtitles begin like that. */
const messageStart = /^(?:\xef\xbb\xbf)?\s*(?:$|\{|<!doctype html|<html)/i;

/**
 * Fetches and reads subtitles, each at the first of its places where that is possible. If those that people wrote cannot be read, the
 * automatic ones of the language are, as the warning says.
 *
 * @throws `signal.reason`
 */
export async function fetchTexts(
  { subtitles, pageUrl }: Pick<DownloadJob, "subtitles" | "pageUrl">,
  { client, store, signal }: { client: HttpClient; store: TextStore; signal: AbortSignal },
): Promise<FetchedTexts> {
  const fetcher = new TextFetcher(client, { pageUrl, store }, signal);
  const texts: FetchedText[] = [];
  const failures: MissingText[] = [];
  const read = (tracks: Iterable<WantedSubtitles>) =>
    mapConcurrent(tracks, tracksAtATime, (wanted) => fetcher.fetch(wanted));
  for await (const found of read(subtitles)) {
    if ("reason" in found) failures.push(found);
    else texts.push(found);
  }
  const hasText = (language: string | null) =>
    texts.some(({ wanted }) => wanted.language === language && wanted.role !== "forced");
  const unread = failures.filter(({ wanted }) => wanted.otherwise !== undefined && !hasText(wanted.language));
  const instead = new Set(unread.flatMap(({ wanted }) => wanted.otherwise ?? [])).difference(new Set(subtitles));
  for await (const found of read(instead)) if (!("reason" in found)) texts.push(found);
  const taken = new Set<FetchedText["wanted"]>(texts.map(({ wanted }) => wanted));
  const warnings = failures.map(({ wanted, reason }) => {
    const isReplaced = wanted.otherwise?.some((track) => taken.has(track)) === true;
    return missingWarning(wanted, isReplaced ? `${reason}; automatic captions are there instead` : reason);
  });
  return {
    texts,
    warnings: [...warnings, ...texts.flatMap(({ wanted, lost }) => (lost ? [partlyWarning(wanted, lost)] : []))],
  };
}

function partlyWarning({ language, role }: FetchedText["wanted"], { what, reason }: LostText): FileWarning {
  const message = `the ${role} in ${language ?? "an unknown language"} ${what}: ${reason}`;
  return { code: "subtitles_missing", message };
}

/** Subtitles that cannot be had. */
interface MissingText {
  wanted: WantedSubtitles;
  reason: string;
}

/** Returns the warning for subtitles that cannot be had. */
export function missingWarning(
  { language, role }: Pick<WantedSubtitles, "language" | "role">,
  reason: string,
): FileWarning {
  return {
    code: "subtitles_missing",
    message: `the ${role} in ${language ?? "an unknown language"} are missing: ${reason}`,
  };
}

class TextFetcher {
  readonly #client: HttpClient;
  readonly #pageUrl: string;
  readonly #signal: AbortSignal;
  readonly #manifests: ManifestReader;
  readonly #store: TextStore;

  constructor(client: HttpClient, { pageUrl, store }: { pageUrl: string; store: TextStore }, signal: AbortSignal) {
    this.#client = client;
    this.#pageUrl = pageUrl;
    this.#store = store;
    this.#signal = signal;
    this.#manifests = new ManifestReader(client, signal);
  }

  async fetch(wanted: WantedSubtitles): Promise<FetchedText | MissingText> {
    let reason = "they are listed nowhere";
    let partly: FetchedText | undefined;
    for (const listing of wanted.listings) {
      try {
        const found: Pick<FetchedText, "lost"> = { lost: null };
        const stored = await this.#store.keep(async (sink) => {
          found.lost = await this.#fetchParts(listing, wanted.language, sink);
        });
        const { lost } = found;
        if (stored.hasCues && lost === null) return { wanted, stored, lost };
        if (stored.hasCues) partly ??= { wanted, stored, lost };
        reason = lost?.reason ?? "they have no text";
      } catch (error) {
        this.#signal.throwIfAborted();
        reason = reasonOf(error);
      }
    }
    return partly ?? { wanted, reason };
  }

  async #fetchParts(listing: Subtitle, language: string | null, sink: TextSink): Promise<LostText | null> {
    const headers = createSiteHeaders({ url: listing.url }, this.#pageUrl);
    const isHls = listing.ext === "m3u8";
    if (!isHls && listing.manifest_url === undefined) {
      const bytes = await this.#getFile(new URL(listing.url), headers, sink);
      const isMp4 = sniffContainer(bytes) === "mp4";
      // A whole file of text in MP4: its init section and all its fragments.
      const cues = isMp4 ? createMp4TextReader().read(bytes) : readCues(bytes, language);
      await sink.add({ cues, map: null, place: null });
      return null;
    }
    const { segments, hasEnded, replaced } = await this.#listSegments(listing, headers);
    if (!hasEnded) throw invalidSubtitlesError("those of a live stream are not recorded");
    if (segments.length > maxSegments) {
      throw invalidSubtitlesError(`they have ${segments.length} segments, the limit is ${maxSegments}`);
    }
    const lost = await this.#fetchSegments(segments, headers, language, sink);
    if (lost !== null) return { what: `lack ${lost.count} of ${lost.total} segments`, reason: lost.reason };
    return replaced?.[0] === undefined ? null : { what: "are others in places", reason: replaced[0].what };
  }

  /** Requests a file again of which a server sends nothing, or a message; the last response is taken. */
  async #getFile(url: URL, headers: HeadersFor, sink: TextSink): Promise<Buffer> {
    const retryPolicy = new RetryPolicy(retryBackoffMs, this.#signal);
    for (let repeated = 1; ; repeated += 1) {
      const bytes = await this.#get(url, null, headers, sink);
      if (repeated > maxFailures || !messageStart.test(bytes.toString("latin1", 0, messageBytes))) return bytes;
      await retryPolicy.wait(repeated);
      sink.count(-bytes.length);
    }
  }

  async #listSegments(listing: Subtitle, headers: HeadersFor) {
    const protocol = listing.ext === "m3u8" ? "m3u8" : "dash";
    const url = listing.manifest_url ?? listing.url;
    const { segments } = await this.#manifests.openText({ protocol, url, format_id: listing.format_id ?? "" }, headers);
    return segments();
  }

  async #fetchSegments(segments: readonly Segment[], headers: HeadersFor, language: string | null, sink: TextSink) {
    const readKey = createKeyReader(this.#client, { headers, signal: this.#signal });
    const fetchOne = async ({ url, range, key }: Pick<Segment, "url" | "range" | "key">) => {
      const [bytes, aesKey] = await Promise.all([this.#get(new URL(url), range, headers, sink), readKey(key)]);
      return aesKey === null ? bytes : decrypt(bytes, aesKey);
    };
    return fetchTextSegments(segments, { fetchOne, language, signal: this.#signal }, sink);
  }

  /** Requests as often as a part of the media is requested. */
  async #get(url: URL, range: ByteRange | null, headers: HeadersFor, sink: TextSink): Promise<Buffer> {
    const retryPolicy = new RetryPolicy(retryBackoffMs, this.#signal);
    for (;;) {
      let received = 0;
      const onBytes = (bytes: number) => {
        received += bytes;
        sink.count(bytes);
      };
      try {
        const request = { signal: this.#signal, headers, maxBytes: maxSubtitleBytes, ...(range !== null && { range }) };
        const response = await this.#client.get(url, request);
        const body = await readBody(response, onBytes);
        // A server may ignore the range.
        if (range === null || response.status !== 200) return body;
        return body.subarray(range.offset, range.offset + (range.length ?? Infinity));
      } catch (error) {
        this.#signal.throwIfAborted();
        await retryPolicy.backOff(error, 0);
        sink.count(-received);
      }
    }
  }
}

/** Reads into one buffer, which grows: chunks, and then a copy of all, would need twice the memory. */
async function readBody(response: HttpResponse, onBytes: (bytes: number) => void): Promise<Buffer> {
  const expected = Number(response.headers.get("content-length")) || 0;
  let bytes = Buffer.allocUnsafeSlow(Math.min(Math.max(expected, 1024), maxSubtitleBytes));
  let length = 0;
  for await (const chunk of response.body) {
    onBytes(chunk.length);
    if (length + chunk.length > bytes.length) {
      const longer = Buffer.allocUnsafeSlow(Math.max(2 * bytes.length, length + chunk.length));
      bytes.copy(longer, 0, 0, length);
      bytes = longer;
    }
    bytes.set(chunk, length);
    length += chunk.length;
    response.release(chunk);
  }
  return bytes.subarray(0, length);
}

/** Offsets in a damaged box lead out of it. */
function reasonOf(error: unknown): string {
  if (error instanceof ServiceError) return error.message;
  if (error instanceof RangeError) return `they are damaged: ${error.message}`;
  throw error;
}
