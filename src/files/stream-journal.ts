import { closeSync, fstatSync, openSync, renameSync, rmSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import { noFollow } from "./no-follow.ts";

/**
 * A journal in a work folder of what can be sent of a file that is being made there, for readers in any process. Its first
 * line says by how many bytes media data were moved up in that file (`moving`: they are being moved); then one record
 * per line. A later run writes another journal in its place.
 */
export const journalName = "stream.ndjson";

/** Bytes of the first line. */
export const shiftBytes = 20;
export const movingMark = "moving";

export type StreamRecord =
  /** The first record: what the stream is, and which file of the folder has its media. */
  | StreamHeader
  /** Bytes in front (base64), and the media data after them: `bytes` at `offset` of the file. */
  | { type: "media"; head: string; offset: number; bytes: number }
  /** There is no more. `inode` is the file's. */
  | { type: "end"; inode: number }
  /** What follows cannot be sent. */
  | { type: "broken" };

export interface StreamHeader {
  type: "open";
  mime_type: string;
  /** Of a file name, without the dot. */
  ext: string;
  /** Path in the work folder. */
  file: string;
  /** Of a file that media records refer to; `null`: the stream is the file itself, which grows at its end. */
  inode: number | null;
}

export interface MediaRecord {
  head: Uint8Array;
  offset: number;
  bytes: number;
}

/** Writes the journal of one run. All functions throw the file system's own errors. */
export class StreamJournal {
  readonly #folder: string;
  #fd: number | undefined;
  #file = "";

  /** Removes the journal of an earlier run. */
  constructor(folder: string) {
    this.#folder = folder;
    rmSync(this.#path, { force: true });
  }

  get #path(): string {
    return join(this.#folder, journalName);
  }

  get isOpen(): boolean {
    return this.#fd !== undefined;
  }

  /** Begins the stream. `isGrowing`: it is the file itself, of which others only add to the end. */
  open(header: Pick<StreamHeader, "mime_type" | "ext" | "file">, isGrowing: boolean): void {
    this.close();
    this.#file = join(this.#folder, header.file);
    const draft = `${this.#path}.new`;
    this.#fd = openSync(draft, noFollow.overwrite);
    this.setShift(0);
    this.#append({ type: "open", ...header, inode: isGrowing ? null : this.#inode() });
    renameSync(draft, this.#path);
  }

  add({ head, offset, bytes }: MediaRecord): void {
    this.#append({ type: "media", head: Buffer.from(head).toString("base64"), offset, bytes });
  }

  /** Says by how many bytes the media data have been moved up; `null`: they are about to be. */
  setShift(bytes: number | null): void {
    if (this.#fd === undefined) return;
    writeSync(this.#fd, `${`${bytes ?? movingMark}`.padEnd(shiftBytes - 1)}\n`, 0);
  }

  /** Says that all of it is there. */
  end(): void {
    if (this.isOpen) this.#append({ type: "end", inode: this.#inode() });
    this.close();
  }

  /** Says that the rest cannot be sent. New readers find no stream. */
  break(): void {
    if (this.isOpen) this.#append({ type: "broken" });
    this.close();
    rmSync(this.#path, { force: true });
  }

  close(): void {
    const fd = this.#fd;
    this.#fd = undefined;
    if (fd !== undefined) closeSync(fd);
  }

  #inode(): number {
    return statSync(this.#file).ino;
  }

  #append(record: StreamRecord): void {
    if (this.#fd === undefined) return;
    const line = Buffer.from(`${JSON.stringify(record)}\n`);
    let at = fstatSync(this.#fd).size;
    for (let done = 0; done < line.length;) {
      const written = writeSync(this.#fd, line, done, line.length - done, at);
      done += written;
      at += written;
    }
  }
}
