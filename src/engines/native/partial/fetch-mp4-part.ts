import { readBoxHeader, viewOf } from "../../../remux/mp4/boxes.ts";
import { bytesOfCut } from "../../../remux/mp4/cut.ts";
import { isWorthwhile, type PartialFile, type PartialMediaOptions } from "./partial-file.ts";

/**
 * Fetches what `cutMp4` needs of an MP4 that is not fragmented: its boxes without the media, and the samples of the ranges.
 * Returns whether they are there: not if it has over 64 boxes or an index over 256 MiB, or if the parts are over 1,024 or most
 * of it.
 *
 * @throws ServiceError `upstream_invalid` if it is damaged; of `file`; the file system's own errors.
 */
export async function fetchMp4Part(
  file: PartialFile,
  { ranges, onTotal }: Pick<PartialMediaOptions, "ranges" | "onTotal">,
): Promise<boolean> {
  if (!(await fetchBoxes(file))) return false;
  // A sample shows only once it is there whether a range may start at it.
  for (let tries = 0; tries < maxTries; tries += 1) {
    const missing = file.missing(bytesOfCut(file.path, ranges, (span) => file.missing([span]).length === 0));
    if (missing.length === 0) return true;
    if (missing.length > maxParts) return false;
    if (tries === 0 && !isWorthwhile(file, missing)) return false;
    onTotal(file.bytesWith(missing));
    await file.fetchMissing(missing);
  }
  return false;
}

const maxBoxes = 64;
const maxTries = 8;
const maxIndexBytes = 256 << 20;

/** Twice as many as ranges need whose sound and picture lie apart; samples may be scattered all over a file. */
const maxParts = 1_024;

/** Fetches the headers of the boxes of the top level, and the index (`moov`). Returns whether it lists all samples. */
async function fetchBoxes(file: PartialFile): Promise<boolean> {
  let hasIndex = false;
  let start = 0;
  for (let count = 0; start < file.size; count += 1) {
    const header = { start, end: Math.min(start + 16, file.size) };
    await file.fetchNear(header);
    const box = readBoxHeader(viewOf(await file.read(header)), 0, file.size - start);
    if (box.type === "moof" || count === maxBoxes) return false;
    if (box.type === "moov") {
      if (box.size > maxIndexBytes) return false;
      await file.fetchMissing([{ start, end: start + box.size }]);
      hasIndex = true;
    }
    start += box.size;
  }
  return hasIndex;
}
