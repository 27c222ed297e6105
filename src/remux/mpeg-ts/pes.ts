import { ServiceError } from "../../model/errors.ts";
import type { ElementaryStream } from "../elementary-streams/stream.ts";
import { type PesTime, readTimestamp } from "../elementary-streams/timestamps.ts";

interface PesReaderOptions {
  stream: ElementaryStream;
  /** Called before a PES packet is appended to `stream`. */
  onStart(): void;
  /** Called then with its time, if it has one. */
  onTime(time: PesTime): void;
  /**
   * Called when a packet was removed because its end is missing, or left out because its header is damaged, it is
   * scrambled, or what is read begins within it.
   */
  onCut(): void;
}

/** Fewer scrambled packets in a row are taken for damaged ones. */
const maxScrambled = 8;

/** Assembles the PES packets of one PID into an elementary stream (ISO/IEC 13818-1 §2.4.3.6). */
export class PesReader {
  readonly #options: PesReaderOptions;
  readonly #header = new PesHeader();
  #state: "closed" | "header" | "payload" = "closed";
  /** Bytes left of the payload; Infinity if its length is unknown. */
  #remaining = 0;
  /** A payload was read since the last end, or what is missing since then is reported. */
  #hasStarted = false;
  /** Scrambled packets in a row. */
  #scrambled = 0;

  constructor(options: PesReaderOptions) {
    this.#options = options;
  }

  /**
   * Reads the payload of a transport packet; `isStart`: a PES packet starts with it.
   * @throws ServiceError `drm_protected` if 8 PES packets in a row are scrambled.
   */
  read(bytes: Buffer, from: number, to: number, isStart: boolean): void {
    if (isStart) {
      this.#endPacket();
      this.#options.onStart();
      this.#state = "header";
      this.#header.clear();
    }
    if (!isStart && !this.#hasStarted) this.#options.onCut();
    this.#hasStarted = true;
    if (this.#state === "closed") return;
    let start = from;
    if (this.#state === "header") {
      start = this.#header.append(bytes, from, to);
      if (this.#header.isComplete) this.#startPayload();
    }
    const length = Math.min(to - start, this.#remaining);
    if (this.#state !== "payload" || length <= 0) return;
    this.#options.stream.append(bytes, start, start + length);
    this.#remaining -= length;
  }

  /** Removes the open PES packet from the stream and ignores the rest of it; the caller reports that. */
  drop(): void {
    if (this.#state === "payload" && this.#remaining > 0) this.#options.stream.rewind();
    this.#state = "closed";
    this.#hasStarted = true;
  }

  /** Ends the open PES packet; what is read after it belongs to others. */
  finish(): void {
    this.#hasStarted = this.#endPacket();
  }

  /** Removes the open PES packet from the stream if it is shorter than its length; returns whether it was. */
  #endPacket(): boolean {
    const isCut = this.#state === "payload" && this.#remaining > 0 && Number.isFinite(this.#remaining);
    if (isCut) {
      this.#options.stream.rewind();
      this.#options.onCut();
    }
    this.#state = "closed";
    return isCut;
  }

  #startPayload(): void {
    const header = this.#header;
    const { stream, onTime, onCut } = this.#options;
    this.#state = "closed";
    if (header.isPlain) return;
    this.#scrambled = header.isScrambled ? this.#scrambled + 1 : 0;
    if (this.#scrambled >= maxScrambled) {
      const message = `${this.#scrambled} PES packets in a row are scrambled`;
      throw new ServiceError("drm_protected", message);
    }
    if (!header.isValid || header.isScrambled) {
      onCut();
      return;
    }
    this.#state = "payload";
    this.#remaining = header.payloadLength;
    const time = header.readTime();
    if (time) onTime(time);
    stream.begin(time);
  }
}

const fixedLength = 9;
const longestHeader = fixedLength + 255;
/** Ids of streams whose packets have no optional header (table 2-21). */
const plainIds = new Set([0xbc, 0xbe, 0xbf, 0xf0, 0xf1, 0xf2, 0xf8, 0xff]);

/** Where the times of a PES header end at most. */
export const longestTimeEnd = 19;

/** Returns PTS and DTS of a PES header that has an optional header; `null` if that has neither. */
export function readPesTime(header: Uint8Array): PesTime | null {
  const flags = (header[7] ?? 0) >> 6;
  const length = header[8] ?? 0;
  if (flags < 2 || length < 5) return null;
  const pts = readTimestamp(header, 9);
  return { pts, dts: flags === 3 && length >= 10 ? readTimestamp(header, 14) : pts };
}

/** The header of a PES packet, which may continue in further transport packets. */
class PesHeader {
  readonly #bytes = Buffer.alloc(longestHeader);
  /** How many bytes have been appended. */
  #appended = 0;

  clear(): void {
    this.#appended = 0;
  }

  /** Returns where the payload starts, if the header ends before `to`. */
  append(bytes: Uint8Array, from: number, to: number): number {
    const before = this.#appended;
    const added = Math.min(to - from, longestHeader - before);
    this.#bytes.set(bytes.subarray(from, from + added), before);
    this.#appended += added;
    return from + this.#length - before;
  }

  get isComplete(): boolean {
    return this.#appended >= fixedLength && this.#appended >= this.#length;
  }

  get isPlain(): boolean {
    return plainIds.has(this.#bytes[3] ?? 0);
  }

  get isValid(): boolean {
    return this.#bytes.readUIntBE(0, 3) === 1 && (this.#bytes[6] ?? 0) >> 6 === 2;
  }

  get isScrambled(): boolean {
    return this.isValid && ((this.#bytes[6] ?? 0) & 0x30) !== 0;
  }

  /** Infinity if it is unknown. */
  get payloadLength(): number {
    const packetLength = this.#bytes.readUInt16BE(4);
    return packetLength === 0 ? Infinity : Math.max(0, packetLength + 6 - this.#length);
  }

  readTime(): PesTime | null {
    return readPesTime(this.#bytes);
  }

  get #length(): number {
    return fixedLength + (this.#bytes[8] ?? 0);
  }
}
