import { closeSync, fstatSync, openSync } from "node:fs";
import { type Box, boxesIn, damagedError, getChild, viewOf } from "../boxes.ts";
import { fileBoxes, readFully } from "./file-boxes.ts";

/**
 * Returns how many samples each track has by the index of an MP4 file that is not fragmented (`stsz`,
 * ISO/IEC 14496-12 §8.7.3), in the order of its tracks. Reads only the index.
 * @throws ServiceError `upstream_invalid` if it has none; the file system's own errors.
 */
export function countSamples(path: string): number[] {
  const fd = openSync(path, "r");
  try {
    const moov = [...fileBoxes(fd, fstatSync(fd).size)].find(({ type }) => type === "moov");
    if (moov === undefined) throw damagedError(`the file has no "moov"`);
    const view = viewOf(readFully(fd, Buffer.allocUnsafe(moov.end - moov.body), moov.body));
    return [...boxesIn(view, 0, view.byteLength)]
      .filter(({ type }) => type === "trak")
      .map((trak) => {
        const nested = (box: Box, type: string) => getChild(view, box, type);
        const stsz = ["mdia", "minf", "stbl", "stsz"].reduce(nested, trak);
        return view.getUint32(stsz.body + 8);
      });
  } finally {
    closeSync(fd);
  }
}
