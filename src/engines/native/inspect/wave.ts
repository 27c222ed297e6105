import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { ServiceError } from "../../../model/errors.ts";
import type { MediaInfo } from "../../engine.ts";

const maxChunks = 10_000;
const unknownSize = 0xffffffff;
const pcmTags: ReadonlySet<number> = new Set([1, 3, 0xfffe]);

/**
 * Reads the `fmt `, `fact` and `data` chunks of a WAVE file (RIFF, or RF64 of EBU Tech 3306), whatever its
 * codec is.
 * @throws ServiceError `upstream_invalid` if it has no format or no data; the file system's own errors.
 */
export function readWave(path: string): MediaInfo {
  const fd = openSync(path, "r");
  try {
    const { size } = fstatSync(fd);
    let format: { tag: number; rate: number; bytesPerS: number } | undefined;
    let samples = 0;
    let wideSize: number | undefined;
    let at = 12;
    for (let count = 0; count < maxChunks && at + 8 <= size; count++) {
      const head = readAt(fd, at, 36);
      const id = head.toString("latin1", 0, 4);
      const stated = head.readUInt32LE(4);
      if (id === "ds64") wideSize = Number(head.readBigUInt64LE(16));
      if (id === "fact") samples = head.readUInt32LE(8);
      if (id === "fmt ") {
        const [tag, rate] = [head.readUInt16LE(8), head.readUInt32LE(12)];
        format = { tag, rate, bytesPerS: head.readUInt32LE(16) };
      }
      if (id === "data" && format !== undefined) {
        const length = stated === unknownSize ? (wideSize ?? unknownSize) : stated;
        const bytes = Math.min(length === 0 ? Infinity : length, size - at - 8);
        const { tag, rate, bytesPerS } = format;
        const isCounted = !pcmTags.has(tag) && samples > 0 && rate > 0;
        const duration = isCounted ? samples / rate : bytes / bytesPerS;
        const isKnown = Number.isFinite(duration) && duration > 0;
        const kind = { ext: "wav", mime_type: "audio/wav", width: null, height: null };
        return { ...kind, duration: isKnown ? duration : null };
      }
      at += 8 + stated + (stated % 2);
    }
    throw new ServiceError("upstream_invalid", "the WAVE file has no format or no data");
  } finally {
    closeSync(fd);
  }
}

/** Returns `length` bytes; those after the end of the file are 0. */
function readAt(fd: number, position: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  readSync(fd, bytes, 0, length, position);
  return bytes;
}
