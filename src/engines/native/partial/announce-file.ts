import { statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { StreamJournal } from "../../../files/stream-journal.ts";
import { sniffMedium } from "../../../parsers/media-type.ts";
import { readFileHeader } from "../../../remux/file-header.ts";
import { readFileStart } from "../../../remux/open-file.ts";
import { skipId3Tags } from "../../../remux/packed-audio/tags.ts";
import { sniffContainer } from "../../../remux/sniff.ts";
import { type FileType, fileType } from "../../../parsers/media-type.ts";
import type { EndOfMp4 } from "./growing-file.ts";
import { type FetchEnd, IndexFirst, mediaBeforeIndex } from "./index-first.ts";

interface AnnouncementDeps {
  /** Whether a file of that type is wanted as it is: of others, only a part becomes the result. */
  isWanted: (type: FileType) => boolean;
  fetchEnd: FetchEnd;
  /** Gets the end of an MP4 with video that is not wanted as it is, if the stream is wanted, and the end was fetched first. */
  onVideo: (end: EndOfMp4) => void;
}

/**
 * Puts a file that is being fetched, from its start on, into a journal as soon as its first bytes show what it is. A file that
 * cannot be read has no stream.
 */
export class FileAnnouncement {
  readonly #journal: StreamJournal;
  readonly #deps: AnnouncementDeps;
  /** Of an MP4 whose index is at its end. */
  #indexFirst: IndexFirst | undefined;
  #total: number | null = null;
  #isDecided = false;
  #isOpen = false;
  #nextBytes = 0;

  constructor(journal: StreamJournal, deps: AnnouncementDeps) {
    this.#journal = journal;
    this.#deps = deps;
  }

  /** Call this with the size that the file will have, bytes, before it grows; `null`: unknown. */
  onTotal(bytes: number | null): void {
    if (bytes === this.#total) return;
    this.#total = bytes;
    this.#indexFirst?.break();
    this.#indexFirst = undefined;
    this.#isDecided = false;
    this.#nextBytes = 0;
  }

  /** Call this when the file has grown. */
  onBytes(path: string): void {
    this.#indexFirst?.onBytes(path);
    this.#decide(path);
  }

  #decide(path: string): void {
    if (this.#isDecided) return;
    try {
      this.#announce(path);
    } catch {
      this.#isDecided = true;
    }
  }

  /** Call this when the file is complete. */
  end(path: string): void {
    this.#nextBytes = 0;
    // An earlier run may have fetched it.
    this.#total ??= statSync(path, { throwIfNoEntry: false })?.size ?? null;
    this.#decide(path);
    this.#indexFirst?.end(path);
    // Others may have opened it for what becomes of the file.
    if (this.#isOpen) this.#journal.end();
  }

  #announce(path: string): void {
    const { size } = statSync(path);
    if (size < this.#nextBytes) return;
    this.#nextBytes = 2 * size;
    const head = readFileStart(path, Buffer.allocUnsafe(Math.min(size, maxHeadBytes)));
    const type = readStreamType(head, size);
    this.#isDecided = type !== undefined;
    if (type === null) this.#awaitIndex(head);
    if (!type || !this.#deps.isWanted(type)) return;
    const bytes = this.#total === null ? {} : { bytes: this.#total };
    this.#isOpen = true;
    this.#journal.open({ ...type, ...bytes, file: join(basename(dirname(path)), basename(path)) }, true);
  }

  #awaitIndex(head: Buffer): void {
    const media = readFileHeader(head)?.container === "mp4" ? mediaBeforeIndex(head) : undefined;
    const totalBytes = this.#total;
    if (media === undefined || totalBytes === null) return;
    const { isWanted, fetchEnd, onVideo } = this.#deps;
    const typeOf = (start: Buffer): FileType | null => {
      const type = readHead(start) ?? null;
      return type !== null && isWanted(type) ? type : null;
    };
    const onUnwanted = (end: EndOfMp4, start: Buffer) => {
      if (showsVideo(start)) onVideo(end);
    };
    const deps = { journal: this.#journal, typeOf, fetchEnd, onUnwanted };
    this.#indexFirst = new IndexFirst({ head, media, totalBytes }, deps);
  }
}

/** An index in front has the formats of its tracks within these bytes. */
const maxHeadBytes = 4 << 20;

/**
 * Returns the type of a file of which only the first bytes are there, if a player can play it from its start on; `null` if
 * it cannot, or that is not known. `undefined` if more bytes are needed.
 */
function readStreamType(head: Buffer, size: number): FileType | null | undefined {
  const needsMore = size < maxHeadBytes ? undefined : null;
  if (head.length < leastBytes) return needsMore;
  const known = readHead(head);
  return known === undefined ? needsMore : known;
}

const leastBytes = 512;

function readHead(head: Buffer): FileType | null | undefined {
  const header = readFileHeader(head);
  if (header === undefined) return readSignature(head);
  const { container, vcodec } = header;
  if (container === "mp4" && mediaBeforeIndex(head) !== undefined) return null;
  if (vcodec === null) return undefined;
  const isQuickTime = container === "mp4" && head.toString("latin1", 8, 12) === "qt  ";
  return fileType(isQuickTime ? "mov" : container === "matroska" ? "mkv" : container, vcodec !== "none");
}

/** Whether the first bytes of a file show that it has video, and not only a picture. @throws the file system's own errors */
export const startsWithVideo = (path: string): boolean =>
  showsVideo(readFileStart(path, Buffer.allocUnsafe(maxHeadBytes)));

const showsVideo = (head: Buffer): boolean => /^(?:avc|hvc|hev|dv|av01|vp\d)/.test(readFileHeader(head)?.vcodec ?? "");

/** Files whose first bytes show what they are, and which can be played from there on. */
const playedKinds = ["flac", "wav", "aiff", "au", "flv", "avi", "wmv", "mpg", "ogv"] as const;

function readSignature(head: Buffer): FileType | null | undefined {
  const ext = sniffMedium(head)?.ext;
  const played = playedKinds.find((each) => each === ext);
  if (played !== undefined) return fileType(played);
  const start = head.toString("latin1", 0, 64);
  if (start.startsWith("OggS") && start.includes("OpusHead")) return fileType("opus");
  if (start.startsWith("OggS")) return fileType("ogg", false);
  if (sniffContainer(head) === "mpeg-ts") return fileType("ts");
  const { start: first } = skipId3Tags(head);
  // Its tags have a picture.
  if (first + 2 > head.length) return undefined;
  const sync = head.readUInt16BE(first);
  // ISO/IEC 13818-7 §6.2.1, ISO/IEC 11172-3 §2.4.1.3: layer 0 is ADTS, layer 1 is that of MP3.
  if ((sync & 0xfff6) === 0xfff0) return fileType("aac");
  return (sync & 0xffe6) === 0xffe2 ? fileType("mp3") : null;
}
