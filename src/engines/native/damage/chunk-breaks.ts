import type { FileWindow } from "../../../remux/open-file.ts";
import type { ByteSpan, TrackKind } from "../../../remux/samples.ts";

/** Where a frame, or several, of a codec that compresses are. */
export interface FrameSpan extends ByteSpan {
  kind: TrackKind;
  /** Default: it is of another codec. */
  isAv1?: boolean;
}

/** What a container is a list of: tags, packets, chunks. */
interface ChunkFormat {
  /** What of a chunk says what it is and how long it is, at most. */
  headerBytes: number;
  /** Returns where the chunk at `at` ends (`Infinity`: it does not say so), and where the next one begins; undefined: there is none. */
  read(file: FileWindow, at: number): { end: number; next: number } | undefined;
  /** Whether the header at `at` of `bytes` is like those of this file, of which most chunks are. */
  isUsual(bytes: Buffer, at: number): boolean;
}

/** This many chunks in a row are not found by chance. */
const runChunks = 3;
/** Only a file that was made for that has more places that look like a first chunk and are none. */
const maxRejected = 1000;
/** Tags and padding are not longer. */
const maxRestBytes = 64 << 10;

/**
 * Counts the places from `start` on at which there are bytes between chunks that are not chunks, or a chunk is cut off.
 * Up to 64 KiB after the last chunk that do not begin like one do not count; of a file with a thousand false chunks, what
 * follows them counts as one place, and what follows a chunk that does not say where it ends as none.
 * @throws the file system's own errors.
 */
export function countChunkBreaks(file: FileWindow, start: number, format: ChunkFormat): number {
  const search = { rejected: 0 };
  let count = 0;
  for (let at = start; at < file.size;) {
    const chunk = format.read(file, at);
    if (chunk?.end === Infinity) return count;
    const next: number | undefined = chunk?.next ?? findRun(file, at + 1, format, search);
    if (next === undefined) {
      const isLost = search.rejected >= maxRejected || file.size - at > maxRestBytes;
      return isLost ? count + 1 : count;
    }
    if (chunk === undefined || chunk.end > file.size) count += 1;
    at = next;
  }
  return count;
}

/** Returns where chunks follow each other from `from` on; undefined: nowhere, or there are too many false ones. */
function findRun(
  file: FileWindow,
  from: number,
  format: ChunkFormat,
  search: { rejected: number },
): number | undefined {
  const { headerBytes } = format;
  for (let at = from; at + headerBytes <= file.size && search.rejected < maxRejected;) {
    const bytes = file.at(at);
    const last = bytes.length - headerBytes;
    let found = 0;
    while (found < last && !format.isUsual(bytes, found)) found += 1;
    at += found;
    if (isRun(file, at, format)) return at;
    search.rejected += found < last ? 1 : 0;
    at += 1;
  }
  return undefined;
}

function isRun(file: FileWindow, start: number, format: ChunkFormat): boolean {
  let at = start;
  for (let count = 0; count < runChunks; count++) {
    const chunk = format.isUsual(file.at(at), 0) ? format.read(file, at) : undefined;
    if (chunk === undefined || chunk.end > file.size) return false;
    at = chunk.next;
  }
  return true;
}
