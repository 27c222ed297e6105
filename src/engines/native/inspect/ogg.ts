import type { InputAudioTrack } from "mediabunny";
import { unlessUnreadable } from "../../../model/errors.ts";
import { vorbisCounterOf } from "../../../remux/matroska/vorbis.ts";
import { countOggPackets, type OggPage, pageEnd, readPage } from "../../../remux/audio-files/ogg-pages.ts";
import { opusRate, opusSamples } from "../../../remux/codecs/opus.ts";
import { createFileWindow, type FileWindow, openFile, readAt } from "../../../remux/open-file.ts";
import type { MediaInfo } from "../../engine.ts";
import { mediabunny } from "./local-input.ts";
import { fileType } from "../../../parsers/media-type.ts";

/** A page is at most 65,307 bytes long (RFC 3533 §6). */
const tailBytes = 128 << 10;

/**
 * Reads an Ogg file whose first stream is FLAC, Opus or Speex; undefined for any other. The duration is where the
 * last page of the longest stream ends.
 * @throws the file system's own errors.
 */
export function readOgg(path: string): MediaInfo | undefined {
  return readStream(path, sampleRate);
}

/** As `readOgg`, if the first stream is Vorbis, and has audio: the library reads none whose last page is cut off. */
export function readCutVorbis(path: string): MediaInfo | undefined {
  using file = openFile(path);
  const hasAudio = countOggPackets(createFileWindow(file))
    .values()
    .some((count) => count > 0);
  return hasAudio ? readStream(path, vorbisRate) : undefined;
}

/** @param rateOf Returns the sample rate that a first packet states; undefined if it is of another codec. */
function readStream(path: string, rateOf: (packet: Buffer) => number | undefined): MediaInfo | undefined {
  using file = openFile(path);
  const window = createFileWindow(file);
  let page = readPage(window, 0);
  const packet = page && firstPacket(window, page);
  if (page === undefined || packet === undefined || rateOf(packet) === undefined) return undefined;
  const tail = readAt(file, Math.max(0, file.size - tailBytes), tailBytes);
  let duration: number | null = null;
  // All streams that are multiplexed begin before any of them continues (RFC 3533 §4).
  do {
    const seconds = secondsOf(firstPacket(window, page), lastGranule(tail, page.serial));
    if (Number.isFinite(seconds) && seconds > (duration ?? 0)) duration = seconds;
    page = readPage(window, page.end);
  } while (page?.isFirst === true);
  return { ...fileType(isOpus(packet) ? "opus" : "ogg", false), duration, width: null, height: null };
}

/** Returns how long a stream lasts that begins with this packet, NaN if its codec is unknown. */
function secondsOf(packet: Buffer, granule: number): number {
  const rate = sampleRate(packet) ?? vorbisRate(packet) ?? NaN;
  return (granule - (isOpus(packet) ? packet.readUInt16LE(10) : 0)) / rate;
}

/** Returns the packet in the first page; some FLAC, as of VLC, has its stream information in a page of its own, which is added. */
function firstPacket(file: FileWindow, page: OggPage): Buffer {
  const bodyOf = ({ body, end }: OggPage) => Buffer.from(file.at(body).subarray(0, end - body));
  const packet = bodyOf(page);
  const next = packet.toString("latin1") === "fLaC" ? readPage(file, page.end) : undefined;
  return next === undefined ? packet : Buffer.concat([packet, bodyOf(next)]);
}

/** RFC 7845 §5.1. */
function isOpus(packet: Buffer): boolean {
  return packet.length >= 19 && packet.toString("latin1", 0, 8) === "OpusHead";
}

/** The mappings: https://xiph.org/flac/ogg_mapping.html and its forerunner, the manual of Speex §8. */
function sampleRate(packet: Buffer): number | undefined {
  if (isOpus(packet)) return 48_000;
  const start = packet.toString("latin1", 0, 8);
  const streamInfo = start.startsWith("\x7fFLAC") ? 17 : start.startsWith("fLaC") ? 8 : undefined;
  if (streamInfo !== undefined && packet.length >= streamInfo + 13) return packet.readUIntBE(streamInfo + 10, 3) >> 4;
  return start === "Speex   " && packet.length >= 40 ? packet.readUInt32LE(36) : undefined;
}

/** Vorbis I §4.2.2. */
function vorbisRate(packet: Buffer): number | undefined {
  return packet.length >= 30 && packet.toString("latin1", 0, 7) === "\x01vorbis" ? packet.readUInt32LE(12) : undefined;
}

/** Returns the granule position of the last page of a stream that is there as a whole; 0 if the end of the file has none. */
function lastGranule(bytes: Buffer, serial: number): number {
  for (let at = bytes.lastIndexOf("OggS"); at >= 0; at = bytes.lastIndexOf("OggS", at - 1)) {
    if (pageEnd(bytes, at) <= bytes.length && bytes.readUInt32LE(at + 14) === serial) {
      const granule = bytes.readBigInt64LE(at + 6);
      if (granule >= 0n) return Number(granule);
    }
    if (at === 0) break;
  }
  return 0;
}

/** Less than any packet lasts. */
const shortS = 1e-6;

/** Returns how much of the last packet of Opus or Vorbis in an Ogg file is not presented, as its last page says, seconds. */
export async function readOggPadding(track: InputAudioTrack): Promise<number> {
  const counter = await openCounter(track);
  const packets = new mediabunny.EncodedPacketSink(track);
  const last = counter === undefined ? null : await packets.getPacket(Number.POSITIVE_INFINITY);
  if (counter === undefined || last === null) return 0;
  const before = await packets.getPacket(last.timestamp - shortS);
  // How long one of Vorbis lasts depends on the one before.
  let samples = 0;
  for (const packet of [before, last]) if (packet !== null) samples = counter.samplesIn(packet.data);
  return Math.max(0, samples / counter.sampleRate - last.duration);
}

async function openCounter(track: InputAudioTrack) {
  const codec = await track.getCodec();
  if (codec === "opus") return { sampleRate: opusRate, samplesIn: opusSamples };
  const { description } = (await track.getDecoderConfig()) ?? {};
  if (codec !== "vorbis" || !(description instanceof Uint8Array)) return undefined;
  return unlessUnreadable(() => vorbisCounterOf(description));
}
