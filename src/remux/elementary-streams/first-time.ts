import { type Demuxer, type DemuxerOptions, nullSink } from "../samples.ts";
import { Timelines } from "../timelines.ts";

/** As far as timestamps are waited for. */
const maxBytes = 2 * 1024 * 1024;

/** Returns what `firstTime` does of a demuxer that reads `segment` alone, and that `create` creates. */
export function findFirstTime(
  create: (options: Pick<DemuxerOptions, "sink" | "timelines">) => Demuxer,
  segment: Uint8Array,
): number | null | undefined {
  const timelines = new FirstTime();
  const demuxer = create({ sink: nullSink, timelines });
  demuxer.read(segment.subarray(0, maxBytes), { timeline: 0, offsetS: null });
  // What is held back is written.
  demuxer.read(new Uint8Array(), { timeline: 1, offsetS: null });
  return timelines.found;
}

class FirstTime extends Timelines {
  found: number | null | undefined;

  override offset(_timeline: number, _offsetS: number | null, firstS: number): number {
    if (this.found === undefined) this.found = firstS;
    return 0;
  }

  // It would begin with another source.
  override startOf(): number {
    this.found = null;
    return 0;
  }
}
