import { readMedium } from "../media/rendition.ts";

/** Returns `index-first.mp4` with a `free` box of `bytes` at its end. */
export function paddedFilm(bytes: number): Buffer {
  const free = Buffer.alloc(bytes, "free");
  free.writeUInt32BE(bytes, 0);
  return Buffer.concat([readMedium("index-first.mp4"), free]);
}
