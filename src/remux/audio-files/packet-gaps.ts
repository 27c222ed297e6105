import { readFrameHeader } from "../codecs/flac.ts";
import { opusSamples } from "../codecs/opus.ts";
import { createVorbisCounter } from "../codecs/vorbis.ts";
import type { FileWindow } from "../open-file.ts";
import { codecOf, type OggPage, readPage } from "./ogg-pages.ts";

/** Returns how many samples a packet has by its first bytes; 0 of one without audio. */
type SamplesIn = (head: Buffer) => number;

/** How far a stream has been read. */
interface OggStream {
  /** Its packets with headers so far; once they are known, what tells how long packets last. */
  headers: Buffer[];
  samplesIn: SamplesIn | null;
  /** The first bytes of the packet that continues, in parts, and its length. */
  head: Buffer[];
  bytes: number;
  /** Samples of packets since the last page with a granule position, and how many the longest packet and the latest one had. */
  samples: number;
  longest: number;
  latest: number;
  /** That position; `null`: none after the first audio yet. */
  granule: number | null;
}

/** What tells how many samples a packet has: of Opus 2 bytes (RFC 6716 §3.1, §3.2.5), of Vorbis 1, of FLAC a header. */
const headBytes = 16;
/** Headers with more are not read; that of Vorbis with its codebooks has a few thousand. */
const maxHeaderBytes = 1 << 18;
/** A recorder that leaves out silence has more gaps. */
const maxGaps = (pages: number): number => 3 + pages / 100;

/**
 * Counts the places of an Ogg file at which packets of Opus, Vorbis or FLAC are missing although its pages are numbered in a row: a page ends later than the one
 * before and its packets say, by half a packet or more (RFC 7845 §4, Vorbis I §A.2, RFC 9639 §10.1). 0 if there are many: those were never sent.
 */
export function countPacketGaps(file: FileWindow): number {
  const streams = new Map<number, OggStream>();
  let [gaps, pages] = [0, 0];
  for (let page = readPage(file, 0); page !== undefined; page = readPage(file, page.end)) {
    if (page.isFirst) streams.set(page.serial, createStream());
    const stream = streams.get(page.serial);
    if (stream === undefined) continue;
    if (!readPackets(file, page, stream)) streams.delete(page.serial);
    if (page.granule === null || stream.longest === 0) continue;
    const { granule, samples, longest, latest } = stream;
    // The end of the last packets may be left out; GStreamer counts the last one of FLAC as if it was as long as the others.
    const extra = page.isLast ? longest - latest : 0;
    if (granule !== null && page.granule - granule - samples - extra >= longest / 2) gaps += 1;
    Object.assign(stream, { granule: page.granule, samples: 0 });
    pages += 1;
  }
  return gaps <= maxGaps(pages) ? gaps : 0;
}

function createStream(): OggStream {
  return { headers: [], samplesIn: null, head: [], bytes: 0, samples: 0, longest: 0, latest: 0, granule: null };
}

/** Returns whether it may be a stream of these codecs. */
function readPackets(file: FileWindow, { segments, body }: OggPage, stream: OggStream): boolean {
  const page = file.at(body);
  let at = 0;
  for (const size of segments) {
    const most = stream.samplesIn === null ? maxHeaderBytes : headBytes;
    const needed = Math.min(size, most - stream.bytes);
    if (needed > 0) stream.head.push(Buffer.from(page.subarray(at, at + needed)));
    stream.bytes += size;
    at += size;
    if (size === 255) continue;
    const head = Buffer.concat(stream.head);
    stream.head = [];
    stream.bytes = 0;
    if (head.length > 0 && !readPacket(head, stream)) return false;
  }
  return true;
}

const maxHeaders = 3;

function readPacket(head: Buffer, stream: OggStream): boolean {
  if (stream.samplesIn === null) {
    stream.headers.push(head);
    stream.samplesIn = counterOf(stream.headers);
    return stream.samplesIn !== null || (isKnown(stream.headers[0]!) && stream.headers.length < maxHeaders);
  }
  const samples = stream.samplesIn(head);
  stream.samples += samples;
  stream.latest = samples;
  stream.longest = Math.max(stream.longest, samples);
  return true;
}

const isKnown = (first: Buffer): boolean => codecOf(first) !== undefined;

/** Returns what tells how long packets last after these headers; `null`: there are others, or it is another codec. */
function counterOf(headers: readonly Buffer[]): SamplesIn | null {
  const [first, , setup] = headers;
  const name = first!.toString("latin1", 0, 8);
  if (name === "OpusHead" && headers.length === 2) return opusSamples;
  if (name.startsWith("\x01vorbis") && setup !== undefined) {
    return createVorbisCounter(first!, setup)?.samplesIn ?? null;
  }
  // Its further headers do not begin as a frame does.
  const isFlac = name.startsWith("\x7fFLAC") && first!.length >= flacBlockSizeAt + 2;
  const blockSize = isFlac ? first!.readUInt16BE(flacBlockSizeAt) : 0;
  return isFlac ? (head) => readFrameHeader(head, blockSize)?.samples ?? 0 : null;
}

/** In the mapping header (RFC 9639 §10.1), after what is before STREAMINFO. */
const flacBlockSizeAt = 17;
