import { countFragmentsOutOfOrder } from "../../../remux/mp4/fragment-order.ts";
import { countOggBreaks } from "../../../remux/ogg/breaks.ts";
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
  return [
    ...(pages === 0 ? [] : [`pages of the file are missing, damaged or out of order at ${places(pages)}`]),
    ...(fragments === 0 ? [] : [`fragments of the file are out of order at ${places(fragments)}`]),
  ];
}

const places = (count: number): string => (count === 1 ? "1 place" : `${count} places`);
