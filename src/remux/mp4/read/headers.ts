import { createBoxReader } from "../box-reader.ts";
import { type Box, damagedError, findChild, viewOf } from "../boxes.ts";
import { mp4ToBcp47 } from "../../language.ts";

/** Reads a `tkhd` (ISO/IEC 14496-12 §8.3.2); the size is in pixels as shown. */
export function readTrackHeader(
  bytes: Uint8Array,
  tkhd: Box,
): { id: number; width: number; height: number } {
  const reader = createBoxReader(bytes, tkhd);
  const { version } = reader.versionAndFlags();
  reader.skip(version === 1 ? 16 : 8);
  const id = reader.u32();
  reader.skip((version === 1 ? 12 : 8) + 52);
  return { id, width: Math.round(reader.u32() / 65536), height: Math.round(reader.u32() / 65536) };
}

/** Reads the timescale of an `mvhd` or `mdhd` (§8.2.2, §8.4.2), and the language of an `mdhd`. */
export function readMediaHeader(
  bytes: Uint8Array,
  header: Box,
): { timescale: number; language: string | null } {
  const reader = createBoxReader(bytes, header);
  const { version } = reader.versionAndFlags();
  reader.skip(version === 1 ? 16 : 8);
  const timescale = reader.u32();
  if (timescale === 0) throw damagedError(`"${header.type}" has the timescale 0`);
  reader.skip(version === 1 ? 8 : 4);
  return { timescale, language: header.type === "mdhd" ? mp4ToBcp47(reader.u16()) : null };
}

/**
 * Returns how much later media times are than presentation times, in ticks: the media time of the first
 * edit that is not empty, less the empty edits before it (§8.6.6).
 */
export function readEditShift(
  bytes: Uint8Array,
  trak: Box,
  { timescale, movieTimescale }: { timescale: number; movieTimescale: number },
): number {
  const view = viewOf(bytes);
  const edts = findChild(view, trak, "edts");
  const elst = edts && findChild(view, edts, "elst");
  if (elst === undefined) return 0;
  const reader = createBoxReader(bytes, elst);
  const { version } = reader.versionAndFlags();
  let emptyTicks = 0;
  for (let left = reader.u32(); left > 0; left--) {
    const duration = version === 1 ? reader.i64() : reader.u32();
    const mediaTime = version === 1 ? reader.i64() : reader.i32();
    reader.skip(4);
    if (mediaTime >= 0) return mediaTime - Math.round(emptyTicks * (timescale / movieTimescale));
    emptyTicks += duration;
  }
  return 0;
}
