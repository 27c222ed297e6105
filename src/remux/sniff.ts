import { ids } from "./matroska/elements.ts";
import { certainBytes, findPackets } from "./mpeg-ts/packets.ts";
import { readFileStart } from "./open-file.ts";
import { findCutAudio, isPackedAudio } from "./packed-audio/demuxer.ts";
import { skipId3Tags } from "./packed-audio/tags.ts";

export type Container = "mpeg-ts" | "mp4" | "webm" | "packed-audio" | "webvtt";

const mp4Boxes = new Set("ftyp styp moov moof sidx ssix mdat free skip emsg prft wide pdin pnot".split(" "));
const maxGarbage = 4096;
/** Some servers put an image before each segment, so that it looks like one: JPEG, PNG, GIF, BMP. */
const images = /^(?:\xff\xd8\xff|\x89PNG|GIF8|BM)/;
const maxImageBytes = 128 * 1024;
/** Files of other containers: texts and pictures in their tags may have what looks like packets. The first is MPEG-PS; icons begin with three such bytes. */
const others = /^(?:\0\0\x01[\xb0-\xff]|OggS\0|fLaC|(?:RIFF|RF64).{4}(?:WAVE|AVI )|FORM.{4}AIF|FLV\x01)/s;
/** Bytes that are enough to recognise a container. */
export const sniffBytes = maxImageBytes + maxGarbage;

/** Returns the container of a segment by its first bytes; `null` if it is none of these. */
export function sniffContainer(segment: Uint8Array): Container | null {
  const head = Buffer.from(segment.buffer, segment.byteOffset, Math.min(segment.length, maxGarbage));
  if (head.length >= 8 && mp4Boxes.has(head.toString("latin1", 4, 8))) return "mp4";
  const signature = head.length >= 4 ? head.readUInt32BE(0) : 0;
  if (signature === ids.ebml || signature === ids.cluster) return "webm";
  if (/^(?:\u{FEFF})?WEBVTT(?:[ \t\r\n]|$)/u.test(head.toString("utf8", 0, 16))) return "webvtt";
  if (others.test(head.toString("latin1", 0, 12))) return null;
  const { start } = skipId3Tags(segment);
  // Before packets: a tone is coded into frames so alike that some of their bytes look like those.
  if ((start > 0 && start >= segment.length) || isPackedAudio(segment, start)) return "packed-audio";
  const first = start < segment.length ? start : 0;
  const isImage = images.test(head.toString("latin1", 0, 4));
  const media = segment.subarray(first);
  const searched = media.subarray(0, (isImage ? sniffBytes : maxGarbage) + certainBytes);
  const { at, stride } = findPackets(searched, 0);
  // Two bytes may look like packets near the end of what was read of something else.
  const isToEnd = searched.length === media.length && (media.length - at) % stride === 0;
  const isCertain = at === 0 || at + certainBytes <= searched.length || isToEnd;
  if (stride > 0 && isCertain) return "mpeg-ts";
  return findCutAudio(media, 0) === undefined ? null : "packed-audio";
}

/** Returns the container of a file, as `sniffContainer`. @throws the file system's own errors. */
export function sniffFile(path: string): Container | null {
  return sniffContainer(readFileStart(path, Buffer.alloc(sniffBytes)));
}
