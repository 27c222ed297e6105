import { readAt, type ReadFile } from "../../../remux/open-file.ts";
import { sniffMedium } from "../../../parsers/media-type.ts";
import type { MediaInfo } from "../../engine.ts";
import { type FileExt, fileType } from "../../../parsers/media-type.ts";

/** What a container for plain audio says of itself. */
export interface PcmContainer {
  info: MediaInfo;
  /** Whether the file has all bytes that it states; `null`: it states no length. */
  isWhole: boolean | null;
  /** Why it cannot be played; absent: it can be. */
  damage?: string;
}

const maxChunks = 10_000;

/** Reads the headers of a WAVE, AIFF, AIFF-C, AU, CAF or Wave64 file, whatever its codec is; undefined for any other file. */
export function readPcmContainer(file: ReadFile): PcmContainer | undefined {
  const type = sniffMedium(readAt(file, 0, 40));
  const read = type && readers[type.ext];
  if (type === undefined || read === undefined) return undefined;
  const bytesAt = (position: number) => Buffer.concat([readAt(file, position, 64)], 64);
  const { seconds, end, ...damage } = read(bytesAt, file.size);
  const duration = Number.isFinite(seconds) && seconds > 0 ? seconds : null;
  const info = { ...fileType(type.ext), duration, width: null, height: null };
  return { info, isWhole: end === null ? null : file.size >= end, ...damage };
}

/** Returns 64 bytes from a position on; those after the end of the file are 0. */
type BytesAt = (position: number) => Buffer;

/** How long the audio is, seconds; NaN: unknown. Where the file ends; `null`: it does not say so. */
interface Extent extends Pick<PcmContainer, "damage"> {
  seconds: number;
  end: number | null;
}

const readers: Partial<Record<FileExt, (bytesAt: BytesAt, size: number) => Extent>> = {
  wav: readWave,
  aiff: readAiff,
  au: readAu,
  caf: readCaf,
  w64: readWave64,
};

const unknownWaveSize = 0xffffffff;
/** What programs write that cannot go back to the header: about 2 or 4 GiB. */
const isPlaceholder = (size: number): boolean =>
  size === 0 || (size >= 0x7fff_f000 && size <= 0x8000_0000) || size >= 0xffff_f000;
const pcmTags: ReadonlySet<number> = new Set([1, 3, 0xfffe]);

/** WAVE (RIFF, or RF64 of EBU Tech 3306): chunks in little-endian order, padded to even lengths. */
function readWave(bytesAt: BytesAt, size: number): Extent {
  let format: { tag: number; rate: number; bytesPerS: number } | undefined;
  let samples = 0;
  let wideSize: number | undefined;
  let end: number | null | undefined;
  for (let at = 12, count = 0; at + 8 <= size && count < maxChunks; count++) {
    const chunk = bytesAt(at);
    const id = chunk.toString("latin1", 0, 4);
    const listed = chunk.readUInt32LE(4);
    if (id === "ds64" && at + 24 <= size) wideSize = Number(chunk.readBigUInt64LE(16));
    if (id === "fact") samples = chunk.readUInt32LE(8);
    if (id === "fmt ") {
      const [tag, rate] = [chunk.readUInt16LE(8), chunk.readUInt32LE(12)];
      format = { tag, rate, bytesPerS: chunk.readUInt32LE(16) };
    }
    if (id === "data") {
      const length = listed === unknownWaveSize ? (wideSize ?? listed) : listed;
      const isStated = length !== listed || !isPlaceholder(listed);
      if (end === undefined) end = isStated ? at + 8 + length : null;
      if (format !== undefined) {
        const bytes = Math.min(length === 0 ? Infinity : length, size - at - 8);
        const { tag, rate, bytesPerS } = format;
        const isCounted = !pcmTags.has(tag) && samples > 0 && rate > 0;
        return { seconds: isCounted ? samples / rate : bytes / bytesPerS, end };
      }
    }
    at += 8 + listed + (listed % 2);
  }
  const damage = "the WAVE file has no format or no data";
  return { seconds: Number.NaN, end: end === undefined ? Infinity : end, damage };
}

/** Audio Interchange File Format, version 1.3, and AIFF-C: chunks in big-endian order, padded to even lengths. */
function readAiff(bytesAt: BytesAt, size: number): Extent {
  const end = 8 + bytesAt(0).readUInt32BE(4);
  for (let at = 12, count = 0; at < size && count < maxChunks; count++) {
    const chunk = bytesAt(at);
    const length = chunk.readUInt32BE(4);
    if (chunk.toString("latin1", 0, 4) === "COMM") {
      return { seconds: chunk.readUInt32BE(10) / extendedFloat(chunk, 16), end };
    }
    at += 8 + length + (length % 2);
  }
  return { seconds: Number.NaN, end };
}

/** Reads a positive number of 80 bits (IEEE 754 double extended). */
function extendedFloat(bytes: Buffer, at: number): number {
  const exponent = bytes.readUInt16BE(at) & 0x7fff;
  return Number(bytes.readBigUInt64BE(at + 2)) * 2 ** (exponent - 16_383 - 63);
}

const unknownAuSize = 0xffffffff;
/** Bytes of a sample by encoding (Sun's audio(4) header); others have no fixed size. */
const auSampleBytes: Readonly<Record<number, number>> = { 1: 1, 2: 1, 3: 2, 4: 3, 5: 4, 6: 4, 7: 8, 27: 1 };

function readAu(bytesAt: BytesAt, size: number): Extent {
  const head = bytesAt(0);
  const [start = 0, length = 0, encoding = 0, rate = 0, channels = 0] = [4, 8, 12, 16, 20].map((at) =>
    head.readUInt32BE(at),
  );
  const end = length === unknownAuSize ? null : start + length;
  const bytes = Math.min(end ?? size, size) - start;
  return { seconds: bytes / ((auSampleBytes[encoding] ?? 0) * channels * rate), end };
}

/**
 * Apple Core Audio Format 1.0: chunks in big-endian order with sizes of 64 bits; that of the data may be −1 if they are
 * the last. Packets of different sizes need a table, which may come after the data.
 */
function readCaf(bytesAt: BytesAt, size: number): Extent {
  let [rate, packetBytes, packetFrames, frames, dataBytes] = [0, 0, 0, 0, 0];
  let isOpen = false;
  let at = 8;
  for (let count = 0; at < size && !isOpen && count < maxChunks; count++) {
    const chunk = bytesAt(at);
    const id = chunk.toString("latin1", 0, 4);
    const length = Number(chunk.readBigInt64BE(4));
    isOpen = length < 0;
    if (id === "desc") {
      rate = chunk.readDoubleBE(12);
      packetBytes = chunk.readUInt32BE(28);
      packetFrames = chunk.readUInt32BE(32);
    }
    if (id === "pakt") frames = Number(chunk.readBigInt64BE(20));
    // The data begin with a count of edits.
    if (id === "data") dataBytes = (isOpen ? size - at - 12 : length) - 4;
    at += 12 + length;
  }
  const isListed = packetBytes > 0 || frames > 0;
  const seconds = (frames || (dataBytes / packetBytes) * packetFrames) / rate;
  return { seconds, end: isOpen ? null : dataBytes > 0 && isListed ? at : Infinity };
}

/** Sony's Wave64: a RIFF whose ids have 16 bytes, and whose sizes have 64 bits and count the id and themselves. */
function readWave64(bytesAt: BytesAt, size: number): Extent {
  const end = Number(bytesAt(0).readBigUInt64LE(16));
  let bytesPerS = Number.NaN;
  for (let at = 40, count = 0; at < size && count < maxChunks; count++) {
    const chunk = bytesAt(at);
    const id = chunk.toString("latin1", 0, 4);
    const length = Number(chunk.readBigUInt64LE(16));
    if (id === "fmt ") bytesPerS = chunk.readUInt32LE(32);
    if (id === "data") return { seconds: (length - 24) / bytesPerS, end };
    if (length < 24) break;
    at += Math.ceil(length / 8) * 8;
  }
  return { seconds: Number.NaN, end };
}
