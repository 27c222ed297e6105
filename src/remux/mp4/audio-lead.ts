import type { SampleList } from "./read/sample-list.ts";

/** Packets of a track that a range needs: the first one, and when the earliest is presented, ticks. */
interface NeededPackets {
  first: number;
  earliest: number;
}

/**
 * Returns at which media time decoding of audio has to start at the latest, so that packets are decoded as in their source.
 * @param codec As `nameCodec` returns it.
 */
export function leadTicksOf(list: SampleList, codec: string, { first, earliest }: NeededPackets): number {
  // RFC 7845 §4.6.
  if (codec === "Opus") return earliest - 0.08 * list.timescale;
  // The end of a packet is added to the start of the next one.
  const isLayer3 = codec === "MPEG audio" || codec === ".mp3";
  return isLayer3 ? Math.min(earliest - 1, list.pts(reservoirStart(list, first))) : earliest - 1;
}

/** Bytes of a frame that are no main data: header, checksum and side information. */
const sideBytes = 38;

/** Samples of a frame of MPEG-1 and of those of half its rates, between which a number of ticks is. */
const longFrame = (1152 + 576) / 2;

/**
 * Returns the index of the packet of MPEG audio that has the first main data which the one before `first` may use (main_data_begin, ISO/IEC 11172-3
 * §2.4.2.7, of 9 bits; ISO/IEC 13818-3, of 8 bits): no earlier than an MP3 file can say that it is left out, 4095 and 529 samples.
 */
function reservoirStart(list: SampleList, first: number): number {
  const isLong = list.duration(first) > longFrame;
  const [reservoir, most] = isLong ? [511, 3] : [255, 7];
  const least = Math.max(0, first - most);
  let index = Math.max(least, first - 1);
  for (let left = reservoir; left > 0 && index > least;) left -= Math.max(0, list.size(--index) - sideBytes);
  return index;
}
