import { fstatSync, statSync } from "node:fs";
import { isUpstreamError, ServiceError, upstreamAs } from "../../../model/errors.ts";
import { ids } from "../../../remux/matroska/elements.ts";
import { type Box, readBox } from "../../../remux/mp4/boxes.ts";
import { checkSampleTables } from "../../../remux/mp4/read/check-tables.ts";
import { maxBoxes, readFully, readRange } from "../../../remux/mp4/read/file-boxes.ts";
import { createFragmentFinder } from "../../../remux/mp4/read/fragment.ts";
import { listSamples } from "../../../remux/mp4/read/listed-samples.ts";
import { numbersIn } from "../../../remux/mp4/read/number-source.ts";
import { openFile, readAt } from "../../../remux/open-file.ts";
import type { FileGrowth } from "../../../remux/samples.ts";
import type { FetchedPart, FetchOptions } from "../parts/stored-part.ts";

/** Observes a file that is being fetched. Its methods must not throw. */
export interface FileObserver {
  /** How many bytes the file will have; `null`: unknown. */
  onTotal(bytes: number | null): void;
  /** The file at `path` has grown. */
  onBytes(path: string): void;
  /** The file is complete. */
  end(path: string): void;
}

/** A file could not be read while it was fetched. */
export class GrowthError extends Error {
  override name = "GrowthError";
  /** Resolves once it is complete. */
  readonly complete: Promise<unknown>;

  constructor(complete: Promise<unknown>, cause?: unknown) {
    super("a file could not be read while it was fetched", { cause });
    this.complete = complete;
  }
}

/** A file that is being fetched, whether or not it is read meanwhile. */
export class GrowingFile {
  readonly path: string;
  /** The end of an MP4 that has its index there, if that was fetched first. */
  end: EndOfMp4 | undefined;
  /** Rejects as the fetch does. */
  readonly complete: Promise<FetchedPart>;
  /** How many bytes it will have; `null`: its server does not say; undefined: no response has come so far. */
  #totalBytes: number | null | undefined;
  #hasEnded = false;
  #changed = Promise.withResolvers<void>();

  constructor(
    path: string,
    fetch: (hooks: Pick<FetchOptions, "onTotal" | "onBytes">) => Promise<FetchedPart>,
    observer?: FileObserver,
  ) {
    this.path = path;
    const onTotal = (bytes: number | null) => {
      this.#totalBytes = bytes;
      observer?.onTotal(bytes);
      this.#notify();
    };
    const onBytes = () => {
      observer?.onBytes(path);
      this.#notify();
    };
    this.complete = this.#finish(fetch({ onTotal, onBytes }));
    // Whoever needs it waits for it.
    this.complete.catch(() => {});
  }

  async #finish(fetching: Promise<FetchedPart>): Promise<FetchedPart> {
    try {
      const fetched = await fetching;
      // An earlier run may have fetched it.
      this.#totalBytes = fetched.representation?.total ?? null;
      return fetched;
    } finally {
      this.#hasEnded = true;
      this.#notify();
    }
  }

  #notify(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  /**
   * Resolves with what can be read while it grows, once its index is there: of an MP4 that has that in front, or whose end is known, and whose
   * server states the length. `null`: it is none, or that is not known yet and the file is complete. Rejects with the file system's own errors.
   */
  async openMp4(): Promise<GrowingMp4 | null> {
    // Who reads the complete file says what is wrong with it.
    return this.#findIndex().catch(upstreamAs(null));
  }

  /**
   * Resolves with a WebM or Matroska file while it grows, if its server states the length. `null`: it is none, or the length is not known.
   * Rejects as the fetch does, and with the file system's own errors.
   */
  async openMatroska(): Promise<GrowingMatroska | null> {
    const totalBytes = await this.#findTotal();
    if (totalBytes === null || totalBytes < headerBytes) return null;
    return this.#openEbml(totalBytes).catch(upstreamAs(null));
  }

  async #openEbml(totalBytes: number): Promise<GrowingMatroska | null> {
    const { path, complete } = this;
    await this.#until(headerBytes);
    using file = openFile(path);
    const { ino } = fstatSync(file.fd);
    if (readFully(file.fd, Buffer.allocUnsafe(4), 0).readUInt32BE() !== ids.ebml) return null;
    return {
      path,
      isComplete: () => {
        const now = statSync(path, { throwIfNoEntry: false });
        return now?.ino === ino && now.size >= totalBytes;
      },
      grow: (bytes) =>
        this.#until(Math.min(bytes, totalBytes), ino).catch((error: unknown) => {
          throw isUpstreamError(error) ? new GrowthError(complete, error) : error;
        }),
    };
  }

  async #findIndex(): Promise<GrowingMp4 | null> {
    const totalBytes = await this.#findTotal();
    if (totalBytes === null) return null;
    await this.#until(headerBytes);
    const { path } = this;
    using file = openFile(path);
    const { ino } = fstatSync(file.fd);
    const growth = { totalBytes, until: (bytes: number) => this.#until(bytes, ino) };
    const { end } = this;
    if (end !== undefined) return { path, growth: { ...growth, index: end.index }, indexEnd: 0, isFragmented: false };
    let at = 0;
    for (let count = 0; count < maxFrontBoxes; count += 1) {
      const box = await fetchBox(file.fd, at, growth);
      at = box.end;
      if (box.type !== "moov" && !frontBoxes.has(box.type)) return null;
      if (box.type !== "moov") continue;
      await growth.until(at);
      const listed = listSamples({ fd: file.fd, size: at }).values().toArray();
      return { path, growth, indexEnd: at, isFragmented: listed.every(({ packets }) => packets === 0) };
    }
    return null;
  }

  async #findTotal(): Promise<number | null> {
    while (this.#totalBytes === undefined) {
      if (this.#hasEnded) await this.complete;
      await this.#changed.promise;
    }
    return this.#totalBytes;
  }

  /** Resolves once the file has this many bytes. Rejects if it never will, or if another file than that with this inode has taken its place. */
  async #until(bytes: number, inode?: number): Promise<void> {
    for (;;) {
      const changed = this.#changed.promise;
      const hasEnded = this.#hasEnded;
      const now = statSync(this.path, { throwIfNoEntry: false });
      if (inode !== undefined && now?.ino !== inode) throw unreadable("it was fetched again from its start");
      if ((now?.size ?? 0) >= bytes) return;
      if (hasEnded) {
        const { size } = await this.complete;
        throw unreadable(`it has ${size} bytes, and ${bytes} were expected`);
      }
      await changed;
    }
  }
}

/** A WebM or Matroska file that grows. */
export interface GrowingMatroska {
  path: string;
  /** Whether all of it is there. */
  isComplete(): boolean;
  /** Resolves once it has this many bytes, or all. @throws GrowthError if it never will; what gets its bytes throws. */
  grow(bytes: number): Promise<void>;
}

/** An MP4 whose index is there. */
interface GrowingMp4 {
  path: string;
  growth: FileGrowth;
  indexEnd: number;
  /** The index lists no samples: fragments have them. */
  isFragmented: boolean;
}

/** What follows the media of an MP4, with its index. */
export interface EndOfMp4 {
  /** Where it is in the MP4. */
  start: number;
  bytes: Uint8Array;
  index: Uint8Array;
}

/** @throws ServiceError `upstream_invalid` if the complete file at `path` has another end */
export function checkEnd(path: string, { start, bytes }: Pick<EndOfMp4, "start" | "bytes">): void {
  using file = openFile(path);
  if (!readAt(file, start, bytes.length).equals(bytes)) throw unreadable("its end was another one before");
}

/** What an MP4 may have before its index. */
const frontBoxes: ReadonlySet<string> = new Set(["ftyp", "free", "skip", "wide", "uuid", "pdin"]);
const maxFrontBoxes = 64;
const headerBytes = 16;

/** Yields the index of an MP4 and its fragments, one after the other, while it grows. @throws as `FileGrowth.until`; ServiceError `upstream_invalid` */
export async function* readGrowingFragments({ path, growth, indexEnd }: GrowingMp4): AsyncGenerator<Uint8Array> {
  using file = openFile(path);
  const index = readRange(file.fd, { start: 0, end: indexEnd });
  checkSampleTables(numbersIn(index, growth.totalBytes), indexEnd);
  yield index;
  const find = createFragmentFinder(file.fd);
  let hasFragments = false;
  for (let at = indexEnd, count = 0; at < growth.totalBytes; count += 1) {
    if (count === maxBoxes) throw unreadable(`it has over ${maxBoxes} boxes`);
    const box = await fetchBox(file.fd, at, growth);
    // What `find` reads.
    if (box.type === "moof") await growth.until(box.end);
    hasFragments ||= box.type === "moof";
    for (const range of find(box)) yield readRange(file.fd, range);
    at = box.end;
  }
  await growth.until(growth.totalBytes);
  if (!hasFragments) throw unreadable("it has no fragments");
  for (const range of find(null)) yield readRange(file.fd, range);
}

async function fetchBox(fd: number, start: number, { totalBytes, until }: FileGrowth): Promise<Box> {
  const left = Math.max(0, totalBytes - start);
  const header = Buffer.allocUnsafe(Math.min(headerBytes, left));
  await until(start + header.length);
  const { type, body, end } = readBox(readFully(fd, header, start), 0, left);
  return { type, start, body: start + body, end: start + end };
}

function unreadable(why: string): ServiceError {
  return new ServiceError("upstream_invalid", `the file cannot be read while it is fetched: ${why}`);
}
