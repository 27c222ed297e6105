import { countFragmentBreaks } from "../../../remux/mp4/fragment-order.ts";
import { countDamage } from "../../../remux/matroska/damage.ts";
import { countDamagedLaces } from "../../../remux/matroska/damaged-laces.ts";
import { countFlacBreaks } from "../../../remux/audio-files/flac-breaks.ts";
import { countOggBreaks } from "../../../remux/ogg/breaks.ts";
import { countPacketBreaks, endsWithinPacket } from "../../../remux/mpeg-ts/breaks.ts";
import { countAsfBreaks } from "./asf-breaks.ts";
import { countAviBreaks } from "./avi-breaks.ts";
import { countFlvBreaks } from "./flv-breaks.ts";
import { places } from "./places.ts";
import { countDamagedPictures, countProgramStreamBreaks } from "./program-stream-breaks.ts";
import { endsWithoutBoxes } from "../../../remux/mp4/read/file-boxes.ts";
import { readFileStart } from "../../../remux/open-file.ts";
import { countFrameBreaks } from "../../../remux/packed-audio/breaks.ts";
import { sniffContainer } from "../../../remux/sniff.ts";

/**
 * Returns what a file that is as published says itself of its parts, in words: players leave out some of them, or present
 * them at other times.
 * @throws ServiceError `upstream_invalid` if it cannot be read; the file system's own errors.
 */
export function publishedDamage(path: string): string[] {
  const head = readFileStart(path, Buffer.alloc(headBytes));
  const start = head.toString("latin1", 0, 8);
  const pages = start.startsWith("OggS") ? countOggBreaks(path) : 0;
  const isMp4 = start.endsWith("ftyp");
  const { outOfOrder, missing } = isMp4 ? countFragmentBreaks(path) : { outOfOrder: 0, missing: 0 };
  const blocks = start.startsWith(ebmlSignature) ? countDamagedLaces(path) : 0;
  const damaged = start.startsWith(ebmlSignature) ? countDamage(path) : 0;
  const { breaks, losses } = countPacketBreaks(path);
  const frames = countFlacBreaks(path) + (isBareAudio(head) ? countFrameBreaks(path) : 0);
  const tags = countFlvBreaks(path);
  const chunks = countAviBreaks(path) + countProgramStreamBreaks(path);
  const packets = countAsfBreaks(path);
  const pictures = countDamagedPictures(path);
  return [
    ...(breaks === 0 ? [] : [`the file has bytes that are not packets at ${places(breaks)}`]),
    ...(losses === 0 ? [] : [`packets of the file are missing at ${places(losses)}`]),
    ...(damaged === 0 ? [] : [`the file is damaged or cut off at ${places(damaged)}`]),
    ...(blocks === 0 ? [] : [`the frames of ${blocks === 1 ? "1 block" : `${blocks} blocks`} of the file are damaged`]),
    ...(pages === 0 ? [] : [`pages of the file are missing, damaged or out of order at ${places(pages)}`]),
    ...(tags === 0 ? [] : [`the file has bytes that are not tags, or a tag that is cut off, at ${places(tags)}`]),
    ...(chunks === 0 ? [] : [`the file is damaged or cut off at ${places(chunks)}`]),
    ...(pictures === 0 ? [] : [`pictures of the file are damaged at ${places(pictures)}`]),
    ...(packets === 0 ? [] : [`packets of the file are missing or damaged at ${places(packets)}`]),
    ...(frames === 0 ? [] : [`frames of the file are missing, damaged or out of order at ${places(frames)}`]),
    ...(endsWithinPacket(path) ? ["the file ends within a packet"] : []),
    ...(isMp4 && endsWithoutBoxes(path) ? ["the file ends with bytes that are no boxes"] : []),
    ...(missing === 0 ? [] : [`fragments of the file are missing or damaged at ${places(missing)}`]),
    ...(outOfOrder === 0 ? [] : [`fragments of the file are out of order at ${places(outOfOrder)}`]),
  ];
}

const headBytes = 4096;

/** What files begin with that may have frames of audio soon after their start, but not all of them in a row. */
const otherStarts = /^(?:RIFF|RF64|FORM|FLV|OggS|\x30\x26\xb2\x75|\0\0\x01)/;

/** Whether a file may have nothing but frames of audio and tags, or begins within such a frame. */
function isBareAudio(head: Buffer): boolean {
  const container = sniffContainer(head);
  return container === "packed-audio" || (container === null && !otherStarts.test(head.toString("latin1", 0, 4)));
}

const ebmlSignature = "\x1a\x45\xdf\xa3";
