import type { TrackKind } from "../../../remux/samples.ts";
import type { FileWindow } from "../../../remux/open-file.ts";
import { readAviCodecs, unreadKind } from "../inspect/unread-kind.ts";
import { countChunkBreaks, type FrameSpan } from "./chunk-breaks.ts";

const headerBytes = 12;
/** Lists whose chunks are read one by one: the media, which files of over 1 GiB have in several parts, and groups of frames. */
const containers = /^(?:RIFF|LIST.{4}(?:movi|rec ))/s;
/** Ids of chunks: the data of a stream, its index, or what may be between them. */
const usual = /^(?:\d\d(?:d[bc]|wb|tx|pc)|ix\d\d|idx1|JUNK|LIST|RIFF)$/;

/**
 * Counts the places of an AVI file at which there are bytes between chunks that are not chunks, or a chunk is cut off (Microsoft, "AVI RIFF
 * File Reference"), as `countChunkBreaks` does; 0 for another file.
 */
export function countAviBreaks(file: FileWindow): number {
  if (unreadKind(file.at(0)) !== "avi") return 0;
  return countChunkBreaks(file, headerBytes, {
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

/** Yields the frames of an AVI file that are compressed, up to where it is damaged; none of another file. */
export function* readAviFrames(file: FileWindow): Generator<FrameSpan> {
  if (unreadKind(file.at(0)) !== "avi") return;
  const kinds = readAviCodecs(file.at(0)).map(kindOf).toArray();
  let at = headerBytes;
  for (;;) {
    const chunk = readChunk(file, at);
    if (chunk === undefined || chunk.end > file.size) return;
    const [, stream] = /^(\d\d)(?:d[bc]|wb)/.exec(nameAt(file, at)) ?? [];
    const kind = stream === undefined ? null : (kinds[Number(stream)] ?? null);
    if (kind !== null) yield { kind, start: at + 8, end: chunk.end };
    at = chunk.next;
  }
}

const videoCodecs = /^(?:xvid|div[x34]|dx50|fmp4|mp4v|mp4[23]|[hx]264|avc1|wmv[123])$/i;
/** Of MPEG audio, AAC and Windows Media; frames of AC-3 may be filled with zeros. */
const audioCodecs: ReadonlySet<number> = new Set([0x50, 0x55, 0xff, 0x160, 0x161]);

/** Returns what a stream has; `null`: it need not be compressed. */
function kindOf(codec: string | number | null): TrackKind | null {
  if (typeof codec === "string") return videoCodecs.test(codec) ? "video" : null;
  return audioCodecs.has(codec ?? 0) ? "audio" : null;
}
