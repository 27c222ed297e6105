import { inflateSync } from "node:zlib";
import { ServiceError } from "../../../model/errors.ts";
import type { ReadFile } from "../../open-file.ts";
import { type Box, boxesIn, damagedError, firstBox, getChild, typeAt } from "../boxes.ts";
import { checkSampleTables } from "./check-tables.ts";
import { completeFileBoxes, readRange } from "./file-boxes.ts";
import { numbersIn } from "./number-source.ts";

/** Returns the index (`moov`) of an MP4 file, as `plainIndex` does. @throws ServiceError `upstream_invalid` if it has none; as `readIndexAt` */
export function readIndex(file: ReadFile): Buffer {
  const moov = completeFileBoxes(file.fd, file.size).find(({ type }) => type === "moov");
  if (moov === undefined) throw damagedError(`the file has no "moov"`);
  return readIndexAt(file, moov);
}

/** Returns the index (`moov`) at its place in an MP4 file, as `plainIndex` does. @throws ServiceError as `readRange` and `plainIndex` */
export function readIndexAt({ fd, size }: ReadFile, moov: Pick<Box, "start" | "end">): Buffer {
  return plainIndex(readRange(fd, moov), size);
}

/** An index of ten hours has less. */
const maxPlainBytes = 64 << 20;
/** Limit for a file that is shorter than this; else the file's own size is the limit, as what is made of it has the index without compression. */
const minPlainBytes = 1 << 20;

/**
 * Returns an index (`moov`) as it is without compression (`cmov`; QuickTime File Format, "Compressed Movie Resources"), with its sample
 * tables checked; any other one itself.
 *
 * @param fileBytes Size of the file, in which its samples lie.
 * @throws ServiceError `upstream_invalid` if it cannot be decompressed, or has over 64 MiB then, or over 1 MiB and more than the file, or
 *   its tables contradict the size.
 */
export function plainIndex(moov: Buffer, fileBytes: number): Buffer {
  const { body, end } = firstBox(moov);
  const [first] = boxesIn(moov, body, end);
  if (first?.type !== "cmov") return moov;
  const method = getChild(moov, first, "dcom");
  const data = getChild(moov, first, "cmvd");
  const name = method.end - method.body < 4 ? "" : typeAt(moov, method.body);
  if (name !== "zlib") throw damagedError(`its index is compressed with "${name}", and only "zlib" can be read`);
  const maxBytes = Math.min(maxPlainBytes, Math.max(minPlainBytes, fileBytes));
  const plain = inflate(moov.subarray(Math.min(data.body + 4, data.end), data.end), maxBytes);
  if (plain.length < 8 || firstBox(plain).type !== "moov") throw damagedError(`what is compressed in it is no "moov"`);
  checkSampleTables(numbersIn(plain, Math.max(fileBytes, plain.length)), plain.length);
  return plain;
}

function inflate(bytes: Uint8Array, maxBytes: number): Buffer {
  try {
    return inflateSync(bytes, { maxOutputLength: maxBytes });
  } catch (cause) {
    const rule = `its compressed index is damaged, or has over ${maxBytes} bytes`;
    throw new ServiceError("upstream_invalid", `the MP4 cannot be read: ${rule}`, { cause });
  }
}
