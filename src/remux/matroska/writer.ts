import { damagedMatroskaError, ids, voidHead } from "./elements.ts";
import { element, longSize, text, unsigned } from "./write-elements.ts";
import { u64 } from "../mp4/boxes.ts";
import { writeAt } from "../mp4/write/background-writes.ts";
import type { ByteSpan } from "../samples.ts";

const appName = Buffer.from("unreel");
const maxClusterBytes = 8 << 20;
/** Short enough for who reads the file while it is written. */
const clusterNs = 5e8;
/** Between key frames in the index. */
const indexNs = 1e9;
const unknownSize = Buffer.from([0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);

export interface MatroskaWriterOptions extends SegmentDescription {
  /** Open for writing, empty. */
  fd: number;
  docType: "webm" | "matroska";
  /** Nanoseconds of a tick. */
  timestampScale: number;
  /** TrackEntry elements; their tracks have the numbers from 1 on. */
  entries: readonly Uint8Array[];
  /** Number of the track whose key frames the index lists. */
  mainTrack: number;
  /** Room before the clusters for what `finish` says besides, bytes; default: 0. */
  roomBytes?: number | undefined;
  /** Called with the bytes of the file that each cluster has, once they are there; default: nothing. */
  onCluster?: ((span: ByteSpan, writer: MatroskaWriter) => void) | undefined;
}

export interface SegmentDescription {
  /** Of the Segment; `null`: none. */
  title: string | null;
  /** Returns further elements of the Segment: chapters, tags, attachments. For a shorter file they are no longer. */
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
 * Writes a WebM or Matroska file (RFC 9559): the header, clusters of half a second, and an index of those that begin with a key frame of the
 * main track, once a second at most. Others are not listed (§22.1): nothing can be decoded from there. Memory: a cluster, and 20 bytes for
 * each that is listed.
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
    const { title, others, roomBytes = 0 } = options;
    this.#headBytes = this.#head(title, others(Infinity), [someCues]).length + voidHeadBytes + roomBytes;
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

  /** What comes before the clusters in a stream of them, whose end is unknown. */
  get streamHead(): Uint8Array {
    const { docType, entries } = this.#options;
    const segment = Buffer.concat([unsigned(ids.segment), unknownSize]);
    return Buffer.concat([fileHeader(docType), segment, this.#info(null, null), element(ids.tracks, ...entries)]);
  }

  /**
   * Writes the last cluster, the index and the header, which says what the options do or `description`: before the clusters, or after them
   * what has no room there.
   *
   * @throws RangeError if the title has no room
   */
  finish({ title, others }: SegmentDescription = this.#options): void {
    this.flush();
    const { fd, timestampScale } = this.#options;
    // Of nothing that lasts, nothing is known.
    const parts = others((this.#endTicks * timestampScale) / 1e9 || Infinity);
    const hasRoom = (head: Uint8Array) => head.length + voidHeadBytes <= this.#headBytes;
    const front = hasRoom(this.#head(title, parts, [someCues])) ? parts : [];
    const targets: SeekTarget[] = [];
    for (const part of [...(front === parts ? [] : parts), element(ids.cues, Buffer.concat(this.#cues))]) {
      targets.push({ id: idOf(part), position: this.#position - this.#start });
      this.#append(part);
    }
    const head = this.#head(title, front, targets);
    if (!hasRoom(head)) throw new RangeError(`the title of a Matroska file has no room in ${this.#headBytes} bytes`);
    const left = voidHead({ start: head.length, end: this.#headBytes });
    writeAt(fd, Buffer.concat([head, left], this.#headBytes), 0);
  }

  #needsCluster(block: WrittenBlock): boolean {
    if (this.#cluster === undefined) return true;
    const { timestampScale } = this.#options;
    const age = block.ticks - this.#cluster.ticks;
    if (age > 0x7fff || age < -0x8000 || this.#cluster.bytes >= maxClusterBytes) return true;
    return age * timestampScale >= clusterNs || this.#isDue(block);
  }

  /** Whether it is to be in the index. */
  #isDue({ track, isKey, ticks }: WrittenBlock): boolean {
    const { mainTrack, timestampScale } = this.#options;
    return isKey && track === mainTrack && (ticks - this.#listedTicks) * timestampScale >= indexNs;
  }

  #startCluster(block: WrittenBlock): void {
    this.flush();
    const start = Math.max(0, block.ticks);
    if (block.ticks < -0x8000) throw damagedMatroskaError("a block is long before the first ones");
    this.#cluster = { ticks: start, bytes: 0, parts: [] };
    if (this.#cues.length > 0 && !this.#isDue(block)) return;
    this.#listedTicks = start;
    const position = element(ids.cueClusterPosition, unsigned(this.#position - this.#start));
    const track = element(ids.cueTrack, unsigned(this.#options.mainTrack));
    const positions = element(ids.cueTrackPositions, track, position);
    this.#cues.push(element(ids.cuePoint, element(ids.cueTime, unsigned(start)), positions));
  }

  /** Writes the cluster that has been begun. */
  flush(): void {
    if (this.#cluster === undefined) return;
    const { ticks, parts } = this.#cluster;
    const start = this.#position;
    this.#append(element(ids.cluster, element(ids.timestamp, unsigned(ticks)), ...parts));
    this.#cluster = undefined;
    this.#options.onCluster?.({ start, end: this.#position }, this);
  }

  #append(bytes: Uint8Array): void {
    writeAt(this.#options.fd, bytes, this.#position);
    this.#position += bytes.length;
  }

  /** Returns what comes before the clusters; `targets` are elements after them. */
  #head(title: string | null, others: readonly Uint8Array[], targets: readonly SeekTarget[]): Uint8Array {
    const { docType, entries } = this.#options;
    const parts = [this.#info(this.#endTicks, title), element(ids.tracks, ...entries), ...others];
    return Buffer.concat([
      fileHeader(docType),
      segmentHeader(Math.max(0, this.#position - this.#start)),
      seekHead(parts, targets),
      ...parts,
    ]);
  }

  /** @param lastsTicks Of the media; `null`: unknown. */
  #info(lastsTicks: number | null, title: string | null): Uint8Array {
    const duration = Buffer.alloc(8);
    duration.writeDoubleBE(lastsTicks ?? 0);
    return element(
      ids.info,
      element(ids.timestampScale, unsigned(this.#options.timestampScale)),
      ...(lastsTicks === null ? [] : [element(ids.duration, duration)]),
      ...(title === null ? [] : [element(ids.title, text(title))]),
      element(ids.muxingApp, appName),
      element(ids.writingApp, appName),
    );
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

/** Returns the head of a Segment that has this many bytes. */
export function segmentHeader(bytes: number): Uint8Array {
  return Buffer.concat([unsigned(ids.segment), longSize(bytes)]);
}

interface SeekTarget {
  id: number;
  /** From the start of the Segment's content. */
  position: number;
}

/** Stands for the cues while their position is unknown: every position takes as many bytes. */
const someCues: SeekTarget = { id: ids.cues, position: 0 };

/** Returns a SeekHead to the elements that follow it, and to further ones; always as long for as many of them. */
function seekHead(parts: readonly Uint8Array[], further: readonly SeekTarget[]): Uint8Array {
  const entryBytes = seek(someCues).length;
  let position = element(ids.seekHead, new Uint8Array(entryBytes * (parts.length + further.length))).length;
  const targets = parts.map((part) => {
    const target = { id: idOf(part), position };
    position += part.length;
    return target;
  });
  return element(ids.seekHead, ...[...targets, ...further].map(seek));
}

function seek({ id, position }: SeekTarget): Uint8Array {
  return element(ids.seek, element(ids.seekId, unsigned(id)), element(ids.seekPosition, u64(position)));
}

/** All elements that are sought have ids of four bytes. */
function idOf(part: Uint8Array): number {
  return Buffer.from(part.buffer, part.byteOffset, 4).readUInt32BE();
}
