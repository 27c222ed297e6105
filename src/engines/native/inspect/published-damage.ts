import { countFragmentsOutOfOrder } from "../../../remux/mp4/fragment-order.ts";
import { countDamagedLaces } from "../../../remux/matroska/damaged-laces.ts";
import { countOggBreaks } from "../../../remux/ogg/breaks.ts";
import { openFile, readChunks, readFileStart } from "../../../remux/open-file.ts";

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
  return [
    ...(blocks === 0 ? [] : [`the frames of ${blocks === 1 ? "1 block" : `${blocks} blocks`} of the file are damaged`]),
    ...(pages === 0 ? [] : [`pages of the file are missing, damaged or out of order at ${places(pages)}`]),
    ...(endsWithinPacket(path) ? ["the file ends within a packet"] : []),
    ...(fragments === 0 ? [] : [`fragments of the file are out of order at ${places(fragments)}`]),
  ];
}

const ebmlSignature = "\x1a\x45\xdf\xa3";

const syncByte = 0x47;
/** Bytes of a packet of MPEG-TS, and those before its first one: alone, after a time, before parity. */
const packetShapes = [
  [188, 0],
  [192, 4],
  [204, 0],
] as const;

/** Whether a file is MPEG-TS, and its last packet is cut off. */
function endsWithinPacket(path: string): boolean {
  const head = readFileStart(path, Buffer.alloc(1024));
  const shape = packetShapes.find(([bytes, before]) =>
    [0, 1, 2, 3].every((packet) => head[before + packet * bytes] === syncByte),
  );
  if (shape === undefined) return false;
  const [bytes, before] = shape;
  using file = openFile(path);
  const lastAt = file.size - (file.size % bytes);
  for (const packet of readChunks(file, file.size, lastAt)) return packet[before] === syncByte;
  return false;
}

const places = (count: number): string => (count === 1 ? "1 place" : `${count} places`);
