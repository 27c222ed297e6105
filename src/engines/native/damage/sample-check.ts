import type { ByteSpan, TrackKind } from "../../../remux/samples.ts";
import type { SamplePlaces } from "../../../remux/mp4/read/sample-tables.ts";
import { isZeroBlock, maxObuHeaderBytes, readObuHeader, zeroBlockBytes } from "./holes.ts";

/** Counts items that are right, those that are damaged, and the places at which damaged ones follow each other. */
export class Tally {
  right = 0;
  damaged = 0;
  places = 0;
  #isInDamage = false;

  count(isRight: boolean): void {
    if (isRight) this.right += 1;
    else this.damaged += 1;
    if (!isRight && !this.#isInDamage) this.places += 1;
    this.#isInDamage = !isRight;
  }
}

/** Samples of a codec that compresses. */
export interface CodedSamples extends Omit<SamplePlaces, "entry"> {
  track: CheckedTrack;
  /** How many bytes the lengths of their NAL units have; 0: they have none. */
  lengthBytes: number;
  isAv1: boolean;
}

/** How many samples of a track are right and damaged. */
export class CheckedTrack extends Tally {
  readonly kind: TrackKind;
  /** Its samples can mean nothing else: no player could show what is not right. */
  readonly isCertain: boolean;
  /** Some sample begins with a start code (ISO/IEC 14496-10 Annex B): its writer has put no lengths before its NAL units. */
  hasStartCodes = false;

  constructor(kind: TrackKind, isCertain: boolean) {
    super();
    this.kind = kind;
    this.isCertain = isCertain;
  }
}

export interface CheckedSamples {
  tracks: readonly CheckedTrack[];
  /** Each in the order of the file. */
  streams: readonly Iterable<CodedSamples>[];
}

/** After this many right samples, one that is not right is damaged, not misunderstood. */
const understoodSamples = 8;

/**
 * Returns the number of damaged places of a track; 0 if hardly any of its samples are right: then its writer means something else, unless
 * that is certain.
 */
export function damagedPlaces({ right, damaged, places, isCertain, hasStartCodes }: CheckedTrack): number {
  const isUnderstood = right >= Math.min(understoodSamples, damaged) || (isCertain && !hasStartCodes);
  return isUnderstood ? places : 0;
}

/** No sample of these codecs begins with this many zeros. */
const leastZeros = 16;
/** What is kept of the bytes before. */
const tailBytes = 16;

/**
 * Looks at the samples of a stream, in the order of the file, while the file is read from its start to its end. A sample is damaged if
 * its NAL units do not follow each other to its end (ISO/IEC 14496-15 §4.3.3) or begin with a bit that is forbidden (ISO/IEC 14496-10
 * §7.4.1), or if it has zeros that no encoder writes: then a part of the file was never written, or fetched. Other damage within a unit is not found. A
 * sample that is before the one in front of it is not looked at. It takes the samples as it needs them; their number costs no memory.
 */
export class SampleCheck {
  readonly #batches: Iterator<CodedSamples>;
  #batch: CodedSamples | undefined;
  #index = -1;
  /** Of the sample that is read: where it begins and ends. */
  #offset = 0;
  #endsAt = 0;
  /** Where its next NAL unit is. */
  #unitAt = 0;
  /** Where its next unit of AV1 is, and what of it is padding. */
  #obuAt = 0;
  #padding: ByteSpan[] = [];
  /** Where to look for zeros in it. */
  #holeAt = 0;
  #hasHole = false;
  #isDamaged = false;
  /** It has nothing but zeros up to here. */
  #zerosTo = 0;
  /** The bytes that were read last, and where they begin and end in the file. */
  #bytes: Buffer = Buffer.alloc(0);
  #start = 0;
  #end = 0;
  readonly #tail = Buffer.alloc(tailBytes, 0xff);

  constructor(samples: Iterable<CodedSamples>) {
    this.#batches = samples[Symbol.iterator]();
    this.#batch = this.#nextBatch();
    this.#next();
  }

  /** Gets the next bytes of the file; it is done with them when it returns. */
  take(bytes: Buffer): void {
    this.#bytes = bytes;
    this.#start = this.#end;
    this.#end += bytes.length;
    while (this.#batch !== undefined && this.#offset < this.#end && this.#read(this.#batch)) this.#next();
    const kept = bytes.subarray(-tailBytes);
    this.#tail.copyWithin(0, kept.length);
    kept.copy(this.#tail, tailBytes - kept.length);
  }

  #nextBatch(): CodedSamples | undefined {
    const next = this.#batches.next();
    return next.done === true ? undefined : next.value;
  }

  #next(): void {
    let batch = this.#batch;
    let offset = 0;
    let size = 0;
    while (batch !== undefined && (size === 0 || offset < this.#start)) {
      this.#index += 1;
      if (this.#index === batch.count) {
        batch = this.#nextBatch();
        this.#index = -1;
        continue;
      }
      offset = batch.offsets[this.#index]!;
      size = batch.sizes[this.#index]!;
    }
    this.#batch = batch;
    this.#offset = offset;
    this.#endsAt = offset + size;
    this.#unitAt = offset;
    this.#obuAt = offset;
    this.#padding = [];
    this.#zerosTo = offset;
    this.#holeAt = Math.ceil(offset / zeroBlockBytes) * zeroBlockBytes;
    this.#hasHole = false;
    this.#isDamaged = false;
  }

  /** Returns whether all of the sample was there. */
  #read({ lengthBytes, isAv1, track }: CodedSamples): boolean {
    const end = this.#endsAt;
    const known = Math.min(end, this.#end);
    if (lengthBytes > 0 && this.#readUnits(lengthBytes, known - lengthBytes)) track.hasStartCodes = true;
    if (isAv1) this.#readObus(known);
    const zerosEnd = Math.min(known, this.#offset + leastZeros);
    while (this.#zerosTo < zerosEnd && this.#at(this.#zerosTo) === 0) this.#zerosTo += 1;
    if (this.#holeAt + zeroBlockBytes <= known) this.#findHoles(known);
    if (end > this.#end) return false;
    // Zeros at the end of a sample are stuffing.
    const hasHole = this.#zerosTo === this.#offset + leastZeros || (this.#hasHole && this.#at(end - 1) !== 0);
    track.count(!this.#isDamaged && this.#unitAt <= end && !hasHole);
    return true;
  }

  /**
   * Reads the units whose length, and one byte after that, are before `last` + `lengthBytes`. Returns whether the first one has a length of 1,
   * as a start code would be read.
   */
  #readUnits(lengthBytes: number, last: number): boolean {
    let isStartCode = false;
    const bytes = this.#bytes;
    const start = this.#start;
    let at = this.#unitAt;
    while (at < last && !this.#isDamaged) {
      const from = at - start;
      const isWithin = from >= 0;
      let length = 0;
      for (let i = 0; i < lengthBytes; i++) length = length * 256 + (isWithin ? bytes[from + i]! : this.#at(at + i));
      const first = isWithin ? bytes[from + lengthBytes]! : this.#at(at + lengthBytes);
      isStartCode ||= length === 1 && at === this.#offset;
      if (length === 0 ? at === this.#offset : first >= 0x80) this.#isDamaged = true;
      at += lengthBytes + length;
    }
    this.#unitAt = at;
    return isStartCode;
  }

  /** Notes the padding of which the header is before `known`. */
  #readObus(known: number): void {
    const end = this.#endsAt;
    while (this.#obuAt < end && Math.min(this.#obuAt + maxObuHeaderBytes, end) <= known) {
      const start = this.#obuAt;
      const { isPadding, bytes } = readObuHeader((at) => this.#at(start + at));
      this.#obuAt = Math.min(start + bytes, end);
      if (isPadding && bytes > zeroBlockBytes) this.#padding.push({ start, end: this.#obuAt });
    }
  }

  #findHoles(known: number): void {
    let at = this.#holeAt;
    this.#padding = this.#padding.filter(({ end }) => end > at);
    const isPadding = () => this.#padding.some(({ start, end }) => start < at && at < end);
    for (; at + zeroBlockBytes <= known; at += zeroBlockBytes) {
      this.#hasHole ||= at >= this.#start && isZeroBlock(this.#bytes, at - this.#start) && !isPadding();
    }
    this.#holeAt = at;
  }

  #at(position: number): number {
    const at = position - this.#start;
    return (at >= 0 ? this.#bytes[at] : this.#tail[tailBytes + at]) ?? 0xff;
  }
}
