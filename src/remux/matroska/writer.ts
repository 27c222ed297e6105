import { damagedMatroskaError, ids, voidHead } from "./elements.ts";
import { u64 } from "../mp4/boxes.ts";
import { writeAt } from "../mp4/write/background-writes.ts";

const appName = Buffer.from("unreel");
const maxClusterBytes = 8 << 20;
const minClusterNs = 1e9;

interface MatroskaWriterOptions {
  /** Open for writing, empty. */
  fd: number;
  docType: "webm" | "matroska";
  /** Nanoseconds of a tick. */
  timestampScale: number;
  /** TrackEntry elements; their tracks have the numbers from 1 on. */
  entries: readonly Uint8Array[];
  /** Number of the track whose key frames the index lists. */
  mainTrack: number;
  /** Title of the Segment; `null`: none. */
  title: string | null;
  /** Returns further elements before the clusters: chapters, tags, attachments. For a shorter file they are no longer. */
  others: (durationS: number) => readonly Uint8Array[];
}

export interface WrittenBlock {
  /** From 1. */
  track: number;
  ticks: number;
  endTicks: number;
  isKey: boolean;
  flags: number;
  /** The frames, with the sizes of a lace. */
  payload: Uint8Array;
  /** The other elements of its group; `null`: it is a SimpleBlock. */
  others: Uint8Array | null;
}

/**
 * Writes a WebM or Matroska file (RFC 9559): the header, clusters of a second or more that begin with a key frame of the
 * main track, and an index of them. A longer one is continued in others, which the index does not list (§22.1): nothing can be
 * decoded from there. Memory: a cluster, and 20 bytes for each.
 */
export class MatroskaWriter {
  readonly #options: MatroskaWriterOptions;
  readonly #cues: Uint8Array[] = [];
  /** Where the Segment's content starts. */
  readonly #start: number;
  readonly #headBytes: number;
  #position = 0;
  #cluster: { ticks: number; bytes: number; parts: Uint8Array[] } | undefined;
  #endTicks = 0;
  /** Time of the latest cluster in the index. */
  #listedTicks = 0;

  constructor(options: MatroskaWriterOptions) {
    this.#options = options;
    this.#start = fileHeader(options.docType).length + segmentHeader(0).length;
    this.#headBytes = this.#head(0, Infinity).length + voidHeadBytes;
    this.#position = this.#headBytes;
  }

  add(block: WrittenBlock): void {
    if (this.#needsCluster(block)) this.#startCluster(block);
    const cluster = this.#cluster!;
    const head = Buffer.alloc(4);
    head[0] = 0x80 | block.track;
    head.writeInt16BE(block.ticks - cluster.ticks, 1);
    head[3] = block.flags;
    const { payload, others } = block;
    const part =
      others === null
        ? element(ids.simpleBlock, head, payload)
        : element(ids.blockGroup, element(ids.block, head, payload), others);
    cluster.parts.push(part);
    cluster.bytes += part.length;
    this.#endTicks = Math.max(this.#endTicks, block.endTicks);
  }

  /** Writes the index and completes the header. */
  finish(): void {
    this.#flush();
    const cuesPosition = this.#position;
    this.#append(element(ids.cues, ...this.#cues));
    const { fd, timestampScale } = this.#options;
    // Of nothing that lasts, nothing is known.
    const head = this.#head(cuesPosition, (this.#endTicks * timestampScale) / 1e9 || Infinity);
    const left = voidHead({ start: head.length, end: this.#headBytes });
    writeAt(fd, Buffer.concat([head, left], this.#headBytes), 0);
  }

  #needsCluster(block: WrittenBlock): boolean {
    if (this.#cluster === undefined) return true;
    const age = block.ticks - this.#cluster.ticks;
    if (age > 0x7fff || age < -0x8000 || this.#cluster.bytes >= maxClusterBytes) return true;
    const sinceNs = (block.ticks - this.#listedTicks) * this.#options.timestampScale;
    return this.#isListed(block) && sinceNs >= minClusterNs;
  }

  #isListed({ track, isKey }: WrittenBlock): boolean {
    return isKey && track === this.#options.mainTrack;
  }

  #startCluster(block: WrittenBlock): void {
    this.#flush();
    const start = Math.max(0, block.ticks);
    if (block.ticks < -0x8000) throw damagedMatroskaError("a block is long before the first ones");
    this.#cluster = { ticks: start, bytes: 0, parts: [] };
    if (this.#cues.length > 0 && !this.#isListed(block)) return;
    this.#listedTicks = start;
    const position = element(ids.cueClusterPosition, unsigned(this.#position - this.#start));
    const track = element(ids.cueTrack, unsigned(this.#options.mainTrack));
    const positions = element(ids.cueTrackPositions, track, position);
    this.#cues.push(element(ids.cuePoint, element(ids.cueTime, unsigned(start)), positions));
  }

  #flush(): void {
    if (this.#cluster === undefined) return;
    const { ticks, parts } = this.#cluster;
    this.#append(element(ids.cluster, element(ids.timestamp, unsigned(ticks)), ...parts));
    this.#cluster = undefined;
  }

  #append(bytes: Uint8Array): void {
    writeAt(this.#options.fd, bytes, this.#position);
    this.#position += bytes.length;
  }

  /** Returns what comes before the clusters. */
  #head(cuesPosition: number, durationS: number): Uint8Array {
    const { docType, timestampScale, entries, title } = this.#options;
    const duration = Buffer.alloc(8);
    duration.writeDoubleBE(this.#endTicks);
    const info = element(
      ids.info,
      element(ids.timestampScale, unsigned(timestampScale)),
      element(ids.duration, duration),
      ...(title === null ? [] : [element(ids.title, text(title))]),
      element(ids.muxingApp, appName),
      element(ids.writingApp, appName),
    );
    const tracks = element(ids.tracks, ...entries);
    const parts = [info, tracks, ...this.#options.others(durationS)];
    const cues = { id: ids.cues, position: Math.max(0, cuesPosition - this.#start) };
    return Buffer.concat([
      fileHeader(docType),
      segmentHeader(Math.max(0, this.#position - this.#start)),
      seekHead(parts, cues),
      ...parts,
    ]);
  }
}

/** Of the element that fills what the header at the end leaves of the first one. */
const voidHeadBytes = 9;

function fileHeader(docType: string): Uint8Array {
  return element(
    ids.ebml,
    element(ids.ebmlVersion, unsigned(1)),
    element(ids.ebmlReadVersion, unsigned(1)),
    element(ids.ebmlMaxIdLength, unsigned(4)),
    element(ids.ebmlMaxSizeLength, unsigned(8)),
    element(ids.docType, Buffer.from(docType)),
    element(ids.docTypeVersion, unsigned(4)),
    element(ids.docTypeReadVersion, unsigned(2)),
  );
}

/** Returns the head of a Segment that has so many bytes. */
export function segmentHeader(bytes: number): Uint8Array {
  return Buffer.concat([unsigned(ids.segment), longSize(bytes)]);
}

interface SeekTarget {
  id: number;
  /** From the start of the Segment's content. */
  position: number;
}

/** Returns a SeekHead to the elements that follow it, and to `last`; always as long for as many of them. */
function seekHead(parts: readonly Uint8Array[], last: SeekTarget): Uint8Array {
  const entryBytes = seek(last).length;
  let position = element(ids.seekHead, new Uint8Array(entryBytes * (parts.length + 1))).length;
  const targets = parts.map((part) => {
    const target = { id: idOf(part), position };
    position += part.length;
    return target;
  });
  return element(ids.seekHead, ...[...targets, last].map(seek));
}

function seek({ id, position }: SeekTarget): Uint8Array {
  return element(ids.seek, element(ids.seekId, unsigned(id)), element(ids.seekPosition, u64(position)));
}

/** All elements that are sought have ids of four bytes. */
function idOf(part: Uint8Array): number {
  return Buffer.from(part.buffer, part.byteOffset, 4).readUInt32BE();
}

/** Returns an element (RFC 8794 §5). */
export function element(id: number, ...parts: readonly Uint8Array[]): Uint8Array {
  const bytes = parts.reduce((sum, part) => sum + part.length, 0);
  return Buffer.concat([unsigned(id), bytes < 0x7f ? Buffer.from([0x80 | bytes]) : longSize(bytes), ...parts]);
}

/** Returns the content of a text. */
export const text = (value: string): Uint8Array => Buffer.from(value);

/** Returns the content of an unsigned integer, and the bytes of an id. */
export function unsigned(value: number | bigint): Uint8Array {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  const first = bytes.findIndex((byte) => byte !== 0);
  return bytes.subarray(first < 0 ? 7 : first);
}

/** Returns a size in eight bytes. */
function longSize(value: number): Uint8Array {
  const bytes = u64(value);
  bytes[0] = 1;
  return bytes;
}
