import { frameIn } from "../codecs/audio-syntax.ts";
import { mpegAudio } from "../codecs/mpeg-audio.ts";
import { writeAt } from "../mp4/write/background-writes.ts";
import { decoderDelay, mp3TableAt, readMp3Table } from "../packed-audio/mp3-table.ts";
import { writeId3 } from "../tags/id3.ts";
import { type AudioFile, type AudioFileTarget, type AudioTrack, damagedAudioError } from "./audio-file.ts";

const maxDelay = 4095;

/**
 * Opens an MP3 file: a tag (ID3v2.4), a first frame that says how much there is and what of it is presented, and the frames. A first frame
 * of the source that says that itself stays instead. What is not presented is said only if both ends can be: decoders leave out 529 samples at
 * the start of a file that says so of its end.
 */
export function openMp3File({ delayS }: AudioTrack, { fd, additions, durationS, isCut }: AudioFileTarget): AudioFile {
  const tag = writeId3(additions, durationS);
  writeAt(fd, tag, 0);
  let info: InfoFrame | null = null;
  let position = tag.length;
  let samples = 0;
  const offsets: number[] = [];
  let isVariable = false;
  let firstRate: number | undefined;
  let sampleRate = 1;
  return {
    add(packet) {
      const frame = frameIn(mpegAudio, packet, 0);
      if (frame === null || !isLayer3(packet)) {
        throw damagedAudioError("a packet is no frame of MPEG audio layer III");
      }
      if (firstRate === undefined) {
        info = createInfoFrame(packet);
        position += info?.bytes.length ?? 0;
      }
      const rate = packet[2]! >> 4;
      isVariable ||= rate !== (firstRate ??= rate);
      offsets.push(position - tag.length);
      writeAt(fd, packet, position);
      position += packet.length;
      samples += frame.samples;
      ({ sampleRate } = frame);
      return frame.samples / sampleRate;
    },
    finish(trimmedOf) {
      if (info === null && isCut) throw damagedAudioError("its first frame says what it had before it was cut");
      if (info === null) return;
      const toSamples = (seconds: number) => Math.round(seconds * sampleRate);
      const delay = delayS === null ? null : toSamples(delayS);
      const trimmed = toSamples(trimmedOf(samples / sampleRate));
      fillInfoFrame(info, { offsets, size: position - tag.length, isVariable, delay, trimmed });
      writeAt(fd, info.bytes, tag.length);
    },
  };
}

/** Returns whether an MP3 file can state a delay; decoders add one in any case. @param frame One of its frames. */
export function canStateDelay(frame: Uint8Array, delayS: number): boolean {
  const { sampleRate = 0 } = frameIn(mpegAudio, frame, 0) ?? {};
  return Math.round(delayS * sampleRate) >= decoderDelay;
}

interface InfoFrame {
  bytes: Buffer;
  /** Where its table starts: after the header and what a frame of audio has. */
  at: number;
}

const isLayer3 = (frame: Uint8Array): boolean => ((frame[1]! >> 1) & 3) === 1;

/** Of the table: "Xing", flags, numbers of frames and bytes, 100 positions, quality; and what LAME added. */
const tableBytes = 156;
const lameAt = 120;

/** Returns an empty frame like the first one of the audio; `null` if that is such a frame itself. */
function createInfoFrame(first: Uint8Array): InfoFrame | null {
  const [b0 = 0, b1 = 0, b2 = 0, b3 = 0] = first;
  const at = mp3TableAt(first);
  if (readMp3Table(first, 0) !== null) return null;
  for (let rate = 1; rate < 15; rate++) {
    // Without a checksum, not padded.
    const header = Uint8Array.of(b0, b1 | 1, (rate << 4) | (b2 & 0x0c), b3);
    const frame = frameIn(mpegAudio, header, 0);
    if (frame === null || frame.size < at + tableBytes) continue;
    const bytes = Buffer.alloc(frame.size);
    bytes.set(header);
    return { bytes, at };
  }
  return null;
}

interface InfoFields {
  /** Of the frames, from the start of the first frame of the file. */
  offsets: readonly number[];
  /** Of all frames, bytes. */
  size: number;
  isVariable: boolean;
  delay: number | null;
  trimmed: number;
}

/** Fills in the table (https://gabriel.mp3-tech.org/mp3infotag.html). */
function fillInfoFrame({ bytes, at }: InfoFrame, fields: InfoFields): void {
  const { offsets, size, isVariable, delay, trimmed } = fields;
  const hasAll = 0x0f;
  bytes.write(isVariable ? "Xing" : "Info", at, "latin1");
  bytes.writeUInt32BE(hasAll, at + 4);
  bytes.writeUInt32BE(offsets.length, at + 8);
  bytes.writeUInt32BE(size, at + 12);
  for (let percent = 0; percent < 100; percent++) {
    const offset = offsets[Math.floor((offsets.length * percent) / 100)] ?? 0;
    bytes[at + 16 + percent] = Math.min(255, Math.floor((offset * 256) / size));
  }
  const [start, end] = [(delay ?? 0) - decoderDelay, trimmed + decoderDelay];
  if (delay === null || start < 0 || start > maxDelay || end > maxDelay) {
    if ((delay ?? 0) === 0 && trimmed === 0) return;
    throw damagedAudioError(
      `an MP3 file cannot say that ${delay ?? 0} samples at its start and ${trimmed} at its end are left out`,
    );
  }
  // Decoders look for this name before they believe the delays.
  bytes.write("LAME", at + lameAt, "latin1");
  bytes.writeUIntBE(start * 4096 + end, at + lameAt + 21, 3);
  bytes.writeUInt32BE(size, at + lameAt + 28);
  bytes.writeUInt16BE(crc16(bytes.subarray(0, at + lameAt + 34)), at + lameAt + 34);
}

/** CRC-16 with the polynomial 0x8005, reflected. */
function crc16(bytes: Uint8Array): number {
  let rest = 0;
  for (const byte of bytes) {
    rest ^= byte;
    for (let bit = 0; bit < 8; bit++) rest = rest & 1 ? (rest >>> 1) ^ 0xa001 : rest >>> 1;
  }
  return rest;
}
