import { ebmlId } from "./ebml.ts";
import { findPackets } from "./mpeg-ts/packets.ts";
import { isPackedAudio } from "./packed-audio/demuxer.ts";
import { skipId3Tags } from "./packed-audio/tags.ts";

export type Container = "mpeg-ts" | "mp4" | "webm" | "packed-audio" | "webvtt";

const mp4Boxes = new Set("ftyp styp moov moof sidx ssix mdat free skip emsg prft wide pdin".split(" "));
const cluster = 0x1f43b675;
const maxGarbage = 4096;
/** Some servers put an image before each segment, so that it looks like one: JPEG, PNG, GIF, BMP. */
const images = /^(?:\xff\xd8\xff|\x89PNG|GIF8|BM)/;
const maxImageBytes = 128 * 1024;
/** Bytes that are enough to recognise a container. */
export const sniffBytes = maxImageBytes + maxGarbage;

/** Returns the container of a segment by its first bytes; `null` if it is none of these. */
export function sniffContainer(segment: Uint8Array): Container | null {
  const head = Buffer.from(segment.buffer, segment.byteOffset, Math.min(segment.length, maxGarbage));
  if (head.length >= 8 && mp4Boxes.has(head.toString("latin1", 4, 8))) return "mp4";
  const signature = head.length >= 4 ? head.readUInt32BE(0) : 0;
  if (signature === ebmlId || signature === cluster) return "webm";
  if (/^(?:\u{FEFF})?WEBVTT(?:[ \t\r\n]|$)/u.test(head.toString("utf8", 0, 16))) return "webvtt";
  const { start } = skipId3Tags(segment);
  if (start > 0 && (start >= segment.length || isPackedAudio(segment, start))) return "packed-audio";
  const first = start < segment.length ? start : 0;
  const isImage = images.test(head.toString("latin1", 0, 4));
  const searched = segment.subarray(first, first + (isImage ? sniffBytes : maxGarbage));
  if (findPackets(searched, 0).stride > 0) return "mpeg-ts";
  return isPackedAudio(segment, start) ? "packed-audio" : null;
}
