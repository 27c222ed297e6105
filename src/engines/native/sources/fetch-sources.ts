import { rm } from "node:fs/promises";
import { isUpstreamError } from "../../../model/errors.ts";
import { sniffContainer } from "../../../remux/sniff.ts";
import { fetchSegments, type FetchSegmentsOptions } from "./fetch-segments.ts";
import type { PartStore } from "../parts/part-store.ts";
import { Mirrors } from "./locate-format.ts";
import type { FetchedPart, FetchOptions, Part } from "../parts/stored-part.ts";
import {
  headBytes,
  openPartialFile,
  type PartialFile,
  type PartialMedia,
  type PartialMediaOptions,
} from "../partial/partial-file.ts";
import { FetchStats } from "./fetch-stats.ts";
import { type FileObserver, GrowingFile } from "../partial/growing-file.ts";
import { Restarts } from "./live-dates.ts";
import { type FileSource, fileUrlOf, isLiveSource, type Source, type SourceName } from "./plan.ts";
import type { ByteSpan } from "../../../remux/samples.ts";
import type { ProgressTracker } from "./progress-tracker.ts";
import {
  openFileStream,
  openGrowingStream,
  openPartStream,
  openSegmentStream,
  type SourceStream,
} from "./source-stream.ts";
import { fetchMatroskaPart } from "../partial/fetch-matroska-part.ts";
import { fetchMp4Part } from "../partial/fetch-mp4-part.ts";

type SegmentDeps = Omit<FetchSegmentsOptions, "fetchPart" | "onSegment" | "stats" | "restarts">;

interface SourceFetcherDeps extends SegmentDeps {
  parts: PartStore;
  progress: ProgressTracker;
  /** Reads what a source says itself that is one file, or what was fetched of it: the first of these files, and those that continue it. */
  readOwn(source: SourceName, paths: readonly [string, ...string[]]): Promise<void>;
  /** Tracks of text may be wanted, and are fetched with a part of a file. */
  needsTexts: boolean;
}

/** Fetches sources into the part store. Throws ServiceErrors of the store and the client. */
export class SourceFetcher {
  /** Of each source whose segments are fetched. */
  readonly stats = new Map<SourceName, FetchStats>();
  readonly #deps: SourceFetcherDeps;
  readonly #restarts = new Restarts();
  /** Aborted once no more of a live stream is needed. */
  readonly #enough = new AbortController();
  /** Files whose fetch has been started, by name; the fetch of one that fails ends those of the others. */
  #files = createFiles();

  constructor(deps: SourceFetcherDeps) {
    this.#deps = deps;
  }

  /**
   * Starts to fetch a progressive file, which `observer` observes; returns the file if that has been started. If one cannot be fetched,
   * the fetches of the others end with its error; all may then be started again.
   */
  fetchFile(source: FileSource, observer?: FileObserver): GrowingFile {
    const { name, mirrors, format } = source;
    const { parts, readOwn } = this.#deps;
    const files = this.#files;
    const known = files.byName.get(name);
    if (known !== undefined) return known;
    const signal = AbortSignal.any([this.#deps.signal, files.failing.signal]);
    const part = { name, range: null, chunkBytes: format.http_chunk_size };
    const file = new GrowingFile(
      parts.pathOf(name),
      async (hooks) => {
        const fetched = await new Mirrors(source.url, mirrors).fetch((url) =>
          this.#fetchPart(source, { ...part, url }, { ...hooks, signal }),
        );
        observer?.end(fetched.path);
        await readOwn(name, [fetched.path]);
        return fetched;
      },
      observer,
    );
    files.byName.set(name, file);
    file.complete.catch((error: unknown) => {
      if (this.#files === files) this.#files = createFiles();
      files.failing.abort(error);
    });
    return file;
  }

  /**
   * Fetches the end of a file that is being fetched into another one, whose path it returns; `null` if it seems to be of another
   * representation.
   */
  async fetchEnd(source: FileSource, { start, end }: ByteSpan): Promise<string | null> {
    const { name, url, format } = source;
    const range = { offset: start, length: end - start };
    const common = { url, chunkBytes: format.http_chunk_size, isPartialOnly: true };
    const part = { ...common, name: `${name}-end`, range, isAhead: true } as const;
    const { path, representation } = await this.#fetchPart(source, part);
    return this.#deps.parts.seemsPartOf(name, representation) ? path : null;
  }

  /** Fetches what ranges need of a source that is one file into another at `path`, as `fetchPartialMedia`; `null`: it is not. */
  async fetchPart(
    source: Source,
    path: string,
    options: Omit<PartialMediaOptions, "fetch" | "onTotal" | "needsTexts">,
  ): Promise<PartialMedia | null> {
    const { name, format } = source;
    const url = fileUrlOf(source);
    // An earlier run has found that all of it is needed.
    if (url === null || this.#deps.parts.hasBegun(source.kind === "file" ? name : `${name}-000000`)) return null;
    const common = { url, chunkBytes: format.http_chunk_size, isPartialOnly: true };
    const part = await fetchPartialMedia(path, {
      ...options,
      needsTexts: this.#deps.needsTexts,
      fetch: (range) =>
        this.#fetchPart(source, { ...common, name: `${name}-at-${range.offset}-${range.length}`, range }),
      onTotal: (bytes) => this.#deps.progress.setTotal(name, bytes),
    });
    if (part === null) return null;
    const further = (part.chunks ?? []).slice(1).map((chunk) => chunk.path);
    await this.#deps.readOwn(name, [part.path, ...further]);
    return part;
  }

  /** Forgets what `fetchPart` has fetched of a source, since all of it will be. */
  async dropPart({ name }: Source): Promise<void> {
    await this.#deps.parts.remove(`${name}-at-`);
  }

  /**
   * Starts to fetch; resolves once the container is known.
   *
   * @param mayGrow A file that can be read while it is fetched need not be complete.
   */
  async openStream(source: Source, mayGrow: boolean): Promise<SourceStream> {
    const { name, format: label } = source;
    if (source.part !== null) return openPartStream(source, source.part);
    if (source.kind === "file") {
      const file = this.fetchFile(source);
      if (mayGrow) return openGrowingStream(name, file, label);
      return openFileStream(name, (await file.complete).path, label);
    }
    const stats = new FetchStats();
    stats.isLive = isLiveSource(source);
    this.stats.set(name, stats);
    const segments = fetchSegments(source, {
      ...this.#deps,
      stats,
      restarts: this.#restarts,
      finish: AbortSignal.any([this.#deps.finish, this.#enough.signal]),
      fetchPart: (part) => this.#fetchPart(source, part),
      onSegment: (durationS, bytes) => this.#deps.progress.addSegment(name, durationS, bytes),
    });
    return openSegmentStream({ name, label }, segments, stats);
  }

  /** Ends the recording of a live stream, of which no more is needed. */
  endRecording(): void {
    this.#enough.abort();
  }

  async #fetchPart(
    { name, headers }: Source,
    part: Part,
    { signal = this.#deps.signal, ...hooks }: Partial<Pick<FetchOptions, "onTotal" | "onBytes" | "signal">> = {},
  ): Promise<FetchedPart> {
    const { parts, progress } = this.#deps;
    const fetched = await parts.fetch(part, {
      signal,
      headers,
      onTotal: (bytes) => {
        // Of parts, `fetchPartialMedia` reports the total.
        if (part.isPartialOnly !== true) progress.setTotal(name, bytes);
        hooks.onTotal?.(bytes);
      },
      onBytes: () => {
        progress.update();
        hooks.onBytes?.();
      },
    });
    progress.update();
    return fetched;
  }
}

function createFiles() {
  return { byName: new Map<SourceName, GrowingFile>(), failing: new AbortController() };
}

/**
 * Fetches what ranges need of the media in one file, into a file at `path`. Returns `null` if that cannot be seen from its
 * index, or the server sends no parts (RFC 9110 §14), or nothing shows that they belong to one representation (§13.1.5), or
 * they are most of it.
 *
 * @throws ServiceError of `fetch`, but those of the server; the file system's own errors.
 */
async function fetchPartialMedia(path: string, options: PartialMediaOptions): Promise<PartialMedia | null> {
  const sparse = `${path}.sparse`;
  try {
    await using file = await openPartialFile(sparse, options.fetch);
    await file.fetch({ start: 0, end: headBytes });
    return await fetchOf(file, path, options);
  } catch (error) {
    // All of it may be had: at another place, too.
    if (isUpstreamError(error)) return null;
    throw error;
  } finally {
    await rm(sparse, { force: true });
  }
}

async function fetchOf(file: PartialFile, path: string, options: PartialMediaOptions): Promise<PartialMedia | null> {
  const container = sniffContainer(await file.read({ start: 0, end: headBytes }));
  if (container === "webm") return fetchMatroskaPart(file, path, options);
  return container === "mp4" ? fetchMp4Part(file, path, options) : null;
}
