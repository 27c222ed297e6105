import { createVorbisCounter } from "../codecs/vorbis.ts";
import type { Block, ChosenTracks } from "./blocks.ts";
import { chosenBlocks } from "./blocks.ts";
import { findElement, ids, readBytes } from "./elements.ts";
import { framesIn, isLaced } from "./frames.ts";
import type { MatroskaTrack } from "./tracks.ts";

const vorbisId = "A_VORBIS";
/** Flags of a block with Xiph lacing. */
const xiphLacing = 2;

/** Returns the three headers of Vorbis, which Matroska has as a block has three frames. */
export const vorbisHeaders = (configuration: Uint8Array): Buffer[] =>
  framesIn(configuration, xiphLacing).map((header) => Buffer.from(header));

/** Returns a counter of the samples of Vorbis with these headers, laced as in Matroska; undefined if they are damaged. */
export function vorbisCounterOf(configuration: Uint8Array): ReturnType<typeof createVorbisCounter> {
  const [id, , setup] = vorbisHeaders(configuration);
  return id && setup && createVorbisCounter(id, setup);
}

/** A frame of a block, and how many ticks after the block it begins. */
interface Frame {
  payload: Uint8Array;
  afterTicks: number;
}

/** Whether a file has Vorbis in laces: these frames do not last equally long. @throws ServiceError as `chosenBlocks` */
export function hasLacedVorbis(file: ChosenTracks): boolean {
  const tracks = file.tracks.filter(({ codecId }) => codecId === vorbisId);
  if (tracks.length === 0) return false;
  for (const { flags } of chosenBlocks({ ...file, tracks })) if (isLaced(flags)) return true;
  return false;
}

/**
 * Returns a function that takes the blocks of a track apart in their order, each frame with its own time; undefined if the track is not
 * Vorbis, or its headers are damaged. Vorbis itself says how long its frames last (Vorbis I §4.3.8).
 */
export function createUnlacer(
  { fd, source }: Pick<ChosenTracks, "fd" | "source">,
  { codecId, entry }: Pick<MatroskaTrack, "codecId" | "entry">,
  timestampScale: number,
): ((block: Pick<Block, "flags"> & { payload: Uint8Array }) => Frame[]) | undefined {
  const headers = codecId === vorbisId ? findElement(source, entry, ids.codecPrivate) : undefined;
  const counter = headers && vorbisCounterOf(readBytes(fd, headers));
  if (counter === undefined) return undefined;
  let isFirst = true;
  const samplesIn = (frame: Uint8Array): number => {
    const samples = counter.samplesIn(frame);
    if (!isFirst) return samples;
    isFirst = false;
    // Nothing overlaps the first one, which lasts as if one of its size did.
    return counter.samplesIn(frame);
  };
  return ({ payload, flags }) => {
    let samples = 0;
    return framesIn(payload, flags).map((frame) => {
      const afterTicks = Math.round((samples * 1e9) / (counter.sampleRate * timestampScale));
      samples += samplesIn(frame);
      return { payload: frame, afterTicks };
    });
  };
}
