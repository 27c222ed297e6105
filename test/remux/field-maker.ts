/** A coded picture of synthetic H.264 of 32 × 32 pixels. */
export interface CodedPicture {
  /** Default: `frame`, of two fields that are coded together. */
  structure?: "top" | "bottom" | "frame";
  /** `skipped`: a copy of the picture before. */
  kind: "idr" | "intra" | "skipped";
  frameNum: number;
  /** pic_order_cnt_lsb. */
  order: number;
  /** Default: true. */
  isReference?: boolean;
  /** Of all pixels. */
  grey?: number;
  /** With parameter sets before it; default: of an IDR picture. */
  hasSets?: boolean;
  idrPictureId?: number;
  /** After it, numbers start again (memory_management_control_operation 5). */
  isReset?: boolean;
}

export interface FieldCoding {
  /** mb_adaptive_frame_field_flag. */
  isMbaff?: boolean;
  /** frame_mbs_only_flag. */
  isFrameOnly?: boolean;
  /** The sequence says that it has 50 fields a second; default: nothing of that. */
  isTimed?: boolean;
}

const startCode = Buffer.from([0, 0, 0, 1]);
const mapUnits = 2;

/** Creates a maker of access units (Main profile, CAVLC) that decoders read. */
export function createFieldMaker({ isMbaff = false, isFrameOnly = false, isTimed = false }: FieldCoding = {}) {
  const sets = [writeSequenceSet(isMbaff, isFrameOnly, isTimed), writePictureSet()];
  const delimiter = Buffer.from([9, 0xf0]);
  return (picture: CodedPicture): Buffer => {
    const hasSets = picture.hasSets ?? picture.kind === "idr";
    const units = [delimiter, ...(hasSets ? sets : []), writeSlice(picture, isMbaff, isFrameOnly)];
    return Buffer.concat(units.flatMap((unit) => [startCode, unit]));
  };
}

function writeSequenceSet(isMbaff: boolean, isFrameOnly: boolean, isTimed: boolean): Buffer {
  const bits = createBitWriter();
  for (const byte of [77, 0, 30]) bits.fixed(byte, 8);
  // Its id, log2_max_frame_num_minus4, pic_order_cnt_type, log2_max_pic_order_cnt_lsb_minus4, frames of reference.
  for (const value of [0, 0, 0, 4, 2]) bits.unsigned(value);
  bits.fixed(0, 1);
  bits.unsigned(1);
  bits.unsigned(isFrameOnly ? 1 : mapUnits / 2 - 1);
  bits.fixed(isFrameOnly ? 1 : 0, 1);
  if (!isFrameOnly) bits.fixed(isMbaff ? 1 : 0, 1);
  // direct_8x8_inference_flag, no cropping, and the VUI: of its first flags only timing_info_present_flag is set.
  bits.fixed(isTimed ? 0b101 : 0b100, 3);
  if (isTimed) {
    bits.fixed(0b00001, 5);
    for (const half of [0, 1, 0, 50]) bits.fixed(half, 16);
    bits.fixed(0, 6);
  }
  return bits.nal(0x67);
}

function writePictureSet(): Buffer {
  const bits = createBitWriter();
  bits.unsigned(0);
  bits.unsigned(0);
  bits.fixed(0, 2);
  for (const value of [0, 0, 0]) bits.unsigned(value);
  bits.fixed(0, 3);
  for (const value of [0, 0, 0]) bits.unsigned(value);
  bits.fixed(0, 3);
  return bits.nal(0x68);
}

function writeSlice(picture: CodedPicture, isMbaff: boolean, isFrameOnly: boolean): Buffer {
  const { structure = "frame", kind, frameNum, order, isReference = true, grey = 128, idrPictureId = 0 } = picture;
  const bits = createBitWriter();
  const isIdr = kind === "idr";
  const isIntra = kind !== "skipped";
  bits.unsigned(0);
  bits.unsigned(isIntra ? 7 : 5);
  bits.unsigned(0);
  bits.fixed(frameNum, 4);
  if (!isFrameOnly) bits.fixed(structure === "frame" ? 0 : 1, 1);
  if (structure !== "frame") bits.fixed(structure === "bottom" ? 1 : 0, 1);
  if (isIdr) bits.unsigned(idrPictureId);
  bits.fixed(order, 8);
  // num_ref_idx_active_override_flag, ref_pic_list_modification_flag_l0.
  if (!isIntra) bits.fixed(0, 2);
  if (isIdr) bits.fixed(0, 2);
  else if (picture.isReset) for (const code of ["1", "00110", "1"]) bits.fixed(Number.parseInt(code, 2), code.length);
  else if (isReference) bits.fixed(0, 1);
  bits.unsigned(0);
  writeMacroblocks(bits, picture, structure === "frame" ? 4 : 2, structure === "frame" && isMbaff, grey);
  return bits.nal((isReference ? 0x60 : 0) | (isIdr ? 5 : 1));
}

function writeMacroblocks(
  bits: ReturnType<typeof createBitWriter>,
  { kind }: CodedPicture,
  count: number,
  isPaired: boolean,
  grey: number,
): void {
  if (kind === "skipped") return bits.unsigned(count);
  const pcm = 25;
  for (let i = 0; i < count; i++) {
    if (isPaired && i % 2 === 0) bits.fixed(0, 1);
    bits.unsigned(pcm);
    bits.align();
    for (let pixel = 0; pixel < 384; pixel++) bits.fixed(pixel < 256 ? grey + (pixel % 16) : 128, 8);
  }
}

function createBitWriter() {
  const written: number[] = [];
  const fixed = (value: number, count: number): void => {
    for (let bit = count - 1; bit >= 0; bit--) written.push(Math.floor(value / 2 ** bit) & 1);
  };
  const align = (): void => {
    while (written.length % 8 !== 0) written.push(0);
  };
  return {
    fixed,
    align,
    /** Writes `ue(v)`; `se(v)` of 0 is the same. */
    unsigned(value: number): void {
      const length = Math.floor(Math.log2(value + 1));
      fixed(0, length);
      fixed(value + 1, length + 1);
    },
    /** Ends the payload; returns the NAL unit, escaped. */
    nal(header: number): Buffer {
      written.push(1);
      align();
      const unit = [header];
      for (let at = 0; at < written.length; at += 8) {
        const byte = Number.parseInt(written.slice(at, at + 8).join(""), 2);
        if (byte <= 3 && unit.at(-1) === 0 && unit.at(-2) === 0 && unit.length > 2) unit.push(3);
        unit.push(byte);
      }
      return Buffer.from(unit);
    },
  };
}
