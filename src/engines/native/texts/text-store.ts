import { closeSync, openSync, readSync, writeSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { createKeyedMutex } from "../../../async/keyed-mutex.ts";
import type { Cue } from "../../../remux/additions.ts";
import { openFile } from "../../../remux/open-file.ts";
import { invalidSubtitlesError, maxSubtitleBytes } from "../../../subtitles/text.ts";
import { isMemorySmall } from "../../../system/memory.ts";
import type { TextPart } from "./place-cues.ts";

/** Of a track: three downloads read one each, in up to eight times its size, beside the rest of the service. */
const maxBytes = isMemorySmall ? 8 << 20 : maxSubtitleBytes;
/** Of all subtitles of a download together. */
const maxTotalBytes = 2 * maxBytes;
/** Those of most films are not longer. */
const smallBytes = 1 << 20;
/** Cues that are written to the disk at a time. */
const cuesAtATime = 100;

/** Gets a track while it is fetched and read. */
export interface TextSink {
  /** Counts what was fetched; below 0: what is fetched again. @throws ServiceError `upstream_invalid` if there are more bytes than may come. */
  count(bytes: number): void;
  /** Takes the next part; the event loop turns while that of a long track is read. Rejects with the file system's own errors. */
  add(part: Omit<TextPart, "cues"> & { cues: Iterable<Cue> }): Promise<void>;
}

/** A track that was read. */
export interface StoredText {
  hasCues: boolean;
  /** Returns its parts, each time other ones, whose cues may be changed; those of a long track are read from the disk. @throws the file system's own errors. */
  parts(): readonly TextPart[];
}

/** Keeps the subtitles of a download: long tracks on the disk, so that only one of them is in memory at a time. */
export class TextStore {
  readonly #folder: string;
  readonly #long = createKeyedMutex();
  #bytesLeft = maxTotalBytes;
  #files = 0;

  /** @param folder Of the download, which is removed with it. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Keeps the track that `read` fetches and reads. It is called again for a track of more than 1 MiB: these are read one at a time.
   *
   * @throws ServiceError `upstream_invalid` for more than 32 MiB, or if all tracks have more than 64 MiB, a quarter of each with less than 1 GiB of memory; the file system's own errors; what `read` rejects with
   */
  async keep(read: (sink: TextSink) => Promise<void>): Promise<StoredText> {
    const short = new MemorySink(smallBytes);
    try {
      await read(short);
      this.#take(short.bytes);
      return short;
    } catch (error) {
      if (!short.isExceeded) throw error;
    }
    // V8 would let several copies of a long track become garbage before it frees one.
    setFlagsFromString("--heap-growing-percent=0");
    setFlagsFromString("--memory-saver-mode");
    return this.#long.runExclusive("", async () => {
      using long = new DiskSink(join(this.#folder, `text-${this.#files++}`), Math.min(maxBytes, this.#bytesLeft));
      await read(long);
      this.#take(long.bytes);
      return long.stored();
    });
  }

  #take(bytes: number): void {
    if (bytes > this.#bytesLeft) throw exceededError(this.#bytesLeft);
    this.#bytesLeft -= bytes;
  }
}

class ByteCount {
  bytes = 0;
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  get isExceeded(): boolean {
    return this.bytes > this.#limit;
  }

  count(bytes: number): void {
    this.bytes += bytes;
    if (this.isExceeded) throw exceededError(this.#limit);
  }
}

class MemorySink extends ByteCount implements TextSink, StoredText {
  readonly #parts: TextPart[] = [];

  async add(part: Parameters<TextSink["add"]>[0]): Promise<void> {
    this.#parts.push({ ...part, cues: [...part.cues] });
  }

  get hasCues(): boolean {
    return this.#parts.some(({ cues }) => cues.length > 0);
  }

  parts(): readonly TextPart[] {
    return this.#parts.map((part) => ({ ...part, cues: part.cues.map((cue) => ({ ...cue })) }));
  }
}

/** What is written of a part at a time. */
interface Block extends TextPart {
  /** Its cues follow those of the block before, of the same part. */
  isContinued: boolean;
}

const lengthBytes = 4;

class DiskSink extends ByteCount implements TextSink, Disposable {
  readonly #path: string;
  readonly #fd: number;
  #hasCues = false;
  /** Used again, as buffers that nothing needs are freed late. */
  #buffer = Buffer.alloc(0);

  constructor(path: string, limit: number) {
    super(limit);
    this.#path = path;
    this.#fd = openSync(path, "w");
  }

  async add({ cues: all, ...part }: Parameters<TextSink["add"]>[0]): Promise<void> {
    let isContinued = false;
    let cues: Cue[] = [];
    const flush = () => {
      this.#write({ ...part, cues, isContinued });
      isContinued = true;
      cues = [];
    };
    for (const cue of all) {
      if (cues.push(cue) < cuesAtATime) continue;
      flush();
      await nextTurn();
    }
    if (cues.length > 0 || !isContinued) flush();
  }

  #write(block: Block): void {
    if (block.cues.length > 0) this.#hasCues = true;
    const text = JSON.stringify(block);
    const needed = lengthBytes + 3 * text.length;
    if (this.#buffer.length < needed) this.#buffer = Buffer.allocUnsafeSlow(needed);
    const end = lengthBytes + this.#buffer.write(text, lengthBytes);
    this.#buffer.writeUInt32LE(end - lengthBytes);
    for (let written = 0; written < end;) written += writeSync(this.#fd, this.#buffer, written, end - written);
  }

  stored(): StoredText {
    return { hasCues: this.#hasCues, parts: () => readParts(this.#path) };
  }

  [Symbol.dispose](): void {
    closeSync(this.#fd);
  }
}

function readParts(path: string): TextPart[] {
  const parts: (TextPart & { cues: Cue[] })[] = [];
  using file = openFile(path);
  let buffer = Buffer.alloc(lengthBytes);
  while (readSync(file.fd, buffer, 0, lengthBytes, null) === lengthBytes) {
    const length = buffer.readUInt32LE();
    if (buffer.length < length) buffer = Buffer.allocUnsafeSlow(length);
    readSync(file.fd, buffer, 0, length, null);
    const { isContinued, cues, ...part } = JSON.parse(buffer.toString("utf8", 0, length)) as Block;
    if (isContinued) parts.at(-1)?.cues.push(...cues);
    else parts.push({ ...part, cues: [...cues] });
  }
  return parts;
}

function exceededError(limit: number) {
  return invalidSubtitlesError(
    limit === maxBytes
      ? `they have more than ${maxBytes} bytes`
      : `with the others of the video they have more than ${maxTotalBytes} bytes`,
  );
}
