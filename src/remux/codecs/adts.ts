import { ServiceError } from "../../model/errors.ts";
import { aacRates } from "../codec-name.ts";
import { makeAudioEntry, makeEsds } from "../mp4/sample-entry.ts";
import type { AudioFrame, AudioSyntax } from "./audio-syntax.ts";
import { createBitReader, createBitWriter } from "../nal/bits.ts";

const aac = 0x40;
const samplesPerBlock = 1024;

/** AAC in ADTS frames (ISO/IEC 14496-3 §1.A.2.2). */
export const adts: AudioSyntax = {
  firstByte: 0xff,
  headerLength: 7,
  frameAt(bytes, at, isLast) {
    if (at + 7 > bytes.length) return isLast ? null : "incomplete";
    return readFrame(bytes, at);
  },
};

function readFrame(bytes: Uint8Array, at: number): AudioFrame | null {
  const [b0 = 0, b1 = 0, b2 = 0, b3 = 0, b4 = 0, b5 = 0, b6 = 0] = bytes.subarray(at, at + 7);
  if (b0 !== 0xff || (b1 & 0xf6) !== 0xf0) return null;
  const headerSize = b1 & 1 ? 7 : 9;
  const rateIndex = (b2 >> 2) & 15;
  const sampleRate = aacRates[rateIndex];
  const layout = ((b2 & 1) << 2) | (b3 >> 6);
  const size = ((b3 & 3) << 11) | (b4 << 3) | (b5 >> 5);
  if (sampleRate === undefined || size <= headerSize) return null;
  const objectType = (b2 >> 6) + 1;
  const hasChecksums = headerSize === 9;
  const blocks = (b6 & 3) + 1;
  const isDivided = hasChecksums && blocks > 1;
  return {
    size,
    headerSize,
    sampleRate,
    samples: samplesPerBlock * blocks,
    key: `aac ${objectType} ${rateIndex} ${layout}${isDivided ? " divided" : ""}`,
    makeSampleEntry() {
      if (isDivided) throw dividedError();
      const speakers = layout === 0 ? readProgramConfig(Buffer.from(bytes.subarray(at + headerSize))) : null;
      const channels = speakers?.channels ?? (layout === 7 ? 8 : layout);
      const configuration = makeEsds(aac, makeSpecific({ objectType, rateIndex, layout }, speakers));
      return makeAudioEntry({ type: "mp4a", configuration, channels, sampleRate });
    },
  };
}

/** Checksums are between the blocks of such a frame (§1.A.2.2.4), which a sample cannot have. */
function dividedError(): ServiceError {
  return new ServiceError(
    "format_unavailable",
    "AAC with several blocks and checksums in a frame cannot be put into MP4",
  );
}

/** An AudioSpecificConfig (§1.6.2.1) with its GASpecificConfig (§4.4.1). */
function makeSpecific(
  { objectType, rateIndex, layout }: Record<"objectType" | "rateIndex" | "layout", number>,
  speakers: ProgramConfig | null,
): Buffer {
  const bits = createBitWriter(2 + longest);
  bits.write(objectType, 5);
  bits.write(rateIndex, 4);
  bits.write(layout, 4);
  bits.write(0, 3);
  if (speakers === null) return bits.bytes();
  bits.copy(speakers.frame, speakers.start, speakers.end);
  const withoutComment = Buffer.from([0]);
  return Buffer.concat([bits.bytes(), withoutComment]);
}

/** A channel layout that the stream itself lists, since it has no number in the standard. */
interface ProgramConfig {
  channels: number;
  /** What has the element's fields, from element_instance_tag (bit `start`) to before its byte alignment. */
  frame: Buffer;
  start: number;
  end: number;
}

const elementId = 5;
const longest = 128;

/**
 * Returns the program_config_element (ISO/IEC 14496-3 §4.4.1.1, table 4.2) at the start of an AAC frame;
 * `null` if the frame starts with something else.
 */
function readProgramConfig(frame: Buffer): ProgramConfig | null {
  const bits = createBitReader(frame.subarray(0, longest));
  if (bits.read(3) !== elementId) return null;
  const start = bits.position;
  bits.skip(4 + 2 + 4);
  const [front, side, back] = [bits.read(4), bits.read(4), bits.read(4)];
  const [lfe, data, coupling] = [bits.read(2), bits.read(3), bits.read(4)];
  for (const width of [4, 4, 3]) if (bits.read(1) === 1) bits.skip(width);
  let channels = lfe;
  for (let i = front + side + back; i > 0; i--) {
    channels += 1 + bits.read(1);
    bits.skip(4);
  }
  bits.skip(lfe * 4 + data * 4 + coupling * 5);
  return bits.isOverrun ? null : { channels, frame, start, end: bits.position };
}
