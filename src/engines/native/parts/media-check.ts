import type { SegmentKey } from "../../../manifests/segments.ts";
import { unlessUnreadable } from "../../../model/errors.ts";
import { fileBoxes } from "../../../remux/mp4/read/file-boxes.ts";
import { packetLength, sync } from "../../../remux/mpeg-ts/packets.ts";
import { openFile, readAt, readFileStart } from "../../../remux/open-file.ts";
import { sniffBytes, sniffContainer, sniffFile } from "../../../remux/sniff.ts";

const checkedBytes = 4096;
/** Enough to tell text from media, which have bytes that no text has; those that are encrypted, too. */
const text = /^(?:\xef\xbb\xbf)?(?:[\t\n\r\x20-\x7e]{32}|[\t\n\r\x20-\x7e]{1,31}$)/;

/**
 * Whether a file is text, which some servers send with status 200 in place of media: a web page, a message in JSON or XML. Subtitles are text
 * (`WEBVTT`), but no such message.
 */
export function isText(path: string): boolean {
  const start = startOfText(path);
  return start !== undefined && !/^(?:\xef\xbb\xbf)?WEBVTT/.test(start);
}

/** Names the kind of text that a file is; undefined for any other file. */
export function textKind(path: string): string | undefined {
  const start = startOfText(path);
  if (start === undefined) return undefined;
  if (/^(?:\xef\xbb\xbf)?#EXTM3U/i.test(start)) return "M3U, a list of media";
  if (/^(?:\xef\xbb\xbf)?\[playlist\]/i.test(start)) return "PLS, a list of media";
  const first = /^(?:\xef\xbb\xbf)?\s*(.)/.exec(start)?.[1];
  if (first === "<") return /<(?:!doctype )?html/i.test(start) ? "HTML" : "HTML or XML";
  return first === "{" || first === "[" ? "JSON" : "plain text";
}

function startOfText(path: string): string | undefined {
  const start = readFileStart(path, Buffer.alloc(checkedBytes)).toString("latin1");
  // An MP3 cut within a frame can begin with letters alone: the padding of LAME.
  return text.test(start) && sniffFile(path) !== "packed-audio" ? start : undefined;
}

const aesBlockBytes = 16;

/**
 * Whether a segment or init section ends where its boxes (MP4), packets (MPEG-TS) or AES blocks end. What is of another kind does not
 * show that it was cut off.
 */
export function isWholeSegment(path: string, key: SegmentKey | null): boolean {
  using file = openFile(path);
  const { fd, size } = file;
  if (key !== null && key.isOfSamples !== true) return key.cipher === "aes-256-ctr" || size % aesBlockBytes === 0;
  const head = readAt(file, 0, sniffBytes);
  if (sniffContainer(head) === "mp4") return unlessUnreadable(() => [...fileBoxes(fd, size)]) !== undefined;
  return head[0] !== sync || size % packetLength === 0;
}
