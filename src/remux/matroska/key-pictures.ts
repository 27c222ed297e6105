import { avc } from "../codecs/avc.ts";
import { createAvcSlices } from "../nal/avc-slices.ts";
import { avcType, avcTypeOf } from "../nal/avc-sps.ts";
import { lengthBytesOf, nalUnits } from "../nal/nal-units.ts";
import type { Block, ChosenTracks } from "./blocks.ts";
import { findElement, ids, readBytes } from "./elements.ts";
import type { MatroskaTrack } from "./tracks.ts";

type Track = Pick<MatroskaTrack, "codecId" | "entry" | "isEncoded">;

/**
 * Returns a function that says whether a block of a video track has a key picture. Of H.264 and HEVC its NAL units say so, too: mkvmerge flags the first
 * block of a file that begins in the middle of a group of pictures.
 */
export function createKeyCheck({ fd, source }: ChosenTracks, { codecId, entry, isEncoded }: Track) {
  const isKeyPicture = isEncoded ? undefined : checks.get(codecId);
  const setup = isKeyPicture && findElement(source, entry, ids.codecPrivate);
  const configuration = setup && Buffer.from(readBytes(fd, setup));
  return (block: Pick<Block, "isKey" | "body" | "end">): boolean =>
    block.isKey && (configuration === undefined || isKeyPicture!(readBytes(fd, block), configuration));
}

const checks: ReadonlyMap<string, (frame: Uint8Array, configuration: Buffer) => boolean> = new Map([
  ["V_MPEG4/ISO/AVC", isAvcKey],
  ["V_MPEGH/ISO/HEVC", isHevcKey],
]);

/** Whether decoding can start with it: an IDR picture, a recovery point, or one that refers to no other. */
function isAvcKey(frame: Uint8Array, configuration: Buffer): boolean {
  const slices = createAvcSlices(configuration);
  for (const unit of nalUnits(frame, lengthBytesOf(configuration, 4))) {
    slices.take(unit);
    const type = avcTypeOf(unit);
    if (type === avcType.idr || (type === avcType.sei && avc.isRecoveryPoint(unit))) return true;
    if (type === avcType.slice && slices.refersToOthers(unit)) return false;
  }
  return true;
}

/** Whether it is an intra random access point picture (ISO/IEC 23008-2 §7.4.2.2): types from 16 on, of those below 32, which are of slices. */
function isHevcKey(frame: Uint8Array, configuration: Buffer): boolean {
  for (const unit of nalUnits(frame, lengthBytesOf(configuration, 21))) {
    const type = (unit[0]! >> 1) & 0x3f;
    if (type < 32) return type >= 16;
  }
  return true;
}
