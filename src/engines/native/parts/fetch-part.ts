import { isServiceError, ServiceError } from "../../../model/errors.ts";
import type { ByteRange } from "../../../net/byte-range.ts";
import type { GetOptions, HttpClient } from "../../../net/client.ts";
import { isCutOff, isTooShort, partError, sizeOf, tooShortError } from "./extent.ts";
import { isText } from "./media-check.ts";
import { type PartTransfer, receive } from "./receiver.ts";
import { ifRangeOf, isResumable, withoutQuery } from "./representation.ts";
import { maxFailures, type RetryPolicy } from "./retry-policy.ts";
import type { FetchedPart, FetchOptions, Part, StoredPart } from "./stored-part.ts";

/** Implements `PartStore.fetch` for one part at a time. */
export class PartFetch {
  readonly #transfer: PartTransfer;
  readonly #client: HttpClient;
  readonly #retryPolicy: RetryPolicy;
  readonly #begun: number;
  /** How often it was fetched again because what came was no media. */
  #repeated = 0;
  /** The generation of which the server has refused the rest. */
  #refused: number | undefined;

  constructor(transfer: PartTransfer, client: HttpClient, retryPolicy: RetryPolicy) {
    this.#transfer = transfer;
    this.#client = client;
    this.#retryPolicy = retryPolicy;
    this.#begun = transfer.stored.generation;
  }

  async run(): Promise<FetchedPart> {
    const { stored, part, options, checkpoints, quota, repeats } = this.#transfer;
    await quota.reserve(0);
    if (!isSameRange(stored.range, part.range)) stored.invalidate();
    if (stored.size > 0 && stored.from !== withoutQuery(part.url)) quota.add(-(await stored.reopen()));
    // An earlier run took it for want of better; of some streams, all parts seem so.
    const wasTaken = stored.isComplete && stored.generation === 0 && !isMedium(stored, part) && repeats.take();
    if (wasTaken) stored.invalidate();
    while (!stored.isComplete) {
      options.signal.throwIfAborted();
      checkpoints.throwFailure();
      if (hasAllBytes(stored)) {
        await stored.end();
        break;
      }
      const sizeBefore = stored.size;
      if (!(await this.#request())) continue;
      const isNoMedium = stored.isComplete && !isMedium(stored, part);
      if (isNoMedium && this.#mayRepeat()) {
        stored.invalidate();
        await this.#waitToRepeat();
        continue;
      }
      if (!isNoMedium && (wasTaken || this.#repeated > 0)) repeats.refill();
      const isChunk = part.chunkBytes !== undefined && stored.size > sizeBefore;
      if (!stored.isComplete && !isChunk) {
        this.#retryPolicy.recordFailure(partError(part, "every response is too short"), stored.size);
      }
    }
    const { path, size, representation } = stored;
    assertEnd({ path, size, representation }, part);
    return { path, size, representation };
  }

  /** Requests the part, or the rest of it; returns whether bytes of it came. Waits if it can be tried again. */
  async #request(): Promise<boolean> {
    const { stored, part, options, quota } = this.#transfer;
    const isNextChunk = part.chunkBytes !== undefined && stored.generation > this.#begun;
    const isResume = stored.generation !== this.#refused && !part.isToCut && canResume(stored, isNextChunk);
    // A redirect may lead elsewhere each time.
    const isElsewhere = stored.representation?.url !== stored.from && stored.tail.length === 0;
    if (isResume && isElsewhere) quota.add(-(await stored.reopen()));
    try {
      const response = await this.#client.get(part.url, requestFor(stored, part, options, isResume));
      if (isTooShort(response, part) && this.#mayRepeat()) {
        await response.body[Symbol.asyncIterator]().return?.();
        await this.#waitToRepeat();
        return false;
      }
      await receive(response, isResume, this.#transfer);
      return true;
    } catch (error) {
      options.signal.throwIfAborted();
      await this.#recover(error, isResume);
      return false;
    }
  }

  /** Handles a failure after which the part can be requested again, or is complete. @throws `error` after any other one. */
  async #recover(error: unknown, isResume: boolean): Promise<void> {
    const { stored, part } = this.#transfer;
    if (part.isAhead === true && isServiceError(error, "upstream_status")) throw error;
    if (isResume && isEnd(error, stored)) return stored.end();
    if (isResume && isResumeRefusal(error, part)) {
      this.#retryPolicy.recordFailure(error, stored.size);
      this.#refused = stored.generation;
    } else if (isOtherRange(error)) await this.#retryPolicy.repeat(error);
    else if (isPassing(error) && this.#repeated === 0 && this.#mayRepeat()) await this.#waitToRepeat();
    else await this.#retryPolicy.backOff(error, stored.size);
  }

  #mayRepeat(): boolean {
    return this.#repeated < maxFailures && this.#transfer.repeats.take();
  }

  async #waitToRepeat(): Promise<void> {
    await this.#retryPolicy.wait((this.#repeated += 1));
  }
}

/**
 * Checks the end of a part whose range ends after its resource, as some playlists say of the last segment, which players play nevertheless:
 * it must end where media end.
 *
 * @throws ServiceError `upstream_invalid`
 */
export function assertEnd({ path, size, representation }: FetchedPart, part: Part): void {
  if (isCutOff(part, size) && part.isWhole?.(path) !== true) throw tooShortError(part, representation?.total ?? size);
}

/**
 * Whether it may be what was asked for. Some servers send nothing for a moment, or text, each with status 200; and of a response without a
 * length, only the media themselves show that it was cut off.
 */
function isMedium({ path, size, representation }: StoredPart, { isWhole, mustBeWhole }: Part): boolean {
  if (size === 0 || isText(path)) return false;
  return (representation?.total !== null && mustBeWhole !== true) || isWhole === undefined || isWhole(path);
}

function isSameRange(a: ByteRange | null, b: ByteRange | null): boolean {
  return a?.offset === b?.offset && a?.length === b?.length;
}

/** The process or the connection may have ended right after the last byte. */
function hasAllBytes({ representation, range, size }: StoredPart): boolean {
  return representation !== null && sizeOf(range, representation.total) === size;
}

/** Between the chunks of one run no validator is needed: many sites that demand chunks send none. */
function canResume({ size, representation }: StoredPart, isNextChunk: boolean): boolean {
  return size > 0 && representation !== null && (isNextChunk || isResumable(representation));
}

function requestFor(
  { representation, size }: StoredPart,
  { range, chunkBytes = Number.POSITIVE_INFINITY, isAhead = false }: Part,
  { signal, headers }: FetchOptions,
  isResume: boolean,
): GetOptions {
  const options = {
    signal,
    maxBytes: Number.POSITIVE_INFINITY,
    identity: true,
    isExtra: isAhead,
    ...(headers && { headers }),
  };
  const { offset, length = Number.POSITIVE_INFINITY } = range ?? { offset: 0 };
  const start = isResume ? size : 0;
  const wanted = Math.min(length - start, chunkBytes);
  if (!isResume && range === null && wanted === Number.POSITIVE_INFINITY) return options;
  const rest = { offset: offset + start, ...(wanted !== Number.POSITIVE_INFINITY && { length: wanted }) };
  const ifRange = isResume && representation !== null ? ifRangeOf(representation) : null;
  return { ...options, range: rest, ...(ifRange !== null && { ifRange }) };
}

/** Whether the response to a request for the rest says that there is none: the connection ended after the last byte, of a response without a length. */
function isEnd(error: unknown, { representation, range, size }: StoredPart): boolean {
  const isOpen = representation?.total === null && range?.length === undefined;
  return isOpen && error instanceof ServiceError && error.resourceBytes === (range?.offset ?? 0) + size;
}

/** A cache may send what another client has asked for; a server that always does so is refused. */
const isOtherRange = (error: unknown): error is ServiceError =>
  isServiceError(error, "upstream_invalid") && error.upstreamStatus === 206;

/** Statuses that some caches send once, and not for the same request right after it, as they should. */
const passingStatuses: ReadonlySet<number | undefined> = new Set([400, 416]);

const isPassing = (error: unknown): boolean =>
  isServiceError(error, "upstream_status") && passingStatuses.has(error.upstreamStatus);

/** Statuses of servers that refuse ranges; what they have as a whole they may send. With 403 the URL has expired, as a rule. */
const refusalStatuses: ReadonlySet<number | undefined> = new Set([400, 406, 412, 501]);

/**
 * Whether the server refuses to send the missing bytes: it sends no ranges, has none, or only those of another content. If a restart needs
 * ranges too, another status refuses more than that: the bytes so far are kept for a later run, which may have another URL.
 */
function isResumeRefusal(error: unknown, { range, chunkBytes }: Part): boolean {
  if (!(error instanceof ServiceError)) return false;
  const { code, upstreamStatus } = error;
  const isWhole = range === null && chunkBytes === undefined;
  return code === "upstream_invalid" || upstreamStatus === 416 || (isWhole && refusalStatuses.has(upstreamStatus));
}
