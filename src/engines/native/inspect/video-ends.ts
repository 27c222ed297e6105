import { readAt, type ReadFile } from "../../../remux/open-file.ts";
import { unreadKind } from "./media-types.ts";

/** Whether an AVI file has the bytes that its first chunk states; `null`: it states none, or others follow, or it is another file. */
export function isWholeAvi(file: ReadFile): boolean | null {
  const head = readAt(file, 0, 12);
  if (unreadKind(head) !== "avi") return null;
  const stated = head.readUInt32LE(4);
  const { size } = file;
  // Written to a pipe, which cannot be corrected later.
  if (stated === 0 || stated === 0xffff_ffff) return null;
  // Some writers count the eight bytes before it too.
  if (stated > size) return false;
  const padding = 1;
  return size <= 8 + stated + padding ? true : null;
}

const maxHeaderBytes = 1 << 20;
const filePropertiesObject = Buffer.from("a1dcab8c47a9cf118ee400c00c205365", "hex");
/** Before the first packet: the header of the object that holds them. */
const dataHeaderBytes = 50;

/** The packets of an ASF file, which are of one size. */
interface AsfPackets {
  /** Where the first one is. */
  start: number;
  packetBytes: number;
  count: number;
}

/** Returns where the packets of a WMV file are, as its header states (ASF 1.2 §3.2); `null`: it states none, or it is another file. */
export function readAsfPackets(file: ReadFile): AsfPackets | null {
  const head = readAt(file, 0, maxHeaderBytes);
  if (head.length < 24 || unreadKind(head) !== "wmv") return null;
  const at = head.indexOf(filePropertiesObject);
  if (at < 0 || at + 104 > head.length) return null;
  const count = Number(head.readBigUInt64LE(at + 56));
  const isLive = (head.readUInt32LE(at + 88) & 1) !== 0;
  const [least, most] = [head.readUInt32LE(at + 92), head.readUInt32LE(at + 96)];
  if (isLive || count === 0 || least !== most) return null;
  return { start: Number(head.readBigUInt64LE(16)) + dataHeaderBytes, packetBytes: most, count };
}

/** Whether a WMV file has the packets that its header states; `null`: it states none, or it is another file. */
export function isWholeAsf(file: ReadFile): boolean | null {
  const packets = readAsfPackets(file);
  return packets && file.size >= packets.start + packets.count * packets.packetBytes;
}
