import { closeSync, openSync, readSync, writeSync } from "node:fs";
import { join } from "node:path";
import { deserialize, serialize } from "node:v8";
import { createKeyedMutex } from "../../../async/keyed-mutex.ts";
import type { Cue } from "../../../remux/additions.ts";
import { invalidSubtitlesError, maxSubtitleBytes } from "../../../subtitles/text.ts";
import type { TextPart } from "./place-cues.ts";

/** Of all subtitles of a download together. */
const maxTotalBytes = 2 * maxSubtitleBytes;
/** As long are those of most films. */
const smallBytes = 1 << 20;
/** Cues that are written to the disk at a time. */
const cuesAtATime = 1_000;

/** Gets a track while it is fetched and read. */
export interface TextSink {
  /** Counts what was fetched; below 0: what is fetched again. @throws ServiceError `upstream_invalid` if there are more bytes than may come. */
  count(bytes: number): void;
  /** Takes the next part. @throws the file system's own errors. */
  add(part: Omit<TextPart, "cues"> & { cues: Iterable<Cue> }): void;
}

/** A track that was read. */
export interface StoredText {
  hasCues: boolean;
  /** Returns its parts; those of a long track are read from the disk. @throws the file system's own errors. */
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
   * @throws ServiceError `upstream_invalid` for more than 32 MiB, or if all tracks have more than 64 MiB; the file system's own errors; what `read` rejects with
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
    return this.#long.runExclusive("", async () => {
      using long = new DiskSink(
        join(this.#folder, `text-${this.#files++}`),
        Math.min(maxSubtitleBytes, this.#bytesLeft),
      );
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

  add(part: Parameters<TextSink["add"]>[0]): void {
    this.#parts.push({ ...part, cues: [...part.cues] });
  }

  get hasCues(): boolean {
    return this.#parts.some(({ cues }) => cues.length > 0);
  }

  parts(): readonly TextPart[] {
    return this.#parts;
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

  constructor(path: string, limit: number) {
    super(limit);
    this.#path = path;
    this.#fd = openSync(path, "w");
  }

  add({ cues: all, ...part }: Parameters<TextSink["add"]>[0]): void {
    let isContinued = false;
    let cues: Cue[] = [];
    const flush = () => {
      this.#write({ ...part, cues, isContinued });
      isContinued = true;
      cues = [];
    };
    for (const cue of all) if (cues.push(cue) === cuesAtATime) flush();
    if (cues.length > 0 || !isContinued) flush();
  }

  #write(block: Block): void {
    if (block.cues.length > 0) this.#hasCues = true;
    const bytes = serialize(block);
    const length = Buffer.alloc(lengthBytes);
    length.writeUInt32LE(bytes.length);
    for (const piece of [length, bytes]) {
      for (let written = 0; written < piece.length;) written += writeSync(this.#fd, piece, written);
    }
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
  const fd = openSync(path, "r");
  try {
    const length = Buffer.alloc(lengthBytes);
    while (readSync(fd, length) === lengthBytes) {
      const bytes = Buffer.allocUnsafe(length.readUInt32LE());
      readSync(fd, bytes);
      const { isContinued, cues, ...part } = deserialize(bytes) as Block;
      if (isContinued) parts.at(-1)?.cues.push(...cues);
      else parts.push({ ...part, cues: [...cues] });
    }
  } finally {
    closeSync(fd);
  }
  return parts;
}

function exceededError(limit: number) {
  return invalidSubtitlesError(
    limit === maxSubtitleBytes
      ? `they have more than ${maxSubtitleBytes} bytes`
      : `with the others of the video they have more than ${maxTotalBytes} bytes`,
  );
}
