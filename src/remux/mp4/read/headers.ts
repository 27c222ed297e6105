import { createBoxReader } from "../box-reader.ts";
import { type Box, childOf, damaged, viewOf } from "../boxes.ts";
import { mp4ToBcp47 } from "../language.ts";

/** Id and size in pixels as shown, of a `tkhd` (ISO/IEC 14496-12 §8.3.2). */
export function readTrackHeader(
  piece: Uint8Array,
  tkhd: Box,
): { id: number; width: number; height: number } {
  const reader = createBoxReader(piece, tkhd);
  const { version } = reader.versionAndFlags();
  reader.skip(version === 1 ? 16 : 8);
  const id = reader.u32();
  reader.skip((version === 1 ? 12 : 8) + 52);
  return { id, width: Math.round(reader.u32() / 65536), height: Math.round(reader.u32() / 65536) };
}

/** Timescale of an `mvhd` or `mdhd` (§8.2.2, §8.4.2), and the language of the latter. */
export function readMediaHeader(
  piece: Uint8Array,
  header: Box,
): { timescale: number; language: string | null } {
  const reader = createBoxReader(piece, header);
  const { version } = reader.versionAndFlags();
  reader.skip(version === 1 ? 16 : 8);
  const timescale = reader.u32();
  if (timescale === 0) throw damaged(`"${header.type}" says that a second has no ticks`);
  reader.skip(version === 1 ? 8 : 4);
  return { timescale, language: header.type === "mdhd" ? mp4ToBcp47(reader.u16()) : null };
}

/**
 * How much later media times are than presentation times, ticks: the first edit that shows something,
 * less the empty ones before it (§8.6.6).
 */
export function readEditShift(
  piece: Uint8Array,
  trak: Box,
  { timescale, movieTimescale }: { timescale: number; movieTimescale: number },
): number {
  const view = viewOf(piece);
  const edts = childOf(view, trak, "edts");
  const elst = edts && childOf(view, edts, "elst");
  if (elst === undefined) return 0;
  const reader = createBoxReader(piece, elst);
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
