import { countFragmentBreaks, type FragmentBreaks } from "../../../remux/mp4/fragment-order.ts";
import { countDamage, countDamagedLaces } from "../../../remux/matroska/damage.ts";
import { countFlacFrames } from "../../../remux/audio-files/flac.ts";
import { countOggBreaks } from "../../../remux/audio-files/ogg-pages.ts";
import { countPacketGaps } from "../../../remux/audio-files/packet-gaps.ts";
import { countPacketBreaks, endsWithinPacket } from "../../../remux/mpeg-ts/breaks.ts";
import { countAsfBreaks } from "./asf-breaks.ts";
import { countAviBreaks } from "./avi-breaks.ts";
import { countFlvBreaks } from "./flv-breaks.ts";
import { countDamagedPictures, countProgramStreamBreaks } from "./program-stream-breaks.ts";
import { startsAsMatroska } from "../../../remux/file-header.ts";
import { endsWithoutBoxes } from "../../../remux/mp4/read/file-boxes.ts";
import { createFileWindow, openFile } from "../../../remux/open-file.ts";
import { countFrameBreaks } from "../../../remux/packed-audio/breaks.ts";
import { sniffContainer } from "../../../remux/sniff.ts";

/**
 * Returns, in words, what is missing, damaged or out of order in a file as published, as far as its container shows.
 *
 * @param isKept It is the result: players must find its media. This program also finds some that they do not.
 * @throws ServiceError `upstream_invalid` if it cannot be read; the file system's own errors.
 */
export function publishedDamage(path: string, isKept = false): string[] {
  using opened = openFile(path);
  const file = createFileWindow(opened);
  const head = file.at(0).subarray(0, headBytes);
  const start = head.toString("latin1", 0, 8);
  const isMp4 = start.endsWith("ftyp");
  const isMatroska = startsAsMatroska(head);
  const packets = countPacketBreaks(file);
  const isOgg = start.startsWith("OggS");
  const oggBreaks = isOgg ? countOggBreaks(file) : 0;
  const fragments: Partial<FragmentBreaks> = isMp4 ? countFragmentBreaks(file) : {};
  const counts = {
    "the file has bytes that are not packets": packets.breaks,
    "packets of the file are missing": packets.losses,
    "the file is damaged or cut off": isMatroska
      ? countDamage(file)
      : countAviBreaks(file) + countProgramStreamBreaks(file),
    "blocks of the file have damaged frames": isMatroska ? countDamagedLaces(file) : 0,
    "pages of the file are missing, damaged or out of order": oggBreaks,
    "packets of the audio are missing": isOgg && oggBreaks === 0 ? countPacketGaps(file) : 0,
    "the file has bytes that are not tags, or tags that are cut off,": countFlvBreaks(file),
    "pictures of the file are damaged": countDamagedPictures(file),
    "packets of the file are missing or damaged": countAsfBreaks(file),
    "frames of the file are missing, damaged or out of order":
      (countFlacFrames(file)?.breaks ?? 0) + (isBareAudio(head) ? countFrameBreaks(file) : 0),
    "fragments of the file are missing or damaged": fragments.missing,
    "fragments of the file are out of order": fragments.outOfOrder,
    "fragments of the file have tracks that its header does not list": isKept ? fragments.unlisted : 0,
    "fragments of the file do not say where their media are": isKept ? fragments.misplaced : 0,
  };
  return [
    ...Object.entries(counts).flatMap(([what, count = 0]) => (count === 0 ? [] : [`${what} at ${places(count)}`])),
    ...(endsWithinPacket(file) ? ["the file ends within a packet"] : []),
    ...(isMp4 && endsWithoutBoxes(file) ? ["the file ends with bytes that are no boxes"] : []),
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

/** Returns how many places, in words. */
export const places = (count: number): string => (count === 1 ? "1 place" : `${count} places`);
