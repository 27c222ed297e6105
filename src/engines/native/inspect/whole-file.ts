import { statSync } from "node:fs";
import { ids, readElement } from "../../../remux/matroska/elements.ts";
import { isCompleteMp4, lacksIndexedSegments, listsItsFragments } from "../../../remux/mp4/read/file-boxes.ts";
import { numbersIn } from "../../../remux/mp4/read/number-source.ts";
import { startsAsMatroska, startsAsMp4 } from "../../../remux/file-header.ts";
import { openFile, readAt, readFileStart } from "../../../remux/open-file.ts";
import { readPcmContainer } from "./pcm-containers.ts";
import { isWholeAsf, isWholeAvi } from "./video-ends.ts";
import { isWholeBareAudio, isWholeFlac, isWholeMp3, isWholeOgg } from "./audio-ends.ts";

const headBytes = 64;

/**
 * Whether a file has all bytes that its container states. Containers that state no length (MP3, AAC, Ogg,
 * TS …) count as complete.
 */
export function isCompleteFile(path: string): boolean {
  const head = readFileStart(path, Buffer.alloc(headBytes));
  if (startsAsMp4(head)) return isCompleteMp4(path);
  return isCompleteEbml(head, statSync(path).size) ?? true;
}

/**
 * Whether a file ends where its container says that it ends; `null`: it does not say so. Audio frames without a
 * container show only whether the last one is cut off. Reads the start and the end of the file.
 * @throws the file system's own errors.
 */
export function isWholeFile(path: string): boolean | null {
  using file = openFile(path);
  const head = readAt(file, 0, headBytes);
  if (startsAsMp4(head)) return isWholeMp4(path);
  if (startsAsMatroska(head)) return isCompleteEbml(head, file.size);
  if (head.toString("latin1", 0, 4) === "OggS") return isWholeOgg(file);
  const pcm = readPcmContainer(file);
  if (pcm !== undefined) return pcm.isWhole;
  return isWholeAvi(file) ?? isWholeAsf(file) ?? isWholeFlac(file) ?? isWholeMp3(file) ?? isWholeBareAudio(file);
}

/** Fragments say only how long each of them is: where they end is known from an index alone. */
function isWholeMp4(path: string): boolean | null {
  if (!isCompleteMp4(path) || lacksIndexedSegments(path)) return false;
  return listsItsFragments(path) ? true : null;
}

/** Whether the container of a file marks its end (RFC 3533 §6: the last page): without the mark it may be a part of one. */
export function mustMarkEnd(path: string): boolean {
  return readFileStart(path, Buffer.alloc(4)).toString("latin1") === "OggS";
}

/** Matroska and WebM (RFC 8794 §6): one Segment after the EBML header. `null` if its size is unknown, or it is another file. */
function isCompleteEbml(head: Buffer, size: number): boolean | null {
  if (!startsAsMatroska(head)) return null;
  const source = numbersIn(head);
  const header = readElement(source, 0, head.length);
  if (header === undefined) return false;
  if (header.end + 4 > head.length || source.u32(header.end) !== ids.segment) return null;
  const segment = readElement(source, header.end, head.length);
  if (segment === undefined) return false;
  return segment.end === Infinity ? null : segment.end <= size;
}
