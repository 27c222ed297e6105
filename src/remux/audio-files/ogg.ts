import { vorbisCounterOf, vorbisHeaders } from "../matroska/vorbis.ts";
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
  const [id, stored, setup] = vorbisHeaders(configuration);
  const counter = vorbisCounterOf(configuration);
  if (counter === undefined) throw damagedAudioError("its Vorbis has no headers");
  const known = readComments(stored!.subarray(signatureBytes));
  const kept = isCut && known !== undefined ? withoutChapters(known) : known;
  const comments = writeComments(withTagsAndCover(additions, kept));
  const written = Buffer.concat([Buffer.from("\x03vorbis"), comments, Buffer.of(1)]);
  return openOggFile(fd, [id!, written, setup!], { ...counter, least: 0 });
}

const signatureBytes = 7;

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
