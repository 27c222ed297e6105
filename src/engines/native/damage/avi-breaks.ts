import { createFileWindow, type FileWindow, openFile } from "../../../remux/open-file.ts";
import { countChunkBreaks } from "./chunk-breaks.ts";

const headerBytes = 12;
/** Lists whose chunks are read one by one: the media, which files of over 1 GiB have in several parts, and groups of frames. */
const containers = /^(?:RIFF|LIST.{4}(?:movi|rec ))/s;
/** The data of a stream, or its index; what else is between them. */
const usual = /^(?:\d\d(?:d[bc]|wb|tx|pc)|ix\d\d|idx1|JUNK|LIST|RIFF)$/;

/**
 * Returns at how many places of an AVI file there are bytes between chunks that are not chunks, or a chunk is cut off (Microsoft, "AVI RIFF
 * File Reference"), as `countChunkBreaks` does; 0 of another file.
 * @throws the file system's own errors.
 */
export function countAviBreaks(path: string): number {
  using file = openFile(path);
  const window = createFileWindow(file);
  if (!/^RIFF.{4}AVI /s.test(window.at(0).toString("latin1", 0, headerBytes))) return 0;
  return countChunkBreaks(window, headerBytes, {
    headerBytes,
    read: readChunk,
    isUsual: (bytes, at) => usual.test(bytes.toString("latin1", at, at + 4)),
  });
}

function readChunk(file: FileWindow, at: number): { end: number; next: number } | undefined {
  const bytes = file.at(at);
  const head = bytes.toString("latin1", 0, headerBytes);
  if (!isChunkName(head) || bytes.length < 8) return undefined;
  if (containers.test(head)) return { end: at + headerBytes, next: at + headerBytes };
  const size = bytes.readUInt32LE(4);
  const end = at + 8 + size;
  if (size % 2 === 0) return { end, next: end };
  // Some writers do not pad chunks to even lengths.
  const isPadded = end + 1 >= file.size || isChunkName(nameAt(file, end + 1)) || !isChunkName(nameAt(file, end));
  return { end, next: isPadded ? end + 1 : end };
}

const nameAt = (file: FileWindow, at: number): string => file.at(at).toString("latin1", 0, 4);

const isChunkName = (head: string): boolean => /^[\x20-\x7e]{4}/.test(head);
