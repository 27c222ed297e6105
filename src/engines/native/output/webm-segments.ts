import { isUpstreamError } from "../../../model/errors.ts";
import { type Block, readBlocks } from "../../../remux/matroska/blocks.ts";
import { ids } from "../../../remux/matroska/elements.ts";
import { hasDamagedLace } from "../../../remux/matroska/frames.ts";
import { type MatroskaHeader, type MatroskaTrack, readHeader } from "../../../remux/matroska/tracks.ts";
import { numbersIn } from "../../../remux/mp4/read/number-source.ts";
import { nullSink, type SegmentTiming, trackKinds } from "../../../remux/samples.ts";
import type { SourceName } from "../sources/plan.ts";
import type { WrittenTrack } from "./demux-session.ts";
import { CountingSink } from "./counting-sink.ts";

/** As it is written, also in a SeekHead. */
const cuesId = Buffer.from(ids.cues.toString(16), "hex");

/** Counts what the segments of a WebM stream have, apart from those who copy them. */
export class WebmSegments {
  /** Segments of which a part is missing, or with a lace whose sizes do not fit. */
  damaged = 0;
  /** Segments with blocks that come after later ones. */
  outOfOrder = 0;
  /** What comes before the media says where they are: not so if some are left out. */
  hasIndex = false;
  readonly #source: SourceName;
  #header: MatroskaHeader | undefined;
  #latest: SegmentTiming | undefined;
  readonly #counts = new CountingSink(nullSink);
  /** Numbers of the tracks in what counts them. */
  readonly #numbers = new Map<MatroskaTrack, number>();
  /** Latest times of the blocks of each track. */
  readonly #latestTicks = new Map<number, number>();

  constructor(source: SourceName) {
    this.#source = source;
  }

  /** Reads an init section or a segment. */
  add(bytes: Uint8Array, timing: SegmentTiming): void {
    const source = numbersIn(bytes);
    try {
      if (this.#header === undefined) this.hasIndex = Buffer.from(bytes).includes(cuesId);
      const isFirst = this.#header === undefined;
      this.#header ??= readHeader(source);
      if (this.#header === undefined) return;
      if (timing !== this.#latest && timing.skippedS !== undefined) this.#counts.skip();
      if (timing !== this.#latest) this.#counts.startSegment(timing);
      this.#latest = timing;
      // Its Segment states the size that it has in the file that it was cut from.
      const segment = { id: 0, body: isFirst ? this.#header.segment.body : 0, end: bytes.length };
      let [isInOrder, isWhole] = [true, true];
      for (const block of readBlocks(source, { ...this.#header, segment })) {
        isInOrder = this.#count(block, this.#header) && isInOrder;
        isWhole &&= !hasDamagedLace(block.flags, () => bytes.subarray(block.body, block.end));
      }
      if (!isWhole) this.damaged += 1;
      if (!isInOrder) this.outOfOrder += 1;
    } catch (error) {
      if (!isUpstreamError(error)) throw error;
      this.damaged += 1;
      for (const kind of trackKinds) this.#counts.drop(kind);
    }
  }

  tracks(): WrittenTrack[] {
    return this.#counts.tracks().map((track) => ({ ...track, source: this.#source }));
  }

  /** Returns false for a block that decoding can start at, if one before is later. Other pictures may be shown in another order. */
  #comesNext({ track, ticks, isKey }: Block): boolean {
    const latest = this.#latestTicks.get(track) ?? -Infinity;
    this.#latestTicks.set(track, Math.max(ticks, latest));
    return !isKey || ticks >= latest;
  }

  /** Counts a block of video or audio; returns whether it comes next. */
  #count(block: Block, { tracks, timestampScale }: MatroskaHeader): boolean {
    const { ticks, isKey, duration } = block;
    const track = tracks.find(({ number }) => number === block.track);
    if (track?.kind == null) return true;
    const shape = { kind: track.kind, timescale: 1e9 / timestampScale, width: 0, height: 0 };
    const known = this.#numbers.get(track);
    const format = { ...shape, language: null, sampleEntry: new Uint8Array() };
    const counted = known ?? this.#counts.setFormat(format, this.#numbers.size);
    this.#numbers.set(track, counted);
    const times = { dts: ticks, pts: ticks, duration: duration ?? 0 };
    this.#counts.write(counted, { data: new Uint8Array(), ...times, isSync: isKey });
    return this.#comesNext(block);
  }
}

/** Describes segments whose media do not come after those before. */
export function unorderedSegments(joined: readonly WebmSegments[]): string[] {
  const count = joined.reduce((sum, segments) => sum + segments.outOfOrder, 0);
  return count === 0 ? [] : [`${count} ${count === 1 ? "segment has" : "segments have"} media that are out of order`];
}

/** Describes segments of which a part is missing. */
export function damagedSegments(joined: readonly WebmSegments[]): string[] {
  const damaged = joined.reduce((sum, segments) => sum + segments.damaged, 0);
  return damaged === 0 ? [] : [`${damaged} ${damaged === 1 ? "segment is" : "segments are"} damaged`];
}
