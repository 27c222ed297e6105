import { readSync } from "node:fs";
import type { MediaInfo } from "../../engine.ts";
import { ServiceError } from "../../../model/errors.ts";
import { openFile } from "../../../remux/open-file.ts";

const maxChunks = 10_000;
const unknownSize = 0xffffffff;
const pcmTags: ReadonlySet<number> = new Set([1, 3, 0xfffe]);

/**
 * Reads the `fmt `, `fact` and `data` chunks of a WAVE file (RIFF, or RF64 of EBU Tech 3306), whatever its codec is.
 * @throws ServiceError `upstream_invalid` if it has no format or no data; the file system's own errors.
 */
export function readWave(path: string): MediaInfo {
  using file = openFile(path);
  const { fd, size } = file;
  let format: { tag: number; rate: number; bytesPerS: number } | undefined;
  let samples = 0;
  let wideSize: number | undefined;
  let at = 12;
  for (let count = 0; count < maxChunks && at + 8 <= size; count++) {
    const head = readAt(fd, at, 36);
    const id = head.toString("latin1", 0, 4);
    const listed = head.readUInt32LE(4);
    if (id === "ds64") wideSize = Number(head.readBigUInt64LE(16));
    if (id === "fact") samples = head.readUInt32LE(8);
    if (id === "fmt ") {
      const [tag, rate] = [head.readUInt16LE(8), head.readUInt32LE(12)];
      format = { tag, rate, bytesPerS: head.readUInt32LE(16) };
    }
    if (id === "data" && format !== undefined) {
      const length = listed === unknownSize ? (wideSize ?? unknownSize) : listed;
      const bytes = Math.min(length === 0 ? Infinity : length, size - at - 8);
      const { tag, rate, bytesPerS } = format;
      const isCounted = !pcmTags.has(tag) && samples > 0 && rate > 0;
      return audioInfo("wav", isCounted ? samples / rate : bytes / bytesPerS);
    }
    at += 8 + listed + (listed % 2);
  }
  throw new ServiceError("upstream_invalid", "the WAVE file has no format or no data");
}

/** A page is at most 65,307 bytes long (RFC 3533 §6). */
const tailBytes = 128 << 10;

/**
 * Reads an Ogg file whose first stream is FLAC, Opus or Speex; undefined for any other. The duration is where the
 * last page of the stream ends.
 * @param head The first bytes of the file.
 * @throws the file system's own errors.
 */
export function readOgg(path: string, head: Buffer): MediaInfo | undefined {
  if (head.length < 64 || head.toString("latin1", 0, 4) !== "OggS") return undefined;
  const packet = head.subarray(27 + head.readUInt8(26));
  const rate = sampleRate(packet);
  if (rate === undefined) return undefined;
  using file = openFile(path);
  const length = Math.min(file.size, tailBytes);
  const samples = lastGranule(readAt(file.fd, file.size - length, length), head.readUInt32LE(14));
  if (!isOpus(packet)) return audioInfo("ogg", samples / rate);
  const presented = audioInfo("ogg", (samples - packet.readUInt16LE(10)) / rate);
  return { ...presented, ext: "opus" };
}

/** RFC 7845 §5.1. */
function isOpus(packet: Buffer): boolean {
  return packet.length >= 19 && packet.toString("latin1", 0, 8) === "OpusHead";
}

/** The mappings: https://xiph.org/flac/ogg_mapping.html and its forerunner, the manual of Speex §8. */
function sampleRate(packet: Buffer): number | undefined {
  if (isOpus(packet)) return 48_000;
  const start = packet.toString("latin1", 0, 8);
  const streamInfo = start.startsWith("\x7fFLAC") ? 17 : start.startsWith("fLaC") ? 8 : undefined;
  if (streamInfo !== undefined && packet.length >= streamInfo + 13) return packet.readUIntBE(streamInfo + 10, 3) >> 4;
  return start === "Speex   " && packet.length >= 40 ? packet.readUInt32LE(36) : undefined;
}

/** Returns the granule position of the last page of a stream; 0 if the end of the file has none. */
function lastGranule(bytes: Buffer, serial: number): number {
  for (let at = bytes.lastIndexOf("OggS"); at >= 0; at = bytes.lastIndexOf("OggS", at - 1)) {
    if (at + 18 <= bytes.length && bytes.readUInt32LE(at + 14) === serial) {
      const granule = bytes.readBigInt64LE(at + 6);
      if (granule >= 0n) return Number(granule);
    }
    if (at === 0) break;
  }
  return 0;
}

/** `seconds` is unknown unless it is a positive, finite number. */
function audioInfo(ext: "wav" | "ogg", seconds: number): MediaInfo {
  const duration = Number.isFinite(seconds) && seconds > 0 ? seconds : null;
  return { ext, mime_type: `audio/${ext}`, duration, width: null, height: null };
}

/** Returns `length` bytes; those after the end of the file are 0. */
export function readAt(fd: number, position: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  readSync(fd, bytes, 0, length, position);
  return bytes;
}
