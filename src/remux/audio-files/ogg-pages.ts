import { crc32 } from "../codecs/checksums.ts";
import { writeAt } from "../mp4/write/background-writes.ts";
import { createFileWindow, type FileWindow, openFile } from "../open-file.ts";

/** A page of an Ogg file (RFC 3533 §6); positions are in the file. */
export interface OggPage {
  serial: number;
  /** Its number in the logical stream. */
  sequence: number;
  /** The first packet continues from the page before. */
  isContinued: boolean;
  /** It begins a logical stream. */
  isFirst: boolean;
  /** It ends a logical stream. */
  isLast: boolean;
  /** How far the stream is after the last packet that ends on it; `null`: none does. */
  granule: number | null;
  /** Sizes of the segments of packets: one below 255 ends a packet. */
  segments: Uint8Array;
  body: number;
  end: number;
}

/** Returns the page at `at`; undefined if there is none, or it is cut off. */
export function readPage(file: FileWindow, at: number): OggPage | undefined {
  if (at + headerBytes > file.size) return undefined;
  const bytes = file.at(at);
  const body = headerBytes + bytes.readUInt8(26);
  if (bytes.toString("latin1", 0, 4) !== "OggS" || body > bytes.length) return undefined;
  const segments = Uint8Array.from(bytes.subarray(headerBytes, body));
  const end = at + pageEnd(bytes, 0);
  if (end > file.size) return undefined;
  const flags = bytes.readUInt8(5);
  const serial = bytes.readUInt32LE(serialAt);
  const [isFirst, isLast] = [(flags & 2) !== 0, (flags & 4) !== 0];
  const sequence = bytes.readUInt32LE(sequenceAt);
  const granule = bytes.readBigInt64LE(granuleAt);
  return {
    serial,
    sequence,
    isContinued: (flags & 1) !== 0,
    isFirst,
    isLast,
    granule: granule < 0n ? null : Number(granule),
    segments,
    body: at + body,
    end,
  };
}

/** Returns where the page that begins at `at` ends; that may be beyond `bytes`. */
export function pageEnd(bytes: Uint8Array, at: number): number {
  const body = at + headerBytes + (bytes[at + headerBytes - 1] ?? 0);
  return bytes.subarray(at + headerBytes, body).reduce((end, size) => end + size, body);
}

/** Whether the bytes of a page are those that it was made with. */
export function isIntact(page: Uint8Array): boolean {
  const stated = Buffer.from(page.buffer, page.byteOffset, page.length).readUInt32LE(checksumAt);
  const rest = [page.subarray(0, checksumAt), noChecksum, page.subarray(checksumAt + noChecksum.length)];
  return rest.reduce((before, bytes) => crc32(bytes, before), 0) === stated;
}

/** The checksum is that of the page with this instead. */
const noChecksum = Buffer.alloc(4);

const headerBytes = 27;
const [granuleAt, serialAt, sequenceAt, checksumAt] = [6, 14, 18, 22];
const maxSegments = 255;
/** Of a packet that a page does not end. */
const noGranule = 0xffff_ffff_ffff_ffffn;

/**
 * Writes one logical stream of an Ogg file (RFC 3533): packets of any length, which may continue on the next page. A page has
 * at most 255 segments of 255 bytes.
 */
export class OggWriter {
  readonly #fd: number;
  readonly #serial: number;
  #position = 0;
  #sequence = 0;
  #segments: number[] = [];
  #parts: Uint8Array[] = [];
  #granule = noGranule;
  #isContinued = false;

  constructor(fd: number, serial = 1) {
    this.#fd = fd;
    this.#serial = serial;
  }

  /** Adds a packet, after which the stream has `granule` samples. `endsPage`: the next packet begins a page. */
  add(packet: Uint8Array, granule: bigint, endsPage = false): void {
    for (let at = 0; ; at += 255) {
      if (this.#segments.length === maxSegments) this.#flush(at > 0);
      const part = packet.subarray(at, at + 255);
      this.#segments.push(part.length);
      this.#parts.push(part);
      if (part.length < 255) break;
    }
    this.#granule = granule;
    if (endsPage) this.#flush(false);
  }

  /** Writes a page of another file after those before, with a number of its own. */
  copyPage(page: Uint8Array): void {
    this.#flush(false);
    this.#write(Buffer.from(page));
  }

  /** Writes bytes that are no page of this stream. */
  copyBytes(bytes: Uint8Array): void {
    this.#flush(false);
    writeAt(this.#fd, bytes, this.#position);
    this.#position += bytes.length;
  }

  /** Writes the last page. */
  finish(): void {
    this.#flush(false, true);
  }

  /** `isContinued`: the last packet continues on the next page. */
  #flush(isContinued: boolean, isLast = false): void {
    if (this.#segments.length === 0 && !isLast) return;
    const header = Buffer.alloc(headerBytes + this.#segments.length);
    header.write("OggS", "latin1");
    header[5] = Number(this.#isContinued) | (this.#sequence === 0 ? 2 : 0) | (isLast ? 4 : 0);
    header.writeBigUInt64LE(this.#granule, 6);
    header.writeUInt32LE(this.#serial, serialAt);
    header[26] = this.#segments.length;
    header.set(this.#segments, headerBytes);
    this.#write(Buffer.concat([header, ...this.#parts]));
    this.#segments = [];
    this.#parts = [];
    this.#isContinued = isContinued;
    // A page on which no packet ends has none.
    if (isContinued) this.#granule = noGranule;
  }

  /** Writes a page with its number and checksum. */
  #write(page: Buffer): void {
    page.writeUInt32LE(this.#sequence, sequenceAt);
    page.writeUInt32LE(0, checksumAt);
    page.writeUInt32LE(crc32(page, 0), checksumAt);
    writeAt(this.#fd, page, this.#position);
    this.#position += page.length;
    this.#sequence += 1;
  }
}

/**
 * Counts the places of an Ogg file at which pages are damaged, missing, doubled or out of order (RFC 3533 §6), by
 * their lengths, checksums and numbers; if most are out of order, they are not numbered. What comes after the last page does not count.
 * Of a file in which damaged pages have more bytes than the file, those are counted that were found until then.
 */
export function countOggBreaks(file: FileWindow): number {
  /** Of each logical stream: the number of its next page; `null`: any. */
  const next = new Map<number, number | null>();
  let pages = 0;
  let damaged = 0;
  let unordered = 0;
  let isLost = false;
  /** Bytes of pages that may turn out to be damaged: headers within each other would be checked again and again. */
  let suspectBytes = Math.max(file.size, minSuspectBytes);
  for (let at = 0; at < file.size;) {
    const page = readPage(file, at);
    if (page === undefined || !isIntact(file.at(at).subarray(0, page.end - at))) {
      suspectBytes -= page === undefined ? 0 : page.end - at;
      if (suspectBytes < 0) return damaged + 1;
      at = file.find(signatures, at + 1, file.size);
      if (!isLost && (page !== undefined || at < file.size)) damaged += 1;
      isLost = true;
      next.clear();
      continue;
    }
    isLost = false;
    const { serial, sequence, isFirst, isLast, end } = page;
    const expected = next.get(serial) ?? null;
    // A stream that follows another one may have its serial number.
    if (expected !== null && (isFirst || sequence !== expected)) unordered += 1;
    next.set(serial, isLast ? null : sequence + 1);
    pages += 1;
    at = end;
  }
  return damaged + (unordered * 2 <= pages ? unordered : 0);
}

/**
 * Returns how many streams, or groups of them, follow each other in an Ogg file (RFC 3533 §4), as far as its pages can be read; 0 of
 * another file. @throws the file system's own errors.
 */
export function countOggLinks(path: string): number {
  using opened = openFile(path);
  const file = createFileWindow(opened);
  let links = 0;
  let wasFirst = false;
  for (let page = readPage(file, 0); page !== undefined; page = readPage(file, page.end)) {
    if (page.isFirst && !wasFirst) links += 1;
    wasFirst = page.isFirst;
  }
  return links;
}

/** Codecs whose second packet is a comment header: how the first one and that begin, and how many headers there are. */
const codecs = [
  { first: "OpusHead", comments: "OpusTags", count: 2, ending: "" },
  // The framing bit (Ogg Vorbis I §5.2.1).
  { first: "\x01vorbis", comments: "\x03vorbis", count: 3, ending: "\x01" },
] as const;

/** Returns which of them a stream has that begins with this packet; undefined: none. */
export const codecOf = (packet: Buffer) =>
  codecs.find(({ first }) => packet.toString("latin1", 0, first.length) === first);

/** Returns how many packets of Opus and Vorbis the streams of an Ogg file have after their headers, by serial number; of the first streams, if others follow. */
export function countOggPackets(file: FileWindow): Map<number, number> {
  const counts = new Map<number, number>();
  /** Of the packet that continues. */
  const open = new Map<number, number>();
  let wasFirst = true;
  for (let page = readPage(file, 0); page !== undefined; page = readPage(file, page.end)) {
    const { serial, isFirst, body, segments } = page;
    if (isFirst && !wasFirst) break;
    wasFirst = isFirst;
    const codec = isFirst ? codecOf(file.at(body)) : undefined;
    if (codec !== undefined) counts.set(serial, -codec.count);
    const before = counts.get(serial);
    if (before === undefined) continue;
    let [packets, bytes] = [before, open.get(serial) ?? 0];
    for (const size of segments) {
      bytes += size;
      if (size === 255) continue;
      // Some end with one that is empty.
      if (bytes > 0) packets += 1;
      bytes = 0;
    }
    counts.set(serial, packets);
    open.set(serial, bytes);
  }
  return counts;
}

const minSuspectBytes = 1024 * 1024;

const signatures = [Buffer.from("OggS")];
