import { framesIn } from "../matroska/frames.ts";
import { opusRate, opusSamples } from "../codecs/opus.ts";
import { OggWriter } from "./ogg-pages.ts";
import { readComments, withoutChapters, withTagsAndCover, writeComments } from "../tags/vorbis-comments.ts";
import { type AudioFile, type AudioFileTarget, type AudioTrack, damagedAudioError } from "./audio-file.ts";

const minHeadBytes = 19;

/** Opens an Ogg file of Opus (RFC 7845). @throws ServiceError `upstream_invalid` if it has no header. */
export function openOpusFile({ configuration, delayS }: AudioTrack, { fd, additions }: AudioFileTarget): AudioFile {
  const head = Buffer.from(configuration);
  if (head.length < minHeadBytes || head.toString("latin1", 0, 8) !== "OpusHead") {
    throw damagedAudioError("its Opus has no header");
  }
  if (delayS !== null) head.writeUInt16LE(Math.min(Math.round(delayS * opusRate), 0xffff), 10);
  const comments = Buffer.concat([Buffer.from("OpusTags"), writeComments(withTagsAndCover(additions))]);
  const least = head.readUInt16LE(10);
  return openOggFile(fd, [head, comments], { samplesIn: opusSamples, sampleRate: opusRate, least });
}

/**
 * Opens an Ogg file of Vorbis (Ogg Vorbis I §A.2); what its comments say already is kept unless it is replaced.
 * @throws ServiceError `upstream_invalid` if its headers are damaged.
 */
export function openVorbisFile({ configuration }: AudioTrack, { fd, additions, isCut }: AudioFileTarget): AudioFile {
  // Matroska has its three headers as a block has three frames.
  const [id, stored, setup] = framesIn(configuration, xiphLacing).map((header) => Buffer.from(header));
  const counter = vorbisCounterOf(configuration);
  if (counter === undefined) throw damagedAudioError("its Vorbis has no headers");
  const known = readComments(stored!.subarray(signatureBytes));
  const kept = isCut && known !== undefined ? withoutChapters(known) : known;
  const comments = writeComments(withTagsAndCover(additions, kept));
  const written = Buffer.concat([Buffer.from("\x03vorbis"), comments, Buffer.of(1)]);
  return openOggFile(fd, [id!, written, setup!], { ...counter, least: 0 });
}

/** Returns a counter of the samples of Vorbis with these headers, laced as in Matroska; undefined if they are damaged. */
export function vorbisCounterOf(configuration: Uint8Array): ReturnType<typeof createVorbisCounter> {
  const [id, , setup] = framesIn(configuration, xiphLacing).map((header) => Buffer.from(header));
  return id && setup && createVorbisCounter(id, setup);
}

const signatureBytes = 7;
const xiphLacing = 2;

interface OggAudio {
  sampleRate: number;
  /** Returns how many samples a packet adds to those before. */
  samplesIn(packet: Uint8Array): number;
  /** What the last page has at least. */
  least: number;
}

/** The first header has a page of its own, and the first packet of audio begins one. */
function openOggFile(
  fd: number,
  [head, ...others]: readonly [Uint8Array, ...Uint8Array[]],
  { samplesIn, sampleRate, least }: OggAudio,
): AudioFile {
  const writer = new OggWriter(fd);
  writer.add(head, 0n, true);
  for (const [index, header] of others.entries()) writer.add(header, 0n, index === others.length - 1);
  let samples = 0;
  /** A page has about a second. */
  let paged = 0;
  // One packet is held back: only of the last one it is known how much of it is presented.
  let last: Uint8Array | undefined;
  return {
    add(packet) {
      if (last !== undefined) {
        const endsPage = samples - paged >= sampleRate;
        writer.add(last, BigInt(samples), endsPage);
        if (endsPage) paged = samples;
      }
      last = Uint8Array.from(packet);
      const added = samplesIn(packet);
      samples += added;
      return added / sampleRate;
    },
    finish(trimmedOf) {
      if (last === undefined) throw damagedAudioError("it has no media");
      const trimmed = Math.round(trimmedOf(samples / sampleRate) * sampleRate);
      writer.add(last, BigInt(Math.max(least, samples - trimmed)));
      writer.finish();
    },
  };
}

const idBytes = 30;

/**
 * Creates a counter of the samples that packets of Vorbis have (Vorbis I §4.3.8): a quarter of the sizes of two blocks that overlap.
 * Returns undefined if its headers are damaged.
 */
function createVorbisCounter(id: Buffer, setup: Buffer) {
  if (id.length < idBytes || id.toString("latin1", 0, 7) !== "\x01vorbis") return undefined;
  if (setup.toString("latin1", 0, 7) !== "\x05vorbis") return undefined;
  const isLong = readModes(setup);
  const sampleRate = id.readUInt32LE(12);
  if (isLong.length === 0 || sampleRate === 0) return undefined;
  const sizes = id.readUInt8(28);
  const [short, long] = [1 << (sizes & 15), 1 << (sizes >> 4)];
  const modeBits = 32 - Math.clz32(isLong.length - 1);
  let before: number | undefined;
  return {
    sampleRate,
    /** Returns how many samples a packet adds: none the first one. */
    samplesIn(packet: Uint8Array): number {
      const first = packet[0] ?? 1;
      // Not audio: decoders skip it.
      if ((first & 1) !== 0) return 0;
      const size = isLong[(first >> 1) & ((1 << modeBits) - 1)] ? long : short;
      const samples = before === undefined ? 0 : (before + size) / 4;
      before = size;
      return samples;
    },
  };
}

const maxModes = 64;
/** Of a mode (§4.2.4): its block flag, two types that are 0, and a mapping. */
const modeFields = { flag: 1, types: 32, mapping: 8 };
const countBits = 6;

/**
 * Returns which modes have long blocks. They come last in the setup header (§4.2.4), before its framing bit, and after parts that
 * only a decoder can read, so they are read from the end: their number comes before them.
 */
function readModes(setup: Buffer): boolean[] {
  const bit = (at: number): number => ((setup[at >> 3] ?? 0) >> (at & 7)) & 1;
  const number = (at: number, bits: number): number => {
    let value = 0;
    for (let i = bits - 1; i >= 0; i--) value = value * 2 + bit(at + i);
    return value;
  };
  let end = setup.length * 8 - 1;
  while (end > 0 && bit(end) === 0) end--;
  const length = modeFields.flag + modeFields.types + modeFields.mapping;
  let found: boolean[] = [];
  const modes: boolean[] = [];
  for (let at = end - length; at > 56 + countBits && modes.length < maxModes; at -= length) {
    if (number(at + modeFields.flag, modeFields.types) !== 0 || number(at + length - 8, 8) >= maxModes) break;
    modes.unshift(bit(at) === 1);
    // A later match is the right one: a mode may look like a number.
    if (number(at - countBits, countBits) === modes.length - 1) found = [...modes];
  }
  return found;
}
