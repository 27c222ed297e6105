import type { FileWindow } from "../../../remux/open-file.ts";
import { readAsfPackets } from "../inspect/whole-file.ts";
import { Tally } from "./sample-check.ts";

/** A file with this many right packets has been understood. */
const understoodPackets = 8;
/** A packet has more than its headers; also the least that a window has. */
const [minPacketBytes, maxPacketBytes] = [64, 1 << 16];

/**
 * Counts the places at which packets of an ASF (WMV) file are damaged, or do not continue those before: the objects that they have parts
 * of are numbered, and say how large they are (ASF 1.2 §5.2). 0 for another file, and for one whose packets hardly ever continue each
 * other: then their numbers mean nothing. Damage within the parts is not found.
 */
export function countAsfBreaks(file: FileWindow): number {
  const packets = readAsfPackets(file);
  if (packets === null) return 0;
  const { start, packetBytes, count } = packets;
  if (packetBytes < minPacketBytes || packetBytes > maxPacketBytes) return 0;
  let objects = new Map<number, MediaObject>();
  const tally = new Tally();
  let jumps = 0;
  const hasCorrection = isCorrection(file.at(start)[0] ?? 0);
  for (let number = 0; number < count; number++) {
    const at = start + number * packetBytes;
    // The missing end is reported elsewhere.
    if (at + packetBytes > file.size) break;
    const parts = readParts(file.at(at).subarray(0, packetBytes), hasCorrection);
    const isDamaged = parts === null;
    const isJump = !isDamaged && parts.filter((part) => !continueObject(objects, part)).length > 0;
    if (isDamaged) objects = new Map();
    if (isJump) jumps += 1;
    tally.count(!isDamaged && !isJump);
  }
  const { right, places } = tally;
  return right >= understoodPackets && jumps * understoodPackets <= right ? places : 0;
}

/** A part of a media object. */
interface Part {
  stream: number;
  object: number;
  /** After which the numbers of objects begin again. */
  lastObject: number;
  offset: number;
  end: number;
  /** Of the object; `null`: not stated. */
  size: number | null;
}

interface MediaObject {
  number: number;
  /** Its parts were there up to here. */
  end: number;
  size: number | null;
}

/** Returns whether a part continues its object, or begins the next one of its stream; notes it. */
function continueObject(objects: Map<number, MediaObject>, part: Part): boolean {
  const { stream, object, lastObject, offset, end, size } = part;
  const latest = objects.get(stream);
  objects.set(stream, { number: object, end, size });
  if (latest === undefined) return true;
  if (offset > 0) return object === latest.number && offset === latest.end;
  const isNext = object === (latest.number === lastObject ? 0 : latest.number + 1);
  return isNext && (latest.size === null || latest.end === latest.size);
}

const isCorrection = (byte: number): boolean => (byte & 0x80) !== 0;

/**
 * Returns the parts of objects in a packet (§5.2); none of several objects in one, which have no parts; `null`: it is none.
 * @param hasCorrection It begins with error correction data, not with the types of its lengths, as all of its file.
 */
function readParts(packet: Buffer, hasCorrection: boolean): Part[] | null {
  const reader = createReader(packet);
  const first = reader.number(1);
  if (isCorrection(first) !== hasCorrection) return null;
  if (hasCorrection && ((first & 0x6f) !== 2 || reader.number(2) !== 0)) return null;
  const lengthTypes = hasCorrection ? reader.number(1) : first;
  const properties = reader.number(1);
  const fields = { object: properties >> 4, offset: properties >> 2, replicated: properties };
  // One byte for the number of a stream (§5.2.2).
  if (properties >> 6 !== 1 || (lengthTypes & 0x80) !== 0) return null;
  const stated = reader.typed(lengthTypes >> 5) || packet.length;
  reader.typed(lengthTypes >> 1);
  const padding = reader.typed(lengthTypes >> 3);
  reader.skip(6);
  const end = stated - padding;
  const isMultiple = (lengthTypes & 1) !== 0;
  const flags = isMultiple ? reader.number(1) : 1;
  const parts: Part[] = [];
  for (let left = flags & 63; left > 0; left--) {
    const stream = reader.number(1) & 0x7f;
    const [object, offset] = [reader.typed(fields.object), reader.typed(fields.offset)];
    const replicated = reader.typed(fields.replicated);
    const size = replicated >= 8 ? reader.number(4) : null;
    reader.skip(replicated - (size === null ? 0 : 4));
    const length = isMultiple ? reader.typed(flags >> 6) : end - reader.at;
    reader.skip(length);
    if (length < 0 || reader.at > end || end > packet.length || stream === 0) return null;
    const lastObject = 256 ** bytesOf(fields.object) - 1;
    if (replicated !== 1) parts.push({ stream, object, lastObject, offset, end: offset + length, size });
  }
  return parts;
}

/** Types of lengths: none, or in 1, 2 or 4 bytes. */
const bytesOf = (type: number): number => [0, 1, 2, 4][type & 3]!;

/** Numbers in little-endian order; 0 after the end. */
function createReader(bytes: Buffer) {
  let at = 0;
  const number = (length: number): number => {
    const from = at;
    at += length;
    return length === 0 || at > bytes.length ? 0 : bytes.readUIntLE(from, length);
  };
  return {
    get at() {
      return at;
    },
    number,
    typed: (type: number): number => number(bytesOf(type)),
    skip(length: number) {
      at += length;
    },
  };
}
