import { type AvcSlices, finishSlice, readSliceMarking, sliceTypes } from "./avc-slices.ts";
import { avcType, isReference } from "./avc-sps.ts";
import { createBitWriter } from "./bits.ts";
import { unescapeNal } from "./nal-units.ts";

/**
 * Returns a slice of an intra frame of H.264, which is a reference and no IDR picture, as one of an IDR picture (ISO/IEC 14496-10
 * §7.3.3) that no other one refers to yet; `null`: it is another one.
 * @param id Differs from that of the IDR picture before.
 */
export function asIdrSlice(unit: Buffer, slices: AvcSlices, id: number): Buffer | null {
  const payload = unescapeNal(unit);
  const slice = slices.open(payload);
  const orderBits = slice?.sps.orderBits ?? null;
  if (slice === null || orderBits === null || slice.sliceType !== sliceTypes.i || !isReference(unit)) return null;
  const { bits, sps } = slice;
  const frameAt = bits.position;
  bits.skip(sps.frameNumBits);
  if (!sps.isFrameOnly && bits.read(1) === 1) return null;
  const idAt = bits.position;
  bits.skip(orderBits);
  const orderEnd = bits.position;
  const marking = readSliceMarking(slice, false);
  if (bits.isOverrun) return null;
  const writer = createBitWriter(payload.length + 16);
  writer.write((unit[0]! & 0xe0) | avcType.idr, 8);
  writer.copy(payload, 8, frameAt);
  writer.write(0, sps.frameNumBits);
  writer.copy(payload, frameAt + sps.frameNumBits, idAt);
  writer.writeUnsigned(id);
  writer.write(0, orderBits);
  writer.copy(payload, orderEnd, marking.start);
  // no_output_of_prior_pics_flag, long_term_reference_flag.
  writer.write(0, 2);
  return finishSlice(writer, payload, marking);
}
