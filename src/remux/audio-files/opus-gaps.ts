import { opusSamples } from "../codecs/opus.ts";
import type { FileWindow } from "../open-file.ts";
import { codecOf, type OggPage, readPage } from "./ogg-pages.ts";

/** How far a stream of Opus has been read. */
interface OpusStream {
  /** Packets so far. */
  packets: number;
  /** The first bytes of the packet that continues, which say how long it lasts, and its length. */
  readonly head: Uint8Array;
  bytes: number;
  /** Samples of packets since the last page with a granule position. */
  samples: number;
  /** That position; `null`: none yet. */
  granule: number | null;
}

/** No packet is shorter: 2.5 ms. */
const leastSamples = 120;
const headers = 2;
/** What tells how many frames a packet has (RFC 6716 §3.1, §3.2.5). */
const headBytes = 2;
/** A recorder that leaves out silence has more gaps. */
const maxGaps = (pages: number): number => 3 + pages / 100;

/**
 * Counts the places of an Ogg file at which packets of Opus are missing although its pages are numbered in a row: a page ends later than the one
 * before and its packets say (RFC 7845 §4). 0 if there are many: those were never sent.
 */
export function countOpusGaps(file: FileWindow): number {
  const streams = new Map<number, OpusStream>();
  let [gaps, pages] = [0, 0];
  for (let page = readPage(file, 0); page !== undefined; page = readPage(file, page.end)) {
    const { serial, isFirst, body } = page;
    if (isFirst) streams.delete(serial);
    if (isFirst && codecOf(file.at(body))?.first === "OpusHead") {
      streams.set(serial, { packets: 0, head: new Uint8Array(headBytes), bytes: 0, samples: 0, granule: null });
    }
    const stream = streams.get(serial);
    if (stream === undefined) continue;
    readPackets(file, page, stream);
    if (page.granule === null || stream.packets <= headers) continue;
    const { granule, samples } = stream;
    // The end of the last packets may be left out.
    if (granule !== null && page.granule - granule - samples >= leastSamples) gaps += 1;
    Object.assign(stream, { granule: page.granule, samples: 0 });
    pages += 1;
  }
  return gaps <= maxGaps(pages) ? gaps : 0;
}

function readPackets(file: FileWindow, { segments, body }: OggPage, stream: OpusStream): void {
  const page = file.at(body);
  let at = 0;
  for (const size of segments) {
    const { head, bytes } = stream;
    for (let i = bytes; i < headBytes && i < bytes + size; i += 1) head[i] = page[at + i - bytes]!;
    stream.bytes += size;
    at += size;
    if (size === 255) continue;
    stream.packets += 1;
    if (stream.packets > headers && stream.bytes > 0) stream.samples += opusSamples(head);
    head.fill(0);
    stream.bytes = 0;
  }
}
