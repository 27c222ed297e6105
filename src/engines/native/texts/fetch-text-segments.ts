import { mapConcurrent } from "../../../async/map-concurrent.ts";
import type { InitSection, Segment } from "../../../manifests/segments.ts";
import { isServiceError, ServiceError } from "../../../model/errors.ts";
import type { Cue } from "../../../remux/additions.ts";
import { sniffContainer } from "../../../remux/sniff.ts";
import { createMp4TextReader } from "../../../subtitles/mp4-text.ts";
import { readSubtitles } from "../../../subtitles/read.ts";
import { invalidSubtitlesError, maxCues } from "../../../subtitles/text.ts";
import { maxFailures, Repeats, RetryPolicy } from "../parts/retry-policy.ts";
import type { TextSink } from "./text-store.ts";

/** Resolves with the bytes, decrypted. */
type FetchText = (place: Pick<Segment, "url" | "range" | "key">) => Promise<Uint8Array>;

/** Segments whose text is not there. */
export interface LostSegments {
  count: number;
  /** Of how many. */
  total: number;
  /** Why the first one of them is lost. */
  reason: string;
}

const segmentsAtATime = 4;
/** If more than these in a row cannot be had, all cannot. */
const maxLost = 5;
const backoffMs = 500;

/**
 * Fetches and reads the segments of subtitles, in order. What is empty, or no subtitles, is fetched three times more, at once taken for what it
 * is if 12 such repeats in a row gave nothing else. Returns the segments that cannot be had; `null`: none.
 *
 * @throws ServiceError if more than 5 in a row cannot be had; what `fetchOne` rejects with for other reasons than the server; `signal.reason`
 */
export async function fetchTextSegments(
  segments: readonly Segment[],
  { fetchOne, language, signal }: { fetchOne: FetchText; language: string | null; signal: AbortSignal },
  sink: TextSink,
): Promise<LostSegments | null> {
  const inits = new Map<string, Promise<Uint8Array>>();
  const initOf = (init: InitSection | null): Promise<Uint8Array> | null => {
    if (init === null) return null;
    const found = inits.getOrInsertComputed(idOf(init), () => fetchOne(init));
    found.catch(() => {});
    return found;
  };
  const fetchBoth = async (segment: Segment): Promise<Fetched> => {
    const [init, bytes] = await Promise.all([initOf(segment.init), orLost(fetchOne(segment), signal)]);
    return { segment, init, bytes };
  };
  const reader = createMp4TextReader();
  let header: Uint8Array | null = null;
  const read = (bytes: Uint8Array) =>
    sniffContainer(bytes) === "mp4"
      ? { cues: reader.read(bytes), map: null, isMp4: true }
      : readSubtitles(withHeader(bytes, header), language);
  const readAgain = createRepeater(fetchOne, { read, signal });
  let lastInit: Uint8Array | null = null;
  let [fromS, cueCount, lostInARow] = [0, 0, 0];
  const lost: Error[] = [];
  for await (const { segment, init, bytes } of mapConcurrent(segments, segmentsAtATime, fetchBoth)) {
    const { timeline, offsetS, durationS } = segment;
    const place = { timeline, offsetS, fromS, lastsS: durationS };
    fromS += durationS;
    if (init !== lastInit) header = init !== null && isVtt(init) ? init : null;
    if (init !== null && init !== lastInit && header === null) reader.read(init);
    lastInit = init;
    const found = bytes instanceof Error ? bytes : await readAgain(segment, bytes);
    lostInARow = found instanceof Error ? lostInARow + 1 : 0;
    if (found instanceof Error) {
      if (lostInARow > maxLost) throw found;
      lost.push(found);
    } else if (found !== null) {
      await sink.add({ ...found, cues: cuesWithin(found.cues, segment), place });
      if ((cueCount += found.cues.length) > maxCues) throw invalidSubtitlesError(`they have more than ${maxCues} cues`);
    }
  }
  return lost[0] === undefined ? null : { count: lost.length, total: segments.length, reason: lost[0].message };
}

/** Returns what of the cues their Period presents (ISO/IEC 23009-1 §5.3.2.1): its file may have those of other Periods, too. */
function cuesWithin(cues: readonly Cue[], { span, offsetS }: Segment): readonly Cue[] {
  if (span === undefined || offsetS === null) return cues;
  const [fromS, toS] = [span.startS - offsetS, span.endS - offsetS];
  const shown = cues.filter(({ startS, endS }) => startS < toS && endS > fromS);
  return shown.map((cue) => ({ ...cue, startS: Math.max(cue.startS, fromS), endS: Math.min(cue.endS, toS) }));
}

const isVtt = (bytes: Uint8Array): boolean => Buffer.from(bytes.subarray(0, 9)).toString().includes("WEBVTT");

/** Is in a body of WebVTT: the time of a cue, or a block of another kind at its start (W3C WebVTT §4.1); it may also be blank. */
const vttBody = /^\s*(?:$|(?:NOTE|STYLE|REGION)\s)|:\d{1,2}(?:[.,]\d{1,3})?[ \t]*-->/;

/** Returns WebVTT after the header in its init section, if it has none of its own (RFC 8216bis §3.1.4); a server's message as it is. */
function withHeader(bytes: Uint8Array, header: Uint8Array | null): Uint8Array {
  if (header === null || isVtt(bytes) || !vttBody.test(Buffer.from(bytes).toString())) return bytes;
  return Buffer.concat([header, Buffer.from("\n\n"), bytes]);
}

interface Fetched {
  segment: Segment;
  init: Uint8Array | null;
  /** An error: the server does not send it. */
  bytes: Uint8Array | Error;
}

/** Returns a function that reads a segment, fetched again if need be; `null`: it is empty, as one without cues may be. */
function createRepeater<T>(
  fetchOne: FetchText,
  { read, signal }: { read: (bytes: Uint8Array) => T; signal: AbortSignal },
): (segment: Segment, bytes: Uint8Array) => Promise<T | Error | null> {
  const repeats = new Repeats();
  const retryPolicy = new RetryPolicy(backoffMs, signal);
  return async (segment, first) => {
    let bytes: Uint8Array | Error = first;
    for (let repeated = 1; ; repeated += 1) {
      const found: T | Error | null =
        bytes instanceof Error ? bytes : bytes.length === 0 ? null : readOrError(read, bytes);
      if (found !== null && !(found instanceof Error)) {
        if (repeated > 1) repeats.refill();
        return found;
      }
      if (repeated > maxFailures || !repeats.take()) return found;
      await retryPolicy.wait(repeated);
      bytes = await orLost(fetchOne(segment), signal);
    }
  };
}

/** Offsets in a damaged box lead out of it. */
function readOrError<T>(read: (bytes: Uint8Array) => T, bytes: Uint8Array): T | Error {
  try {
    return read(bytes);
  } catch (error) {
    if (error instanceof ServiceError || error instanceof RangeError) return error;
    throw error;
  }
}

/** Resolves with the error if the server fails. */
async function orLost<T>(fetching: Promise<T>, signal: AbortSignal): Promise<T | Error> {
  try {
    return await fetching;
  } catch (error) {
    signal.throwIfAborted();
    if (isServiceError(error, "upstream_status", "upstream_unreachable", "upstream_timeout")) return error;
    throw error;
  }
}

const idOf = ({ url, range }: InitSection): string => `${url} ${range?.offset} ${range?.length}`;
