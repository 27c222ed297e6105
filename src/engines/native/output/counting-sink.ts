import {
  type MediaRange,
  type Sample,
  type SampleSink,
  type SegmentTiming,
  spanOf,
  type TrackFormat,
  type TrackKind,
} from "../../../remux/samples.ts";
import { ListedSegments } from "./listed-segments.ts";
import { TrackCounter, type TrackStats } from "./track-stats.ts";

/**
 * A sink that passes everything on, and counts what one source writes: a few comparisons for each sample,
 * nothing is kept.
 */
export class CountingSink implements SampleSink {
  /** How often media were left out, also of tracks without samples. */
  readonly drops: Record<TrackKind, number> = { video: 0, audio: 0 };
  /** Tracks that were left out. */
  readonly left: Record<TrackKind, number> = { video: 0, audio: 0 };
  /** Latest decode time of all tracks, seconds. */
  reachedS = 0;
  /** What the source presents of video that is not written; `null`: nothing. */
  unread: MediaRange | null = null;
  readonly #sink: SampleSink;
  readonly #tracks = new Map<number, TrackCounter>();
  readonly #segments = new ListedSegments();
  #timeline: number | undefined;
  #hasJoined = false;

  constructor(sink: SampleSink) {
    this.#sink = sink;
  }

  setFormat(format: TrackFormat, track?: number): number {
    const number = this.#sink.setFormat(format, track);
    const counter = this.#tracks.get(number);
    if (counter === undefined) this.#addTrack(number, format);
    else if (counter.edits !== format.edits) counter.edits = undefined;
    return number;
  }

  #addTrack(number: number, format: TrackFormat): void {
    const counter = new TrackCounter(format, this.#segments);
    // Its samples before that may have been held back.
    if (this.#hasJoined) counter.allowBreaks();
    this.#tracks.set(number, counter);
  }

  write(track: number, sample: Sample): void {
    this.#sink.write(track, sample);
    const counter = this.#tracks.get(track);
    if (counter === undefined) return;
    this.reachedS = Math.max(this.reachedS, sample.dts / counter.timescale);
    counter.add(sample);
  }

  /**
   * Notes that what is written from now on is of another segment; samples of the one before may still be held back, but not where
   * another timeline begins.
   */
  startSegment(timing: SegmentTiming): void {
    const isJoined = timing.timeline !== this.#timeline;
    this.#hasJoined ||= isJoined && this.#timeline !== undefined;
    this.#timeline = timing.timeline;
    if (isJoined) this.#segments.endTimeline(this.#steadyEndS());
    this.#segments.start(timing, isJoined ? null : this.#span());
    if (isJoined) for (const counter of this.#tracks.values()) counter.allowBreaks();
  }

  /** Notes that media are left out, which is one loss: a short break there is no other one. */
  drop(kind: TrackKind): void {
    this.drops[kind] += 1;
    for (const counter of this.#tracks.values()) if (counter.kind === kind) counter.allowBreaks();
  }

  /** How much less the last segment has than its list says, seconds; 0: nothing, or it is not known. */
  missingEndS(): number {
    const endS = this.#steadyEndS();
    return endS === null ? 0 : this.#segments.missingEndS(endS);
  }

  /** The same of the last segments of the timelines before: those that have less. */
  missingBeforeS(): readonly number[] {
    return this.#segments.missingBeforeS();
  }

  /** Returns where what the source presents ends, seconds; `null`: frames that do not come at equal distances may last longer. */
  #steadyEndS(): number | null {
    const isSteady = this.#tracks.values().every((counter) => counter.isSteady);
    return isSteady ? (this.#span()?.endS ?? null) : null;
  }

  /** Notes when video is presented that the source has, and that is not written: its list counts it too. */
  noteUnread(span: MediaRange): void {
    this.unread = spanOf(this.unread === null ? [span] : [this.unread, span]);
  }

  /** Returns what the source so far presents; `null`: nothing. */
  #span(): MediaRange | null {
    return spanOf(this.unread === null ? this.#spans() : [...this.#spans(), this.unread]);
  }

  /** Returns what the samples so far present, of each track that has some. */
  #spans(): MediaRange[] {
    return [...this.#tracks.values()].map(({ span }) => span).filter(({ endS }) => endS > -Infinity);
  }

  /** Where what the samples so far present ends, seconds; −Infinity: there is none. */
  get endS(): number {
    return spanOf(this.#spans())?.endS ?? -Infinity;
  }

  /** Where the track that begins last begins, seconds; Infinity: there is none. */
  get lastStartS(): number {
    const starts = this.#spans().map(({ startS }) => startS);
    return starts.length === 0 ? Infinity : Math.max(...starts);
  }

  /** Notes that segments are left out before the next samples. */
  skip(): void {
    for (const counter of this.#tracks.values()) counter.skip();
  }

  /** Whether a track of the kind has been found. */
  has(kind: TrackKind): boolean {
    return this.count(kind) > 0;
  }

  /** Returns how many tracks of the kind have been found. */
  count(kind: TrackKind): number {
    return [...this.#tracks.values()].filter((counter) => counter.kind === kind).length;
  }

  /** Returns the stats of each track that has samples to show. */
  tracks(): TrackStats[] {
    return [...this.#tracks.values()].flatMap((counter) => counter.stats() ?? []);
  }
}
