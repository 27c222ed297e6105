import { readSync } from "node:fs";
import { ServiceError } from "../../../model/errors.ts";
import { readSampleLists } from "../../../remux/mp4/cut.ts";
import { nalLengthBytes } from "../../../remux/mp4/joins.ts";
import type { SampleList } from "../../../remux/mp4/read/sample-list.ts";
import { type OpenFile, openFile } from "../../../remux/open-file.ts";

/**
 * Returns at how many places of an MP4 file with an index pictures of H.264 or HEVC are damaged: their NAL units do not follow each
 * other to the end of the sample (ISO/IEC 14496-15 §4.3.3), or begin with a bit that is forbidden (ISO/IEC 14496-10 §7.4.1). If most are,
 * the writer has no such units: 0. Damage within a unit is not found, nor, in a long film, less than a 4096th of it.
 * @throws the file system's own errors.
 */
export function countDamagedPictures(path: string): number {
  using file = openFile(path);
  return listsIn(file).reduce((sum, list) => sum + countIn(file, list), 0);
}

function listsIn(file: OpenFile): SampleList[] {
  try {
    return readSampleLists(file);
  } catch (error) {
    // An index that cannot be read is told elsewhere.
    if (error instanceof ServiceError) return [];
    throw error;
  }
}

function countIn(file: OpenFile, list: SampleList): number {
  const lengths = list.track.formats.map(({ sampleEntry }) => nalLengthBytes(sampleEntry));
  if (lengths.every((bytes) => bytes === null)) return 0;
  const isWhole = createUnitCheck(file);
  const step = Math.ceil(list.length / maxPictures);
  let [places, damaged, wasWhole] = [0, 0, true];
  for (let index = 0; index < list.length; index += step) {
    const { entry, offset, size } = list.at(index);
    const lengthBytes = lengths[entry - 1] ?? null;
    const isDamaged = lengthBytes !== null && !isWhole(offset, size, lengthBytes);
    if (isDamaged && wasWhole) places += 1;
    if (isDamaged) damaged += 1;
    wasWhole = !isDamaged;
  }
  return damaged > list.length / step / 2 ? 0 : places;
}

/** Each is a read of the file. So many, spaced evenly, find parts that were never fetched. */
const maxPictures = 4096;

/** Most units of small pictures are in so many bytes. */
const windowBytes = 1024;

/** Returns a function that returns whether the NAL units of a sample follow each other to its end. */
function createUnitCheck({ fd }: OpenFile) {
  const window = Buffer.alloc(windowBytes);
  let [start, length] = [0, 0];
  const at = (position: number, bytes: number): number => {
    if (position < start || position + bytes > start + length) {
      start = position;
      length = readSync(fd, window, 0, windowBytes, position);
    }
    return position - start;
  };
  return (offset: number, size: number, lengthBytes: number): boolean => {
    const end = offset + size;
    let position = offset;
    while (position + lengthBytes < end) {
      const found = at(position, lengthBytes + 1);
      // The file ends before: that is told elsewhere.
      if (found + lengthBytes >= length) return true;
      const unitBytes = window.readUIntBE(found, lengthBytes);
      const isForbidden = unitBytes > 0 && (window[found + lengthBytes]! & 0x80) !== 0;
      if (isForbidden || (unitBytes === 0 && position === offset)) return false;
      position += lengthBytes + unitBytes;
    }
    return position <= end;
  };
}
