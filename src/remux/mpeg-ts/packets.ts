import { ServiceError } from "../../errors.ts";

/** Finds the packets of a transport stream in pieces of any length (ISO/IEC 13818-1 §2.4.3.2). */
export interface PacketReader {
  /** @throws ServiceError `upstream_invalid` where a piece or 1 MiB hold no packet at all. */
  read(piece: Uint8Array): void;
  /** What follows does not go on from what was read. */
  reset(): void;
}

export const packetLength = 188;
const sync = 0x47;
/** Plain packets; with a time stamp in front (BDAV); with parity behind (DVB). */
const strides = [packetLength, 192, 204] as const;
const longestStride = 204;
const maxGarbage = 1024 * 1024;
/** A shorter piece may well lie between two packets. */
const minPiece = 1024;

/** `onPacket` gets the place of the sync byte in `bytes`, where 188 bytes lie. */
export function createPacketReader(
  onPacket: (bytes: Uint8Array, at: number) => void,
): PacketReader {
  /** Distance of the packets; 0: not known. */
  let stride = 0;
  let rest: Uint8Array = new Uint8Array();
  /** Bytes behind the last packet that are still to come. */
  let behind = 0;
  /** Bytes since the last packet that belong to none. */
  let garbage = 0;

  /** Gives the packets that are whole; where the next one begins. */
  const walk = (bytes: Uint8Array): number => {
    let at = 0;
    while (at < bytes.length) {
      if (stride === 0 || bytes[at] !== sync) {
        const found = findPackets(bytes, at);
        garbage += found.at - at;
        if (garbage > maxGarbage) throw noPackets(garbage);
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
  const isCutOff = (piece: Uint8Array): boolean =>
    stride > 0 && piece[0] === sync && (piece[stride - rest.length] ?? sync) !== sync;

  return {
    read(piece) {
      const skipped = Math.min(behind, piece.length);
      behind -= skipped;
      if (rest.length > 0 && isCutOff(piece)) rest = new Uint8Array();
      const bytes =
        rest.length > 0 ? Buffer.concat([rest, piece.subarray(skipped)]) : piece.subarray(skipped);
      const at = walk(bytes);
      behind += Math.max(0, at - bytes.length);
      rest = Uint8Array.from(bytes.subarray(at));
      if (garbage >= minPiece && garbage + rest.length >= bytes.length) throw noPackets(garbage);
    },
    reset() {
      stride = 0;
      rest = new Uint8Array();
      behind = 0;
      garbage = 0;
    },
  };
}

/**
 * The first place from `from` on where packets follow each other, and their distance; 0 where the end
 * of `bytes` leaves it open.
 */
export function findPackets(bytes: Uint8Array, from: number): { at: number; stride: number } {
  let at = bytes.indexOf(sync, from);
  while (at >= 0 && at + longestStride < bytes.length) {
    const place = at;
    const stride = strides.find((distance) => arePacketsAt(bytes, place, distance));
    if (stride !== undefined) return { at, stride };
    at = bytes.indexOf(sync, at + 1);
  }
  if (at < 0) return { at: bytes.length, stride: 0 };
  return { at, stride: bytes[at + packetLength] === sync ? packetLength : 0 };
}

/** One more packet follows `at` for certain, and three more as far as `bytes` reach. */
function arePacketsAt(bytes: Uint8Array, at: number, stride: number): boolean {
  if (bytes[at + stride] !== sync) return false;
  return [2, 3, 4].every((count) => (bytes[at + count * stride] ?? sync) === sync);
}

function noPackets(length: number): ServiceError {
  return new ServiceError(
    "upstream_invalid",
    `reading an MPEG transport stream stopped: ${length} bytes in a row hold no packet`,
  );
}
