import { type Additions, boundAdditions } from "../additions.ts";
import { damagedMatroskaError, elementsIn, ids } from "../matroska/elements.ts";
import { type ChosenTracks, chosenBlocks, readBytes } from "../matroska/copy.ts";
import { framesIn } from "../matroska/lacing.ts";
import { withTagsAndCover, writeComments } from "../tags/vorbis-comments.ts";
import { OggWriter } from "./pages.ts";

/** Of all Opus, whatever it was made from (RFC 7845 §4). */
const samplesPerS = 48_000;
const pageSamples = samplesPerS;

/** Whether these are one track of Opus, whose decoder is set up as in Ogg. */
export function isOpus({ tracks }: ChosenTracks): boolean {
  return tracks.length === 1 && tracks[0]?.codecId === "A_OPUS";
}

/**
 * Writes a track of Opus from Matroska or WebM as an Ogg file (RFC 7845), packet by packet: what is not presented at its
 * start and end is the same. Each step writes a bounded part.
 *
 * @param fd The new file, open for writing.
 * @throws ServiceError `upstream_invalid` if it is damaged or has no header of Opus; the file system's own errors.
 */
export function* writeOggOpus(file: ChosenTracks, fd: number, additions: Additions): Generator<undefined, void> {
  const head = readHead(file);
  const preSkip = head.readUInt16LE(10);
  const writer = new OggWriter(fd);
  writer.add(head, 0n, true);
  const comments = writeComments(withTagsAndCover(boundAdditions(additions, Infinity)));
  writer.add(Buffer.concat([Buffer.from("OpusTags"), comments]), 0n, true);
  let samples = 0;
  let paged = 0;
  let discarded = 0;
  let count = 0;
  // One packet is held back: only the last one tells how much of it is presented.
  let last: Uint8Array | undefined;
  for (const block of chosenBlocks(file)) {
    for (const packet of framesIn(readBytes(file.fd, block), block.flags)) {
      if (last !== undefined) {
        const endsPage = samples - paged >= pageSamples;
        writer.add(last, BigInt(samples), endsPage);
        if (endsPage) paged = samples;
      }
      last = packet;
      samples += samplesIn(packet);
    }
    discarded = block.discardNs;
    if (++count % stepBlocks === 0) yield;
  }
  if (last === undefined) throw damagedMatroskaError("it has no media");
  const trimmed = Math.round((Math.max(0, discarded) * samplesPerS) / 1e9);
  writer.add(last, BigInt(Math.max(preSkip, samples - trimmed)));
  writer.finish();
}

const stepBlocks = 256;
const minHeadBytes = 19;

function readHead({ fd, source, tracks: [track] }: ChosenTracks): Buffer {
  const child = elementsIn(source, track!.entry).find(({ id }) => id === ids.codecPrivate);
  const head = child === undefined ? Buffer.alloc(0) : Buffer.from(readBytes(fd, child));
  if (head.length >= minHeadBytes && head.toString("latin1", 0, 8) === "OpusHead") return head;
  throw damagedMatroskaError("its Opus has no header");
}

/** Returns how many samples a packet has, by its first bytes (RFC 6716 §3.1). */
function samplesIn(packet: Uint8Array): number {
  const [first = 0, second = 0] = packet;
  const config = first >> 3;
  const frameMs =
    config < 12 ? [10, 20, 40, 60][config % 4]! : config < 16 ? [10, 20][config % 2]! : [2.5, 5, 10, 20][config % 4]!;
  const code = first & 3;
  const frames = packet.length === 0 ? 0 : code === 0 ? 1 : code < 3 ? 2 : second & 0x3f;
  return (frames * frameMs * samplesPerS) / 1000;
}
