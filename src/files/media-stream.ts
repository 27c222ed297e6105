import { createHash, type Hash } from "node:crypto";
import { join } from "node:path";
import { journalName, type StreamRecord } from "./stream-journal.ts";
import { closeRun, inodeAt, openRun, readAt, type StreamRun } from "./stream-run.ts";

/**
 * Reads the stream of a file that a task is making, from its first byte on, in any process. It can be read on after the work folder was
 * removed. If a later run makes the file again, the stream goes on with that if it has the same media so far.
 */
export interface MediaStream {
  readonly mimeType: string;
  /** Of a file name, without the dot. */
  readonly ext: string;
  /**
   * Returns the next bytes, at most `maxBytes`; `null` if there are none now, `"end"` if there will be none.
   *
   * @throws StreamBrokenError if what was sent does not continue
   */
  read(maxBytes: number): Promise<Uint8Array | "end" | null>;
  /** Safe to call twice. */
  close(): Promise<void>;
}

/** What was sent of a stream does not continue. */
export class StreamBrokenError extends Error {
  override name = "StreamBrokenError";
}

/** Opens the stream in a work folder; undefined if there is none now. @throws the file system's own errors */
export async function openMediaStream(folder: string): Promise<MediaStream | undefined> {
  const run = await openRun(folder);
  return run && new JournalStream(folder, run);
}

type MediaRecord = Extract<StreamRecord, { type: "media" }>;

class JournalStream implements MediaStream {
  readonly mimeType: string;
  readonly ext: string;
  readonly #folder: string;
  #run: StreamRun;
  /** The newest run, if it is another one; kept open, as its folder goes when it has succeeded. */
  #later: StreamRun | undefined;
  #lookedMs = performance.now();
  /** Of the file if that is the stream itself, else of `#record`: bytes that were returned. */
  #position = 0;
  #record: MediaRecord | undefined;
  /** Of the records so far, `#record` included. */
  #count = 0;
  #hash = createHash("sha256");
  #hasEnded = false;
  /** The same of the later run, as far as that has come. */
  #laterCount = 0;
  #laterHash = createHash("sha256");
  #closing: Promise<void> | undefined;

  constructor(folder: string, run: StreamRun) {
    this.#folder = folder;
    this.#run = run;
    this.mimeType = run.header.mime_type;
    this.ext = run.header.ext;
  }

  async read(maxBytes: number): Promise<Uint8Array | "end" | null> {
    if (performance.now() - this.#lookedMs >= lookEveryMs) await this.#findLater();
    return this.#run.header.inode === null ? this.#readFile(maxBytes) : this.#readRecords(maxBytes);
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#closeAll());
  }

  async #closeAll(): Promise<void> {
    await closeRun(this.#run);
    if (this.#later !== undefined) await closeRun(this.#later);
  }

  async #readFile(maxBytes: number): Promise<Uint8Array | "end" | null> {
    const { file, journal, inode } = this.#run;
    // Before the bytes: what is there after the end is all of it.
    const end = await journal.next();
    if (end?.type === "end") {
      if (end.inode !== inode) throw new StreamBrokenError("the file was fetched anew");
      this.#hasEnded = true;
    } else if (end !== undefined) throw new StreamBrokenError("the run made another file");
    const bytes = await readAt(file, this.#position, maxBytes);
    this.#position += bytes.length;
    if (bytes.length > 0) return bytes;
    if (this.#hasEnded) return "end";
    const path = join(this.#folder, this.#run.header.file);
    const now = await inodeAt(path);
    if (now !== undefined && now !== inode) throw new StreamBrokenError("the file was fetched anew");
    await this.#follow();
    return null;
  }

  async #readRecords(maxBytes: number): Promise<Uint8Array | "end" | null> {
    if (this.#record === undefined && !(await this.#nextRecord())) {
      if (this.#hasEnded) return "end";
      await this.#follow();
      return null;
    }
    const { head, offset, bytes } = this.#record!;
    const headBytes = Buffer.from(head, "base64");
    const at = this.#position - headBytes.length;
    const found =
      at < 0
        ? headBytes.subarray(this.#position, this.#position + maxBytes)
        : await this.#readMedia(offset + at, Math.min(maxBytes, bytes - at));
    if (found === null) return null;
    this.#position += found.length;
    if (this.#position === headBytes.length + bytes) this.#record = undefined;
    return found;
  }

  /** Returns `null` while the media data are being moved. */
  async #readMedia(offset: number, length: number): Promise<Uint8Array | null> {
    const { file, journal } = this.#run;
    const shift = await journal.shift();
    if (shift === undefined) throw brokenOffError();
    if (shift === null) return null;
    const bytes = await readAt(file, offset + shift, length);
    if ((await journal.shift()) !== shift) return null;
    if (bytes.length === 0) throw new StreamBrokenError("the file is shorter than its journal says");
    return bytes;
  }

  async #nextRecord(): Promise<boolean> {
    const record = await this.#run.journal.next();
    if (record?.type === "broken") throw brokenOffError();
    if (record?.type === "end") this.#hasEnded = true;
    if (record?.type !== "media") return false;
    this.#record = record;
    this.#position = 0;
    this.#count += 1;
    addTo(this.#hash, record);
    return true;
  }

  /** Goes over to a later run, once that has come as far. @throws StreamBrokenError */
  async #follow(): Promise<void> {
    await this.#findLater();
    const later = this.#later;
    if (later === undefined) return;
    if (!(await this.#continuesIn(later))) return;
    const before = this.#run;
    this.#run = later;
    this.#later = undefined;
    await closeRun(before);
  }

  async #findLater(): Promise<void> {
    this.#lookedMs = performance.now();
    const now = await inodeAt(join(this.#folder, journalName));
    const known = this.#later ?? this.#run;
    if (now === undefined || now === known.journal.inode) return;
    const found = await openRun(this.#folder);
    if (found === undefined) return;
    if (this.#later !== undefined) await closeRun(this.#later);
    this.#later = found;
    this.#laterHash = createHash("sha256");
    this.#laterCount = 0;
  }

  /** Returns whether the run has all that was sent; false if it may still come. @throws StreamBrokenError */
  async #continuesIn({ header, inode, journal }: StreamRun): Promise<boolean> {
    const isGrowing = header.inode === null;
    if (header.mime_type !== this.mimeType || isGrowing !== (this.#run.header.inode === null)) throw changedError();
    if (isGrowing) {
      if (inode !== this.#run.inode) throw changedError();
      return true;
    }
    for (; this.#laterCount < this.#count; this.#laterCount += 1) {
      const record = await journal.next();
      if (record === undefined) return false;
      if (record.type !== "media") throw changedError();
      addTo(this.#laterHash, record);
    }
    if (!this.#laterHash.digest().equals(this.#hash.copy().digest())) throw changedError();
    return true;
  }
}

const brokenOffError = (): StreamBrokenError => new StreamBrokenError("the run cannot send the rest");

const changedError = (): StreamBrokenError => new StreamBrokenError("a later run of the task made another file");

/** Where its media are may differ between runs. */
function addTo(hash: Hash, { head, bytes }: MediaRecord): void {
  hash.update(`${head} ${bytes}\n`);
}

const lookEveryMs = 1_000;
