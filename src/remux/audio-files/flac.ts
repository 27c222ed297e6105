import { writeAt } from "../mp4/write/background-writes.ts";
import { readFlacBlocks, writeFlacStart } from "../tags/flac-blocks.ts";
import { readFrameHeader } from "../codecs/flac.ts";
import { createFlacNumbering } from "./flac-numbers.ts";
import { type AudioFile, type AudioFileTarget, type AudioTrack, damagedAudioError } from "./audio-file.ts";

/** In STREAMINFO (RFC 9639 §8.2), after the signature and a header: the sizes of blocks and frames, the rate, and 36 bits that count samples. */
const blockSizeAt = 8;
const frameSizeAt = 12;
const rateAt = 18;
const samplesAt = 21;
/** A digest of all samples is last. */
const digestEnd = 42;

/**
 * Opens a FLAC file; what its metadata say already is kept unless it is replaced. A number of samples that is unknown is
 * counted.
 * @throws ServiceError `upstream_invalid` if it has no STREAMINFO.
 */
export function openFlacFile(
  { configuration, delayS }: AudioTrack,
  { fd, additions, isCut }: AudioFileTarget,
): AudioFile {
  const read = readFlacBlocks((at, length) => configuration.subarray(at, at + length));
  const start = read && writeFlacStart(read.blocks, additions);
  if (start === undefined) throw damagedAudioError("its FLAC has no metadata");
  const blockSize = start.readUInt16BE(blockSizeAt);
  const rate = start.readUIntBE(rateAt, 3) >> 4;
  let position = start.length;
  let samples = 0;
  let isChanged = isCut;
  let hasEnded = false;
  const number = createFlacNumbering();
  writeAt(fd, start, 0);
  return {
    add(packet) {
      const frame = Buffer.from(packet);
      const header = readFrameHeader(frame, blockSize);
      if (hasEnded) throw damagedAudioError("only the last frame of FLAC may be shorter than the others");
      // Of blocks of one size, a number says how many samples come before it.
      hasEnded = header !== null && header.samples < blockSize && (frame[1]! & 1) === 0;
      const written = header === null ? frame : number(frame, header);
      isChanged ||= written !== frame;
      writeAt(fd, written, position);
      position += written.length;
      samples += header?.samples ?? 0;
    },
    finish(trimmedOf) {
      const isTrimmed = delayS !== null || trimmedOf(samples / rate) > 0;
      if (isTrimmed) throw damagedAudioError("FLAC cannot say that a part of it is not presented");
      if (isChanged) {
        // Of the source, which has others.
        start[samplesAt]! &= 0xf0;
        start.fill(0, samplesAt + 1, digestEnd);
        start.fill(0, frameSizeAt, rateAt);
      }
      const isKnown = (start[samplesAt]! & 15) !== 0 || start.readUInt32BE(samplesAt + 1) !== 0;
      if (isKnown) return;
      start[samplesAt]! |= Math.floor(samples / 2 ** 32) & 15;
      start.writeUInt32BE(samples % 2 ** 32, samplesAt + 1);
      writeAt(fd, start, 0);
    },
  };
}
