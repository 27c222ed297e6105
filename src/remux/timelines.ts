/** Segments were left out, and the media times after them do not show how much that was. */
export class SkipError extends Error {
  override readonly name = "SkipError";
}

/** How far media times after segments that were left out may be from those that their list says, seconds. */
export const maxSkipDriftS = 10;

/**
 * Returns how far the timestamps of a stream may be from those before, in units of 1/`perSecond` s: how much earlier than
 * its last one, and how much later than the latest of all streams. The defaults are for media that are written.
 */
export function discontinuityLimits(perSecond: number, maxBackS = 1, maxAheadS = 20) {
  return { maxBack: maxBackS * perSecond, maxAhead: maxAheadS * perSecond };
}

/**
 * Returns whether the timestamp `at` of a stream does not continue those before.
 * @param last The stream's own last timestamp; −Infinity: none yet.
 * @param latest The latest timestamp of all streams that share its timeline.
 */
export function isDiscontinuity(
  at: number,
  last: number,
  latest: number,
  { maxBack, maxAhead }: ReturnType<typeof discontinuityLimits>,
): boolean {
  return at < last - maxBack || at > latest + maxAhead;
}

interface Discontinuity {
  /** The demuxer. */
  source: object;
  timeline: number;
  /** First media time after it, seconds. */
  firstS: number;
  /** Presentation time at which the source's samples before it end, seconds. */
  atS: number;
}

/** Of media and presentation times of one discontinuity in two sources. */
const maxApartS = 0.5;
const maxKept = 64;
/** Audio and video of a segment do not end at once: where media times go on, the next ones may overlap them by this. */
const maxJoinS = 0.1;
/** Times since 1970 are later; in units of 100 ns they are beyond 2^53. */
const farS = 1e8;

/** Of presentation times. */
const roundingS = 0.001;

/** What begins a timeline: it ended at `endS` before, presentation time (−Infinity: it had nothing), and begins at `firstS`, media time. */
export interface Joined {
  endS: number;
  firstS: number;
}

/** Returns the least offset with which none of them overlaps what it had before. */
export const leastOffset = (joined: readonly Joined[]): number =>
  Math.max(...joined.map(({ endS, firstS }) => endS - firstS));

const firstOffset = (firstS: number): number => (firstS > farS ? -firstS : 0);

/**
 * Puts the timelines of a presentation one after the other. All demuxers of one output share it, so that audio and video
 * from different sources stay in sync.
 */
export class Timelines {
  readonly #offsets = new Map<number, number>();
  readonly #starts = new Map<number, number>();
  #discontinuities: readonly Discontinuity[] = [];
  #endS = 0;
  /** The timeline before the one that begins. */
  #latest = { offset: 0, firstS: 0 };

  /**
   * Returns the seconds to add to the media times of `timeline`: `offsetS` if it is given (it may differ between the
   * tracks of a timeline). Otherwise the first call for a timeline decides and later calls return the same: for the
   * very first timeline 0, or what makes times since 1970 begin at 0; for the others such that `firstS` (the timeline's first presentation time) is where the latest
   * sample ended, or that of the timeline before, if its media times go on.
   * @param tracks All that the source has; if no other source has later samples, they begin where none of them overlaps what it had before.
   */
  offset(timeline: number, offsetS: number | null, firstS: number, tracks: readonly Joined[] = []): number {
    const known = this.#offsets.get(timeline);
    const isLatest = tracks.some(({ endS }) => endS >= this.#endS - roundingS);
    const least = isLatest ? leastOffset(tracks) : this.#endS - firstS;
    const next = () => (this.#offsets.size === 0 ? firstOffset(firstS) : this.#nextOffset(least, firstS));
    const offset = offsetS ?? known ?? next();
    if (known === undefined) this.#place(timeline, offset, firstS);
    return offset;
  }

  /**
   * Decides the offset of `timeline`, unless that has been done: the least one with which none of these sources, which are in sync,
   * overlaps what it had before.
   */
  join(timeline: number, sources: readonly Joined[]): void {
    const least = leastOffset(sources);
    if (this.#offsets.has(timeline) || least === -Infinity) return;
    const firstS = Math.min(...sources.map((source) => source.firstS));
    this.#place(timeline, this.#nextOffset(least, firstS), firstS);
  }

  /** Decides that `timeline`, which other sources do not begin, has the offset of the one before if the media times of its source continue. */
  keepOffset(timeline: number, { endS, firstS }: Joined): void {
    const { offset } = this.#latest;
    const isContinued = this.#nextOffset(endS - firstS, firstS) === offset;
    if (isContinued && !this.#offsets.has(timeline)) this.#place(timeline, offset, firstS);
  }

  #place(timeline: number, offset: number, firstS: number): void {
    this.#offsets.set(timeline, offset);
    this.#latest = { offset, firstS };
  }

  /** Returns the offset of a timeline after another one: `offset`, or that of the one before. */
  #nextOffset(offset: number, firstS: number): number {
    const { offset: before, firstS: beforeS } = this.#latest;
    return Math.abs(offset - before) <= maxJoinS && firstS - beforeS > maxJoinS ? before : offset;
  }

  /** Notes the media time at which a source with timestamps begins a timeline; returns that of the first one. */
  begin(timeline: number, firstS: number): number {
    return this.#starts.getOrInsert(timeline, firstS);
  }

  /** Returns the media time at which a source without timestamps begins a timeline, seconds: that of another one, else 0. */
  startOf(timeline: number): number {
    return this.#starts.get(timeline) ?? 0;
  }

  /** Returns what `offset` has returned for a timeline without an offset of its own; undefined if it was not called. */
  offsetOf(timeline: number): number | undefined {
    return this.#offsets.get(timeline);
  }

  /**
   * Returns the presentation time at which `source` continues after a discontinuity: `atS`, or, in sync with it, where another source of the
   * timeline continues after the same one.
   */
  continueAt(discontinuity: Discontinuity): number {
    const { source, timeline, firstS, atS } = discontinuity;
    const inSync = (other: Discontinuity): number => other.atS + firstS - other.firstS;
    const [nearest] = this.#discontinuities
      .filter((other) => other.source !== source && other.timeline === timeline)
      .filter((other) => Math.abs(other.firstS - firstS) <= maxApartS)
      .toSorted((a, b) => Math.abs(inSync(a) - atS) - Math.abs(inSync(b) - atS));
    if (nearest && Math.abs(inSync(nearest) - atS) <= maxApartS) return inSync(nearest);
    this.#discontinuities = [...this.#discontinuities.slice(1 - maxKept), discontinuity];
    return atS;
  }

  /** Notes that a sample ends at this presentation time, offset included. */
  reach(endS: number): void {
    this.#endS = Math.max(this.#endS, endS);
  }
}
