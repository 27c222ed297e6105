import { countFragmentsOutOfOrder } from "../../../remux/mp4/fragment-order.ts";
import { countDamage } from "../../../remux/matroska/damage.ts";
import { countDamagedLaces } from "../../../remux/matroska/damaged-laces.ts";
import { countOggBreaks } from "../../../remux/ogg/breaks.ts";
import { countPacketBreaks, endsWithinPacket } from "../../../remux/mpeg-ts/packets.ts";
import { readFileStart } from "../../../remux/open-file.ts";

/**
 * Returns what a file that is as published says itself of its parts, in words: players leave out some of them, or present
 * them at other times.
 * @throws ServiceError `upstream_invalid` if it cannot be read; the file system's own errors.
 */
export function publishedDamage(path: string): string[] {
  const start = readFileStart(path, Buffer.alloc(8)).toString("latin1");
  const pages = start.startsWith("OggS") ? countOggBreaks(path) : 0;
  const fragments = start.endsWith("ftyp") ? countFragmentsOutOfOrder(path) : 0;
  const blocks = start.startsWith(ebmlSignature) ? countDamagedLaces(path) : 0;
  const damaged = start.startsWith(ebmlSignature) ? countDamage(path) : 0;
  const packets = countPacketBreaks(path);
  return [
    ...(packets === 0 ? [] : [`the file has bytes that are no packets at ${places(packets)}`]),
    ...(damaged === 0 ? [] : [`the file is damaged or cut off at ${places(damaged)}`]),
    ...(blocks === 0 ? [] : [`the frames of ${blocks === 1 ? "1 block" : `${blocks} blocks`} of the file are damaged`]),
    ...(pages === 0 ? [] : [`pages of the file are missing, damaged or out of order at ${places(pages)}`]),
    ...(endsWithinPacket(path) ? ["the file ends within a packet"] : []),
    ...(fragments === 0 ? [] : [`fragments of the file are out of order at ${places(fragments)}`]),
  ];
}

const ebmlSignature = "\x1a\x45\xdf\xa3";

const places = (count: number): string => (count === 1 ? "1 place" : `${count} places`);
