import { openFullBox } from "./box-reader.ts";
import { box, type Box, childrenOf, damagedError, firstBox, getChild, u32Table, viewOf } from "./boxes.ts";

/** Whether a `moof` box says from the start of the file where its media data are (ISO/IEC 14496-12 §8.8.7). */
export const hasFixedData = (moof: Uint8Array): boolean => fixedHeaders(moof).length > 0;

/** Returns a `moof` box whose media data are `delta` bytes later. */
export function moveFragment(moof: Uint8Array, delta: number): Buffer {
  const moved = Buffer.from(moof);
  for (const { body } of fixedHeaders(moof)) {
    // After the version and the track.
    moved.writeBigUInt64BE(moved.readBigUInt64BE(body + 8) + BigInt(delta), body + 8);
  }
  return moved;
}

function fixedHeaders(moof: Uint8Array): Box[] {
  const headers = childrenOf(moof, firstBox(moof), "traf").map((traf) => getChild(moof, traf, "tfhd"));
  return headers.filter(({ body }) => (viewOf(moof).getUint32(body) & 1) === 1);
}

/**
 * Returns an `mfra` box (§8.8.9) for fragments that are `delta` bytes later.
 * @throws RangeError if a position does not fit into its 32 bits; as `fragmentPositions`
 */
export function moveFragmentIndex(mfra: Uint8Array, delta: number): Buffer {
  const moved = Buffer.from(mfra);
  for (const { at, isLong } of fragmentPositions(moved)) {
    if (isLong) moved.writeBigUInt64BE(moved.readBigUInt64BE(at) + BigInt(delta), at);
    else moved.writeUInt32BE(moved.readUInt32BE(at) + delta, at);
  }
  return moved;
}

/**
 * Yields where an `mfra` box has the positions of fragments in the file, and whether they have 64 bits.
 * @throws ServiceError `upstream_invalid` if it is damaged
 */
export function* fragmentPositions(mfra: Uint8Array): Generator<{ at: number; isLong: boolean }> {
  for (const table of childrenOf(mfra, firstBox(mfra), "tfra")) {
    const reader = openFullBox(mfra, table);
    const isLong = reader.version === 1;
    const timeBytes = isLong ? 8 : 4;
    const trackBytes = 4;
    reader.skip(trackBytes);
    const sizes = reader.u32();
    // The numbers of a track fragment, a run and a sample have 1 to 4 bytes each.
    const numbersBytes = [4, 2, 0].reduce((sum, shift) => sum + 1 + ((sizes >> shift) & 3), 0);
    for (let left = reader.u32(); left > 0; left--) {
      reader.skip(timeBytes);
      yield { at: table.end - reader.left, isLong };
      reader.skip(timeBytes + numbersBytes);
    }
  }
}

/**
 * Whether a box has positions of items or of auxiliary data of samples in it (ISO/IEC 14496-12 §8.11.3, §8.7.9), which are not moved.
 * A text with such a name, as in "kilocalories", is no box: it has no size before it.
 */
export function hasOtherOffsets(bytes: Buffer): boolean {
  return ["iloc", "saio"].some((type) => {
    for (let at = bytes.indexOf(type, 4); at > 0; at = bytes.indexOf(type, at + 1)) {
      const size = bytes.readUInt32BE(at - 4);
      if (size === 1 || (size >= 8 && at - 4 + size <= bytes.length)) return true;
    }
    return false;
  });
}

const containersOfOffsets: ReadonlySet<string> = new Set(["trak", "mdia", "minf", "stbl"]);

/** Copies a box; tables of offsets in it get 64 bits. */
export function withWideOffsets(bytes: Uint8Array, parent: Box): Buffer {
  const { type, start, body, end } = parent;
  if (type === "stco") {
    const view = viewOf(bytes);
    // It may say that it has more.
    const count = Math.min(view.getUint32(body + 4), (end - body - 8) >>> 2);
    const halves = new Uint32Array(2 * count);
    for (let i = 0; i < count; i++) halves[2 * i + 1] = view.getUint32(body + 8 + i * 4);
    return Buffer.from(box("co64", bytes.subarray(body, body + 8), u32Table(halves)));
  }
  if (!containersOfOffsets.has(type)) return Buffer.from(bytes.subarray(start, end));
  return Buffer.from(box(type, ...childrenOf(bytes, parent).map((child) => withWideOffsets(bytes, child))));
}

/**
 * Adds `delta` to the offsets of the chunks of a track that are after the index.
 * @throws ServiceError `upstream_invalid` if a table says that it has more of them
 */
export function moveChunks(trak: Buffer, delta: number, moovEnd: number): void {
  const view = viewOf(trak);
  for (const { type, body, end } of childrenOf(trak, getChild(trak, firstBox(trak), "mdia", "minf", "stbl"))) {
    if (type !== "stco" && type !== "co64") continue;
    const count = view.getUint32(body + 4);
    const bytes = type === "stco" ? 4 : 8;
    if (body + 8 + count * bytes > end) throw damagedError(`its ${type} box has fewer than ${count} offsets`);
    for (let i = 0; i < count; i++) {
      const at = body + 8 + i * bytes;
      const offset = type === "stco" ? view.getUint32(at) : Number(view.getBigUint64(at));
      if (offset < moovEnd) continue;
      if (type === "stco") view.setUint32(at, offset + delta);
      else view.setBigUint64(at, BigInt(offset + delta));
    }
  }
}
