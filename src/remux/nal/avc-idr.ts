import { type AvcSlices, readMarking, skipToHeaderEnd } from "./avc-slices.ts";
import { createBitReader, createBitWriter } from "./bits.ts";
import { escapeNal, trimZeros, unescapeNal } from "./nal-units.ts";

const idrType = 5;
const intraType = 2;

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
  const isIntra = bits.readUnsigned() % 5 === intraType;
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
  skipToHeaderEnd(bits, intraType, pps);
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
