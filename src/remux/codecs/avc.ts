import { box } from "../mp4/boxes.ts";
import { avcType, avcTypeOf, readAvcSps } from "../nal/avc-sps.ts";
import { createBitReader } from "../nal/bits.ts";
import { unescapeNal } from "../nal/nal-units.ts";
import { createAvcPictureReader, hasHeader } from "./avc-pictures.ts";
import { describeVideo, nal, type VideoSyntax, withLength } from "./video-syntax.ts";

/** Roles by nal_unit_type (ISO/IEC 14496-10 table 7-1, §7.4.1.2.3). */
const rolesByType: readonly number[] = [
  0, // unspecified
  nal.picture,
  nal.picture, // data partitions: A
  nal.picture,
  nal.picture,
  nal.picture | nal.sync,
  nal.start | nal.message,
  nal.start | nal.parameters,
  nal.start | nal.parameters,
  nal.start | nal.filler, // access unit delimiter
  0, // end of sequence
  0, // end of stream
  nal.filler,
  0,
  0, // prefix: before every slice of a scalable stream
  nal.start,
  nal.start,
  nal.start,
  nal.start,
];

export const avc: VideoSyntax = {
  headerLength: 2,
  createPictureReader: () => createAvcPictureReader(avc.isRecoveryPoint),
  classify(bytes, at) {
    const unitType = (bytes[at] ?? 0) & 0x1f;
    const role = rolesByType[unitType] ?? 0;
    const isFirstOfPicture = hasHeader(bytes[at] ?? 0) && ((bytes[at + 1] ?? 0) & 0x80) !== 0;
    return isFirstOfPicture ? role | nal.start : role;
  },
  isRecoveryPoint(unit) {
    const recoveryPoint = 6;
    return hasMessage(unescapeNal(unit.subarray(1)), recoveryPoint);
  },
  identify(unit) {
    if (avcTypeOf(unit) === avcType.sps) {
      const sps = readAvcSps(unit);
      return sps && { level: "sequence", id: sps.id };
    }
    const id = createBitReader(unescapeNal(unit.subarray(1, 12))).readUnsigned();
    return id < 256 ? { level: "picture", id } : null;
  },
  describe(sets) {
    const sequences = sets.filter(({ level }) => level === "sequence").slice(-31);
    const pictures = sets.filter(({ level }) => level === "picture").slice(-255);
    const latest = sequences.at(-1);
    const sps = latest && readAvcSps(latest.unit);
    if (!sps || pictures.length === 0) return null;
    const configuration = box(
      "avcC",
      Buffer.from([1, ...sps.profile, 0xff, 0xe0 | sequences.length]),
      ...sequences.map(withLength),
      Buffer.from([pictures.length]),
      ...pictures.map(withLength),
      ...(sps.isHigh ? [Buffer.from([0xfc | sps.chroma, 0xf8 | sps.lumaDepth, 0xf8 | sps.chromaDepth, 0])] : []),
    );
    return describeVideo("avc1", configuration, sps);
  },
};

/** Returns whether an SEI payload (ISO/IEC 14496-10 §7.3.2.3) has a message of type `wanted`. */
function hasMessage(payload: Uint8Array, wanted: number): boolean {
  let at = 0;
  const readNumber = (): number => {
    let value = 0;
    while (payload[at] === 0xff) {
      value += 0xff;
      at++;
    }
    return value + (payload[at++] ?? 0);
  };
  const stopBit = 1;
  while (at + stopBit < payload.length) {
    const payloadType = readNumber();
    const payloadSize = readNumber();
    if (payloadType === wanted) return true;
    at += payloadSize;
  }
  return false;
}
