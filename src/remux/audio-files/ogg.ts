import { framesIn } from "../matroska/lacing.ts";
import { OggWriter } from "../ogg/pages.ts";
import { readComments, withoutChapters, withTagsAndCover, writeComments } from "../tags/vorbis-comments.ts";
import { type AudioFile, type AudioFileTarget, type AudioTrack, damagedAudioError } from "./audio-file.ts";
import { createVorbisCounter } from "./vorbis.ts";

/** Of all Opus, whatever it was made from (RFC 7845 §4). */
export const opusRate = 48_000;
const minHeadBytes = 19;

/**
 * Opens an Ogg file of Opus (RFC 7845).
 * @throws ServiceError `upstream_invalid` if it has no header.
 */
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

/** Returns how many samples a packet of Opus has, by its first bytes (RFC 6716 §3.1). */
export function opusSamples(packet: Uint8Array): number {
  const [first = 0, second = 0] = packet;
  const config = first >> 3;
  const frameMs =
    config < 12 ? [10, 20, 40, 60][config % 4]! : config < 16 ? [10, 20][config % 2]! : [2.5, 5, 10, 20][config % 4]!;
  const code = first & 3;
  const frames = packet.length === 0 ? 0 : code === 0 ? 1 : code < 3 ? 2 : second & 0x3f;
  return (frames * frameMs * opusRate) / 1000;
}
