import { inflateSync } from "node:zlib";
import { isServiceError, ServiceError } from "../../../model/errors.ts";
import type { ReadFile } from "../../open-file.ts";
import { openFullBox } from "../box-reader.ts";
import { type Box, boxesIn, damagedError, findChild, firstBox, getChild, typeAt } from "../boxes.ts";
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

const isSelfContained = 1;

/**
 * Checks that the samples of a track are in the file that lists them, not in one that its index leads to (`dref`, §8.7.2). One that says neither that they are, nor where else, is taken for it.
 *
 * @throws ServiceError `format_unavailable`
 */
export function requireOwnMedia(bytes: Uint8Array, minf: Box, sampleEntries: readonly Uint8Array[]): void {
  const dref = findChild(bytes, minf, "dinf", "dref");
  if (dref === undefined) return;
  const references = referencesIn(bytes, dref);
  for (const entry of sampleEntries) {
    const reference = references[entry[14]! * 256 + entry[15]! - 1];
    if (reference === undefined || isBlank(bytes, reference)) continue;
    const { flags } = openFullBox(bytes, reference);
    if ((flags & isSelfContained) !== 0) continue;
    const rule = `its samples are in another file, to which its data reference ("${reference.type}") leads; only those in the same file are read`;
    throw new ServiceError("format_unavailable", `the MP4 has a track whose media are not in it: ${rule}`);
  }
}

/** Returns those that can be read: nothing else is needed of the others, so that they are no damage. */
function referencesIn(bytes: Uint8Array, dref: Box): Box[] {
  const references: Box[] = [];
  try {
    for (const reference of boxesIn(bytes, dref.body + 8, dref.end)) references.push(reference);
  } catch (error) {
    if (!isServiceError(error, "upstream_invalid")) throw error;
  }
  return references;
}

/** Whether a reference says nothing after its version and flags. */
const isBlank = (bytes: Uint8Array, { body, end }: Box): boolean =>
  bytes.subarray(body + 4, end).every((byte) => byte === 0);
