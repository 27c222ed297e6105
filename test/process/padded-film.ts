import { readMedium } from "../media/rendition.ts";

/** Returns `index-first.mp4` with a `free` box of `bytes` at its end. */
export const paddedFilm = (bytes: number): Buffer => withPadding(readMedium("index-first.mp4"), bytes);

/** Returns an MP4 with a `free` box of `bytes` at its end. */
export function withPadding(film: Buffer, bytes: number): Buffer {
  const free = Buffer.alloc(bytes, "free");
  free.writeUInt32BE(bytes, 0);
  return Buffer.concat([film, free]);
}
