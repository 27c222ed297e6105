import { ServiceError } from "../../model/errors.ts";
import type { ElementaryStream } from "../elementary-streams/stream.ts";
import { type PesTime, readTimestamp } from "../elementary-streams/timestamps.ts";

/** Assembles the PES packets of one PID into an elementary stream (ISO/IEC 13818-1 §2.4.3.6). */
export interface PesReader {
  /**
   * Reads the payload of a transport packet; `isStart`: a PES packet starts with it.
   * @throws ServiceError `drm_protected` if 8 PES packets in a row are scrambled.
   */
  read(bytes: Buffer, from: number, to: number, isStart: boolean): void;
  /** Removes the open PES packet from the stream and ignores the rest of it. */
  drop(): void;
  /** Ends the open PES packet; removes it from the stream if it is shorter than it stated. */
  finish(): void;
}

const fixedLength = 9;
/** Fewer scrambled packets in a row are taken for damaged ones. */
const maxScrambled = 8;
const longestHeader = fixedLength + 255;
/** Ids of streams whose packets have no optional header (table 2-21). */
const plainIds = new Set([0xbc, 0xbe, 0xbf, 0xf0, 0xf1, 0xf2, 0xf8, 0xff]);

export interface PesReaderOptions {
  stream: ElementaryStream;
  /** Called before a PES packet is appended to `stream`. */
  onStart(): void;
  /** Called then with its time, if it states one. */
  onTime(time: PesTime): void;
  /**
   * Called when a packet was removed because its end is missing, or left out because its header is damaged, it is
   * scrambled, or the stream begins within it.
   */
  onCut(): void;
}

export function createPesReader(options: PesReaderOptions): PesReader {
  const { stream, onStart, onTime, onCut } = options;
  const header = Buffer.alloc(longestHeader);
  let headerLength = 0;
  let state: "closed" | "header" | "payload" = "closed";
  /** Bytes left of the payload; Infinity if the packet does not state its length. */
  let remaining = 0;
  /** A payload was read. */
  let hasStarted = false;
  /** Scrambled packets in a row. */
  let scrambled = 0;

  const finish = (): void => {
    const isCut = state === "payload" && remaining > 0 && Number.isFinite(remaining);
    if (isCut) {
      stream.rewind();
      onCut();
    }
    state = "closed";
  };
  /** Returns where the payload starts in `bytes`; `to` if the header continues or the packet is left out. */
  const readHeader = (bytes: Uint8Array, from: number, to: number): number => {
    const added = Math.min(to - from, longestHeader - headerLength);
    header.set(bytes.subarray(from, from + added), headerLength);
    const before = headerLength;
    headerLength += added;
    if (headerLength < fixedLength) return to;
    const length = fixedLength + (header[8] ?? 0);
    if (headerLength < length) return to;
    state = "closed";
    if (plainIds.has(header[3] ?? 0)) return to;
    const packetLength = header.readUInt16BE(4);
    const isValid = header.readUIntBE(0, 3) === 1 && (header[6] ?? 0) >> 6 === 2;
    const isScrambled = isValid && ((header[6] ?? 0) & 0x30) !== 0;
    scrambled = isScrambled ? scrambled + 1 : 0;
    if (scrambled >= maxScrambled) {
      throw new ServiceError("drm_protected", `${scrambled} PES packets in a row are scrambled`);
    }
    if (!isValid || isScrambled) {
      onCut();
      return to;
    }
    state = "payload";
    remaining = packetLength === 0 ? Infinity : Math.max(0, packetLength + 6 - length);
    const time = readTime(header);
    if (time) onTime(time);
    stream.begin(time);
    return from + length - before;
  };

  return {
    read(bytes, from, to, isStart) {
      if (isStart) {
        hasStarted = true;
        finish();
        onStart();
        state = "header";
        headerLength = 0;
      }
      if (!hasStarted) onCut();
      hasStarted = true;
      if (state === "closed") return;
      const start = state === "header" ? readHeader(bytes, from, to) : from;
      const length = Math.min(to - start, remaining);
      if (state !== "payload" || length <= 0) return;
      stream.append(bytes, start, start + length);
      remaining -= length;
    },
    drop() {
      if (state === "payload" && remaining > 0) stream.rewind();
      state = "closed";
    },
    finish,
  };
}

/** Returns PTS and DTS; `null` if the header states neither. */
function readTime(header: Buffer): PesTime | null {
  const flags = (header[7] ?? 0) >> 6;
  const length = header[8] ?? 0;
  if (flags < 2 || length < 5) return null;
  const pts = readTimestamp(header, 9);
  return { pts, dts: flags === 3 && length >= 10 ? readTimestamp(header, 14) : pts };
}
