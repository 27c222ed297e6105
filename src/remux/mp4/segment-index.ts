import { type Box, damagedError, viewOf } from "./boxes.ts";

/** Parts of a file that a segment index (`sidx`, ISO/IEC 14496-12 §8.16.3) lists one after the other. */
export interface SegmentIndex {
  parts: { start: number; end: number; startS: number; endS: number }[];
  /** Some of the parts are other indexes. */
  hasIndexes: boolean;
}

/**
 * Returns what an index lists.
 * @param bytes Those of the box, which ends at `endsAt` in its file.
 * @throws ServiceError `upstream_invalid` if it is damaged.
 */
export function readSegmentIndex(bytes: Uint8Array, { body }: Pick<Box, "body">, endsAt: number): SegmentIndex {
  const view = viewOf(bytes);
  const isLong = bytes[body] === 1;
  // The version, the identifier of a track and the scale of times come before two fields of 4 or 8 bytes.
  const tableAt = body + (isLong ? 32 : 24);
  if (tableAt > bytes.length) throw damagedError("a segment index is too short");
  const timescale = view.getUint32(body + 8);
  const field = (index: number) =>
    isLong ? Number(view.getBigUint64(body + 12 + 8 * index)) : view.getUint32(body + 12 + 4 * index);
  const count = view.getUint16(tableAt - 2);
  if (timescale === 0 || tableAt + entryBytes * count > bytes.length) throw damagedError("a segment index is damaged");
  let ticks = field(0);
  let at = endsAt + field(1);
  const index: SegmentIndex = { parts: [], hasIndexes: false };
  for (let entry = tableAt; entry < tableAt + entryBytes * count; entry += entryBytes) {
    const reference = view.getUint32(entry);
    index.hasIndexes ||= reference >= 2 ** 31;
    const [start, startS] = [at, ticks / timescale];
    at += reference % 2 ** 31;
    ticks += view.getUint32(entry + 4);
    index.parts.push({ start, end: at, startS, endS: ticks / timescale });
  }
  return index;
}

const entryBytes = 12;
