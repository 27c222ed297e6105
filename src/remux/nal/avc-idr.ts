import { type AvcSlices, readMarking } from "./avc-slices.ts";
import { createBitReader } from "./bits.ts";
import { escapeNal, trimZeros, unescapeNal } from "./nal-units.ts";

const idrType = 5;
const intraTypes: ReadonlySet<number> = new Set([2, 7]);

/**
 * Returns a slice of an intra frame of H.264, which is a reference and no IDR picture, as one of an IDR picture (ISO/IEC 14496-10
 * §7.3.3) that no other one refers to yet; `null`: it is another one.
 * @param id Differs from that of the IDR picture before.
 */
export function asIdrSlice(unit: Buffer, slices: AvcSlices, id: number): Buffer | null {
  const payload = unescapeNal(unit);
  const bits = createBitReader(payload);
  bits.skip(8);
  // first_mb_in_slice
  bits.readUnsigned();
  const isIntra = intraTypes.has(bits.readUnsigned());
  const sets = slices.setsOf(bits.readUnsigned());
  const orderBits = sets?.sps.orderBits ?? null;
  if (sets === undefined || orderBits === null || !isIntra || ((unit[0] ?? 0) & 0x60) === 0) return null;
  const { sps, pps } = sets;
  if (sps.isSeparate) bits.skip(2);
  const frameAt = bits.position;
  bits.skip(sps.frameNumBits);
  if (!sps.isFrameOnly && bits.read(1) === 1) return null;
  const idAt = bits.position;
  bits.skip(orderBits);
  const orderEnd = bits.position;
  if (pps.hasBottomOrder) bits.readSigned();
  if (pps.hasRedundant) bits.readUnsigned();
  const markingAt = bits.position;
  readMarking(bits);
  const markingEnd = bits.position;
  // slice_qp_delta, disable_deblocking_filter_idc and its offsets.
  bits.readSigned();
  if (pps.hasDeblocking && bits.readUnsigned() !== 1) for (let i = 0; i < 2; i++) bits.readSigned();
  if (bits.isOverrun) return null;
  const writer = createBitWriter(payload.length + 16);
  writer.write((unit[0]! & 0xe0) | idrType, 8);
  writer.copy(payload, 8, frameAt);
  writer.write(0, sps.frameNumBits);
  writer.copy(payload, frameAt + sps.frameNumBits, idAt);
  writer.writeUnsigned(id);
  writer.write(0, orderBits);
  writer.copy(payload, orderEnd, markingAt);
  // no_output_of_prior_pics_flag, long_term_reference_flag.
  writer.write(0, 2);
  writer.copy(payload, markingEnd, bits.position);
  if (pps.isCabac) writer.align();
  writer.copy(payload, pps.isCabac ? 8 * Math.ceil(bits.position / 8) : bits.position, 8 * payload.length);
  const bytes = writer.bytes();
  return escapeNal(bytes.subarray(0, trimZeros(bytes, 0, bytes.length)));
}

function createBitWriter(maxBytes: number) {
  const bytes = Buffer.alloc(maxBytes);
  let position = 0;
  const writeBit = (bit: number): void => {
    if (bit !== 0) bytes[position >> 3]! |= 0x80 >> (position & 7);
    position += 1;
  };
  const write = (value: number, count: number): void => {
    for (let i = count - 1; i >= 0; i--) writeBit((value >> i) & 1);
  };
  return {
    write,
    /** Writes an Exp-Golomb code `ue(v)`. */
    writeUnsigned(value: number): void {
      const length = 32 - Math.clz32(value + 1);
      write(0, length - 1);
      write(value + 1, length);
    },
    /** Fills the byte with ones (cabac_alignment_one_bit). */
    align(): void {
      for (let left = -position & 7; left > 0; left--) writeBit(1);
    },
    copy(from: Buffer, start: number, end: number): void {
      if (((position | start | end) & 7) === 0) {
        from.copy(bytes, position >> 3, start >> 3, end >> 3);
        position += end - start;
        return;
      }
      for (let at = start; at < end; at++) writeBit((from[at >> 3]! >> (7 - (at & 7))) & 1);
    },
    bytes: (): Buffer => bytes.subarray(0, Math.ceil(position / 8)),
  };
}
