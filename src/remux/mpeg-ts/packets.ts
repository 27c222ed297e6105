import { ServiceError } from "../../model/errors.ts";
import type { TrackKind } from "../samples.ts";

export const packetLength = 188;
export const sync = 0x47;
/** Plain packets; with a timestamp before each (BDAV); with parity after each (DVB). */
export const timedStride = 192;
export const longestStride = 204;
/** Packets that follow each other over this many bytes are certain. */
export const certainBytes = 5 * longestStride;
const strides = [packetLength, timedStride, longestStride] as const;
const maxGarbage = 1024 * 1024;
/** A shorter segment may lie within the garbage between two packets. */
const minSegmentBytes = 1024;

/**
 * Creates a reader of the packets of a transport stream in segments cut anywhere (ISO/IEC 13818-1 §2.4.3.2).
 * @param onPacket Gets the offset of a sync byte in `bytes`, which starts a complete packet.
 * @param onCut Called when a packet lacks its end, or some of its bytes; default: nothing.
 */
export function createPacketReader(onPacket: (bytes: Buffer, at: number) => void, onCut: () => void = () => {}) {
  /** Bytes from one packet to the next; 0: unknown. */
  let stride = 0;
  let rest: Uint8Array = new Uint8Array();
  /** Bytes to skip before the next packet, which the last segment did not have. */
  let toSkip = 0;
  /** Bytes since the last packet that are part of none. */
  let garbage = 0;

  /** Passes the complete packets on; returns where the next one starts. */
  const walk = (bytes: Buffer): number => {
    let at = 0;
    while (at < bytes.length) {
      if (stride === 0 || bytes[at] !== sync) {
        const found = findPackets(bytes, at);
        if (stride > 0 && isShortened(bytes, at, stride, found.at)) onCut();
        garbage += found.at - at;
        if (garbage > maxGarbage) throw noPacketsError(garbage);
        ({ at, stride } = found);
        if (stride === 0) break;
      }
      if (at + packetLength > bytes.length) break;
      garbage = 0;
      onPacket(bytes, at);
      at += stride;
    }
    return at;
  };
  const dropRest = (): void => {
    if (stride > 0 && rest[0] === sync) onCut();
    rest = new Uint8Array();
  };

  return {
    /** @throws ServiceError `upstream_invalid` if a segment of 1 KiB or more, or 1 MiB in a row, has no packet. */
    read(segment: Uint8Array): void {
      if (stride > 0 && rest.length === 0 && startsOthers(segment, stride)) {
        stride = 0;
        toSkip = 0;
      }
      const skipped = Math.min(toSkip, segment.length);
      toSkip -= skipped;
      if (rest.length > 0 && isRestCutOff(segment, stride - rest.length)) dropRest();
      const { buffer, byteOffset, length } = segment;
      const unread = Buffer.from(buffer, byteOffset + skipped, length - skipped);
      const bytes = rest.length > 0 ? Buffer.concat([rest, unread]) : unread;
      const at = walk(bytes);
      toSkip += Math.max(0, at - bytes.length);
      rest = Uint8Array.from(bytes.subarray(at));
      if (garbage >= minSegmentBytes && garbage + rest.length >= bytes.length) throw noPacketsError(garbage);
    },
    /** Forgets what was read: the next segment does not continue it. */
    reset(): void {
      dropRest();
      stride = 0;
      toSkip = 0;
      garbage = 0;
    },
  };
}

/** Returns whether `segment` starts with a packet of its own, although `length` bytes of the last one are missing; negative: unknown. */
function isRestCutOff(segment: Uint8Array, length: number): boolean {
  return length >= 0 && segment[0] === sync && (segment[length] ?? sync) !== sync;
}

/** Returns whether `segment` starts with packets that certainly follow each other at another distance than `stride`. */
function startsOthers(segment: Uint8Array, stride: number): boolean {
  if (segment.length < certainBytes) return false;
  const found = findPackets(segment.subarray(0, certainBytes), 0);
  return found.at <= timedStride - packetLength && found.stride > 0 && found.stride !== stride;
}

/** Returns where the payload of the packet at `at` is if it begins like a PES packet (ISO/IEC 13818-1 §2.4.3.6); −1: it does not. */
export function pesStart(bytes: Uint8Array, at: number): number {
  const hasAdaptation = ((bytes[at + 3] ?? 0) & 0x20) !== 0;
  const body = at + 4 + (hasAdaptation ? 1 + (bytes[at + 4] ?? 0) : 0);
  return bytes[body] === 0 && bytes[body + 1] === 0 && bytes[body + 2] === 1 ? body : -1;
}

/** Returns the stream_id of the PES packet that starts in the packet at `at`; undefined: none does. */
export function streamIdAt(bytes: Uint8Array, at: number): number | undefined {
  const hasStart = ((bytes[at + 1] ?? 0) & 0x40) !== 0 && ((bytes[at + 3] ?? 0) & 0x10) !== 0;
  const start = hasStart ? pesStart(bytes, at) : -1;
  return start < 0 ? undefined : bytes[start + 3];
}

/**
 * Returns what PES packets with this stream_id have (ISO/IEC 13818-1 §2.4.3.7); `other`: private streams, which may have AC-3 or
 * subtitles, and extended identifiers; undefined: no media.
 */
export function mediaOf(streamId: number | undefined = 0): TrackKind | "other" | undefined {
  if (streamId >= 0xe0 && streamId <= 0xef) return "video";
  if (streamId >= 0xc0 && streamId <= 0xdf) return "audio";
  return streamId === 0xbd || streamId === 0xfd ? "other" : undefined;
}

/**
 * Returns the first offset, from `from` on, at which packets follow each other, and their stride; the
 * stride is 0 if `bytes` ends before that is certain.
 */
export function findPackets(bytes: Uint8Array, from: number): { at: number; stride: number } {
  let at = bytes.indexOf(sync, from);
  while (at >= 0 && at + longestStride < bytes.length) {
    const candidate = at;
    const stride = strides.find((distance) => arePacketsAt(bytes, candidate, distance));
    if (stride !== undefined) return { at, stride };
    at = bytes.indexOf(sync, at + 1);
  }
  if (at < 0) return { at: bytes.length, stride: 0 };
  return { at, stride: bytes[at + packetLength] === sync ? packetLength : 0 };
}

/**
 * Returns whether the packet that should end at `at` lacks some of its bytes: then another one begins within it, and ends where
 * the next one begins, or `bytes` end.
 */
function isShortened(bytes: Uint8Array, at: number, stride: number, next: number): boolean {
  return [next, bytes.length].some((end) => end > at && end - stride < at && bytes[end - stride] === sync);
}

/** Returns whether one more packet follows the one at `at`, and three more as far as `bytes` reaches. */
function arePacketsAt(bytes: Uint8Array, at: number, stride: number): boolean {
  if (bytes[at + stride] !== sync) return false;
  return [2, 3, 4].every((count) => (bytes[at + count * stride] ?? sync) === sync);
}

function noPacketsError(length: number): ServiceError {
  return new ServiceError(
    "upstream_invalid",
    `reading an MPEG transport stream stopped: ${length} bytes in a row hold no packet`,
  );
}
