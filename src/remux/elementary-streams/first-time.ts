import { type Demuxer, type DemuxerOptions, nullSink } from "../samples.ts";
import { createTimelines } from "../timelines.ts";

/** As far as timestamps are waited for. */
const maxBytes = 2 * 1024 * 1024;

/** Returns what `firstTime` does of a demuxer that reads `segment` by itself, and that `create` creates anew. */
export function findFirstTime(
  create: (options: Pick<DemuxerOptions, "sink" | "timelines">) => Demuxer,
  segment: Uint8Array,
): number | null | undefined {
  let found: number | null | undefined;
  const timelines: DemuxerOptions["timelines"] = {
    ...createTimelines(),
    offset(_timeline, _offsetS, firstS) {
      if (found === undefined) found = firstS;
      return 0;
    },
    // It would begin with another source.
    startOf() {
      found = null;
      return 0;
    },
  };
  const demuxer = create({ sink: nullSink, timelines });
  demuxer.read(segment.subarray(0, maxBytes), { timeline: 0, offsetS: null });
  // What is held back is written.
  demuxer.read(new Uint8Array(), { timeline: 1, offsetS: null });
  return found;
}
