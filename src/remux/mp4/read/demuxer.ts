import { type Box, boxesIn, damaged, viewOf } from "../boxes.ts";
import { readFragment } from "./fragment.ts";
import { type InitTrack, readInit } from "./init.ts";
import { createFmp4Outputs } from "./outputs.ts";
import { createBudget } from "./trun.ts";
import { readTables } from "./sample-tables.ts";
import type { Demuxer, SampleSink, TrackFormat } from "../../samples.ts";
import type { Timelines } from "../../timelines.ts";

export interface Fmp4DemuxerOptions {
  sink: SampleSink;
  timelines: Timelines;
  /** The first track of each of these is read, all others are left out. */
  kinds: readonly TrackFormat["kind"][];
}

/**
 * A demuxer of fragmented MP4 (ISO/IEC 14496-12 §8.8), and of MP4 files small enough to be one piece. What
 * the codec is does not matter: sample entries and samples are handed on as they are. A piece is made of
 * whole boxes: an init section, fragments with their media data, or both.
 */
export function createFmp4Demuxer({ sink, timelines, kinds }: Fmp4DemuxerOptions): Demuxer {
  const outputs = createFmp4Outputs(sink, timelines);
  let tracks: InitTrack[] | undefined;
  let nextDts = new Map<InitTrack, number>();

  function enter(piece: Uint8Array, moov: Box): InitTrack[] {
    const entered = readInit(piece, moov, kinds);
    nextDts = new Map();
    for (const track of entered) outputs.announce(track);
    return entered;
  }

  return {
    read(piece, place) {
      const budget = createBudget(piece.length);
      const boxes = [...boxesIn(viewOf(piece), 0, piece.length)];
      const hasData = boxes.some(({ type }) => type === "mdat");
      for (const found of boxes) {
        if (found.type === "moov") {
          tracks = enter(piece, found);
          if (hasData) outputs.write(piece, readTables(piece, tracks, budget), place);
        } else if (found.type === "moof") {
          if (tracks === undefined) throw damaged("a fragment comes before any init section");
          outputs.write(piece, readFragment(piece, found, { tracks, nextDts, budget }), place);
        }
      }
    },
    // Samples are handed on as they are read.
    flush() {},
  };
}
