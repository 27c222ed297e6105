import { isPackedAudio, skipTags } from "./packed-audio/packed-audio.ts";
import { findPackets } from "./mpeg-ts/packets.ts";

export type Container = "mpeg-ts" | "mp4" | "webm" | "packed-audio" | "webvtt";

const mp4Boxes = new Set(
  "ftyp styp moov moof sidx ssix mdat free skip emsg prft wide pdin".split(" "),
);
const ebml = 0x1a45dfa3;
const cluster = 0x1f43b675;
const maxGarbage = 4096;

/** What a segment is in, by its first bytes; `null` where none of these can be told. */
export function sniffContainer(piece: Uint8Array): Container | null {
  const head = Buffer.from(piece.buffer, piece.byteOffset, Math.min(piece.length, maxGarbage));
  if (head.length >= 8 && mp4Boxes.has(head.toString("latin1", 4, 8))) return "mp4";
  const signature = head.length >= 4 ? head.readUInt32BE(0) : 0;
  if (signature === ebml || signature === cluster) return "webm";
  if (/^(?:\u{FEFF})?WEBVTT(?:[ \t\r\n]|$)/u.test(head.toString("utf8", 0, 16))) return "webvtt";
  const { start } = skipTags(piece);
  if (start > 0 && (start >= piece.length || isPackedAudio(piece, start))) return "packed-audio";
  const first = start < piece.length ? start : 0;
  if (findPackets(piece.subarray(first, first + maxGarbage), 0).stride > 0) return "mpeg-ts";
  return isPackedAudio(piece, start) ? "packed-audio" : null;
}
