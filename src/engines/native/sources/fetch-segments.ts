import { mapConcurrent } from "../../../async/map-concurrent.ts";
import { isServiceError, ServiceError } from "../../../model/errors.ts";
import type { ComputedEnd, InitSection, SegmentKey, SegmentList } from "../../../manifests/segments.ts";
import type { HttpClient } from "../../../net/client.ts";
import { urlForMessage } from "../../../net/http-url.ts";
import type { SegmentTiming } from "../../../remux/samples.ts";
import { type AesKey, createKeyReader } from "./encryption.ts";
import type { FetchStats } from "./fetch-stats.ts";
import { createEndLimit, createLosses, fetchInTime, followLive, isGone, type LiveOptions } from "./live.ts";
import type { RecordedSegment } from "./live-dates.ts";
import { sniffFile } from "../../../remux/sniff.ts";
import { isCutOff } from "../parts/extent.ts";
import { hasOtherMedia, InitCheck } from "./content-check.ts";
import { isText, isWholeSegment } from "../parts/media-check.ts";
import type { FetchedPart, Part } from "../parts/stored-part.ts";
import { Mirrors } from "./locate-format.ts";
import type { SegmentSource } from "./plan.ts";

/** An init section or segment in a file. */
export interface FetchedSegment extends Pick<FetchedPart, "path" | "size"> {
  /** `null`: not encrypted. */
  key: AesKey | null;
  timing: SegmentTiming;
  isInit: boolean;
  /** An earlier run has listed it. */
  isOld: boolean;
}

/** A segment that does not exist, which is right if the media before it reach the end of their Period. */
export interface AbsentSegment {
  computed: ComputedEnd;
  /** Seconds that it would have. */
  durationS: number;
  error: ServiceError;
}

export interface FetchSegmentsOptions extends LiveOptions {
  fetchPart: (part: Part) => Promise<FetchedPart>;
  client: HttpClient;
  /** Segments fetched ahead of the one that is read. */
  ahead: number;
  /** Counts the segments, and those without media. */
  stats: FetchStats;
  /** Called when an init section (0 s) or a segment has been fetched. */
  onSegment: (durationS: number, bytes: number) => void;
}

/** Fetches init sections and segments concurrently; yields them in presentation order. */
export async function* fetchSegments(
  source: SegmentSource,
  options: FetchSegmentsOptions,
): AsyncGenerator<FetchedSegment | AbsentSegment> {
  const { name, headers, list, liveJournalPath, selection } = source;
  const { fetchPart, ahead, stats, signal, finish, onSegment } = options;
  const isLive = liveJournalPath !== null;
  const beforeEnd = createEndLimit(finish, signal);
  const fetchNow = (part: Part) => beforeEnd(fetchPart(part));
  const hasChanged = (segment: RecordedSegment) => hasOtherMedia(partOf(name, segment), fetchNow);
  const segments = isLive ? followLive({ ...source, liveJournalPath }, { ...options, hasChanged }) : list.segments;
  // Of a live stream, the numbers of the segments show which are missing.
  for (const durationS of isLive ? [] : (list.gapsS ?? [])) {
    stats.addSegment(durationS);
    stats.missing += 1;
  }
  stats.beyondEnd = list.beyondEnd ?? 0;
  stats.replaced = list.replaced ?? [];
  const readKey = createKeyReader(options.client, { headers, signal });
  const mirrors = new Mirrors(list, source.mirrors);
  const fetchFrom = async (place: SegmentList, request: SegmentRequest, index = 0) => {
    const { part, key } = index === 0 ? request : requestAt(place, request, index);
    return Promise.all([fetchPart(part), readKey(key)]);
  };
  const losses = createLosses(finish);
  const initCheck = new InitCheck(fetchNow);
  const fetchOne = async (request: SegmentRequest): Promise<FetchedSegment | AbsentSegment | null> => {
    const { durationS, timing, isInit, computed, isOptional, isOld } = request;
    if (!isInit && !isOptional) stats.addSegment(durationS);
    const fetch = () => {
      if (isOptional) return fetchFrom(list, request);
      return isLive
        ? fetchInTime(() => fetchFrom(list, request), request.lateS, options)
        : mirrors.fetch((place, index) => fetchFrom(place, request, index));
    };
    try {
      const fetching = fetch();
      const [{ path, size }, key] = await (isLive ? beforeEnd(fetching) : fetching);
      onSegment(durationS, size);
      if (!isInit && isCutOff(request.part, size)) stats.cutOff += 1;
      if (isOptional && sniffFile(path) === null) return null;
      if (isInit && isLive && key === null) initCheck.add(request.part, path);
      if (isText(path)) return withoutMedia(request, stats, losses);
      return { path, size, key, timing, isInit, isOld };
    } catch (error) {
      if (isOptional && isServiceError(error, "upstream_status")) return null;
      if (computed !== undefined && isRefused(error)) return absent(computed, durationS, { error, stats });
      if (!isLive || !losses.add(error, request)) throw error;
      stats.missing += 1;
      return null;
    }
  };
  const requests = requestsFor({ name, isLive, selection }, segments);
  for await (const segment of mapConcurrent(requests, ahead, fetchOne)) {
    if (segment !== null) yield segment;
  }
  stats.isInitChanged = await initCheck.hasChanged();
}

/** Some servers refuse what does not exist, to hide which files there are. */
const isRefused = (error: unknown): error is ServiceError =>
  isGone(error) || (error instanceof ServiceError && error.upstreamStatus === 403);

function absent(
  computed: ComputedEnd,
  durationS: number,
  { error, stats }: { error: ServiceError; stats: FetchStats },
) {
  stats.absent += 1;
  return { computed, durationS, error };
}

/**
 * Counts a segment of which the server has only a message. What is empty or damaged may be all that is left of one that is there.
 * @throws ServiceError `upstream_invalid` for an init section or the first segment, and for the first six of a live stream: the list may be
 *   of no media at all.
 */
function withoutMedia(
  request: SegmentRequest,
  stats: FetchStats,
  losses: ReturnType<typeof createLosses>,
): AbsentSegment | null {
  const { computed, durationS, isInit, index, part } = request;
  const rule = "the response is text, not media";
  const error = new ServiceError("upstream_invalid", `GET ${urlForMessage(part.url)}: ${rule}`);
  if (computed !== undefined) return absent(computed, durationS, { error, stats });
  if (stats.isLive ? !losses.addMessage(request) : isInit || index === 0) throw error;
  stats.missing += 1;
  return null;
}

/** An init section or segment to fetch. */
interface SegmentRequest {
  isInit: boolean;
  /** Index of the segment that it is, or that needs it. */
  index: number;
  part: Part;
  key: SegmentKey | null;
  timing: SegmentTiming;
  durationS: number;
  computed?: ComputedEnd | undefined;
  isOptional: boolean;
  /** How long it may be missing, seconds. */
  lateS: number;
  /** An earlier run has listed it. */
  isOld: boolean;
}

/** Segments of two places may differ by this, seconds. */
const maxMirrorDriftS = 0.1;

/**
 * Returns where another place has what is requested; `number` is that of the place.
 *
 * @throws ServiceError `upstream_invalid` if it lists something else there.
 */
function requestAt({ segments }: SegmentList, { index, isInit, part, durationS }: SegmentRequest, number: number) {
  const segment = segments[index];
  const found = isInit ? segment?.init : segment;
  const drift = isInit ? 0 : Math.abs((segment?.durationS ?? Infinity) - durationS);
  if (!found || drift > maxMirrorDriftS) {
    throw new ServiceError("upstream_invalid", `a redundant list of segments has another one at index ${index}`);
  }
  // Others are still cut from the resource of the first place.
  const wholeName = part.wholeName && `${part.wholeName}-${number}`;
  return { part: { ...part, url: new URL(found.url), range: found.range, wholeName }, key: found.key };
}

/** Those of real streams have some KiB; ffmpeg reads 1 MiB at most. */
const maxInitBytes = 4 << 20;

/** Yields an init section before the first selected segment that needs it, and again after another one. */
async function* requestsFor(
  { name, isLive, selection }: Pick<SegmentSource, "name" | "selection"> & { isLive: boolean },
  segments: Iterable<RecordedSegment> | AsyncIterable<RecordedSegment>,
): AsyncGenerator<SegmentRequest> {
  const inits = new Map<string, number>();
  const resources = new Map<string, number>();
  /** Of a live stream, a resource may grow. */
  const wholeName = ({ url, range }: InitSection) =>
    range === null || isLive ? undefined : `${name}-whole-${resources.getOrInsertComputed(url, () => resources.size)}`;
  let index = -1;
  let currentInit: number | null = null;
  let skippedS = 0;
  for await (const segment of segments) {
    index += 1;
    // Also of those that are not fetched: a later run, which fetches others, must have the same names.
    const [initWhole, whole] = [segment.init && wholeName(segment.init), wholeName(segment)];
    const { timeline, offsetS, span, endSlackS, durationS, sequence, lateS = 0, isOld = false } = segment;
    if (selection?.has(index) === false) {
      skippedS += durationS;
      continue;
    }
    const times = {
      ...(span && { span, ...(endSlackS && { endSlackS }) }),
      ...(durationS > 0 && { durationS }),
      ...(skippedS > 0 && { skippedS }),
    };
    const timing = { timeline, offsetS, sequence, ...times };
    skippedS = 0;
    const init = segment.init && numberOf(segment.init, isLive ? timeline : null, inits);
    if (segment.init !== null && init !== null && init !== currentInit) {
      const { url, range, key } = segment.init;
      const place = { url: new URL(url), range, wholeName: initWhole ?? undefined };
      const part = { name: `${name}-init-${init}`, ...place, maxBytes: maxInitBytes, ...endOf(key) };
      yield { index, part, key, timing, durationS: 0, isInit: true, isOptional: false, lateS, isOld };
    }
    currentInit = init;
    const { key, computed, isOptional = false } = segment;
    const part = { ...partOf(name, segment), wholeName: whole };
    yield { index, part, key, timing, durationS, computed, isInit: false, isOptional, lateS, isOld };
  }
}

function partOf(name: string, { sequence, url, range, key }: RecordedSegment): Part {
  return { name: `${name}-${`${sequence}`.padStart(6, "0")}`, url: new URL(url), range, ...endOf(key) };
}

/** How the end of a segment is checked. What is encrypted as a whole can only be decrypted as a whole. */
function endOf(key: SegmentKey | null): Pick<Part, "isWhole" | "mustBeWhole"> {
  const isEncrypted = key !== null && key.isOfSamples !== true;
  return { isWhole: (path) => isWholeSegment(path, key), ...(isEncrypted && { mustBeWhole: true }) };
}

/**
 * Returns the number of an init section among those seen so far: tokens in its URL may change between runs. The server of a
 * live stream that has restarted, which a new timeline shows, may have another one under the URL.
 */
function numberOf({ url, range }: InitSection, timeline: number | null, seen: Map<string, number>): number {
  const id = `${url} ${range?.offset} ${range?.length} ${timeline}`;
  const number = seen.get(id) ?? seen.size;
  seen.set(id, number);
  return number;
}
