import type { ReplacedSpan, TimeSpan } from "../../../manifests/segments.ts";
import type { SourceName } from "./plan.ts";
import { places } from "../damage/published-damage.ts";

/** Segments that no list showed when it was read. */
interface UnlistedSegments {
  /** What was recorded before, seconds. */
  atS: number;
  /** `null`: the numbers restarted, and how many are missing is not known. */
  segments: number | null;
}

const maxShown = 3;

/** More than what is lost where advertisements are joined, and hardly noticed. */
export const usualGapS = 1;
/** Of a segment; what is lost at once is rarely less. */
const lostShare = 0.75;

/** How inexact listed durations are that are not whole seconds. */
const inexactShare = 0.005;

/** Returns the shortest time without samples that may be a lost segment, if `segments` last `totalS` together; seconds. */
export function shortestGapS(segments: number, totalS: number | null): number {
  return segments > 0 && totalS !== null ? Math.min(usualGapS, (lostShare * totalS) / segments) : usualGapS;
}

/** Counts what the manifest says of the segments of a source, and which of them could not be fetched. */
export class FetchStats {
  segments = 0;
  /** Sum of their durations in the manifest, of the missing ones too, seconds; `null`: some have none. */
  listedS: number | null = 0;
  longestS = 0;
  isLive = false;
  /** All durations are whole seconds, as old playlists round them. */
  isRounded = true;
  /** Segments that were gone or had no media. */
  missing = 0;
  /** Segments for which the server sent the media of another one. */
  repeated = 0;
  /** Segments whose byte range ends after the end of their file. */
  cutOff = 0;
  /** The init section of a live stream was another one at its end. */
  isInitChanged = false;
  /** Segments that begin after the end that their MPD states, and are not fetched. */
  beyondEnd = 0;
  /** Where the manifest has another version of the media only, such as another language. */
  replaced: readonly ReplacedSpan[] = [];
  /** Computed segments at the end of a Period that do not exist: all media may have come before them. */
  absent = 0;
  /** How often segments of a live stream were not listed; the first few times. */
  readonly unlisted: { count: number; first: UnlistedSegments[] } = { count: 0, first: [] };
  /** Why the recording of a live stream ended before the stream said that it has; `null`: it did not. */
  lost: string | null = null;

  addSegment(durationS: number): void {
    this.segments += 1;
    this.listedS = durationS > 0 && this.listedS !== null ? this.listedS + durationS : null;
    this.longestS = Math.max(this.longestS, durationS);
    this.isRounded &&= Number.isInteger(durationS);
  }

  /** The shortest time without samples that may be a lost segment, seconds. */
  get shortestGapS(): number {
    return shortestGapS(this.segments, this.listedS);
  }

  /** How much later than others a track may begin, and how much earlier it may end, without a gap; seconds. */
  get tolerance(): { lateS: number; earlyS: number } {
    // The last segments of two sources of a live stream are not listed at the same time.
    return this.isLive
      ? { lateS: usualGapS, earlyS: this.longestS + usualGapS }
      : { lateS: this.shortestGapS, earlyS: this.shortestGapS };
  }

  /**
   * Whether media last longer or shorter than the segments that list them.
   * @param isAudio The file has no video, which would show where audio is missing at its start or end.
   */
  differsFrom(listedS: number, playedS: number, isAudio: boolean): boolean {
    const tolerance = Math.max(this.longestS, usualGapS) + (this.isRounded ? this.segments / 2 : 0);
    const isExact = isAudio && !this.isRounded && !this.isLive && this.missing === 0;
    const lacks = isExact && listedS - playedS > this.shortestGapS + inexactShare * listedS;
    return lacks || Math.abs(playedS - listedS) > tolerance;
  }

  addUnlisted(segments: UnlistedSegments): void {
    const { unlisted } = this;
    unlisted.count += 1;
    if (unlisted.first.length < maxShown) unlisted.first.push(segments);
  }
}

/** Of each source that has segments. */
export type FetchStatsBySource = ReadonlyMap<SourceName, FetchStats>;

/** Returns what `find` finds in the segments of each source; its `what` names the source in a message. */
export function ofSources(
  fetched: FetchStatsBySource,
  find: (stats: FetchStats, what: string, name: SourceName) => string[],
): string[] {
  return [...fetched].flatMap(([name, stats]) => find(stats, name === "main" ? "" : " of the separate audio", name));
}

/** Of listed durations, and of what a stream lasts less than a longer one of the same media. */
export const roundingS = 0.1;

type WrittenSpan = Readonly<{ source: SourceName; startS: number; endS: number }>;

function describeReplaced(replaced: readonly ReplacedSpan[], kept: readonly TimeSpan[]): string[] {
  const isKept = ({ startS, endS }: ReplacedSpan) => kept.some((range) => startS < range.endS && endS > range.startS);
  const there = replaced.filter(isKept).map(({ what }) => what);
  const rest = there.length - maxShown;
  const shown = there.slice(0, maxShown);
  return rest > 0 ? [...shown, `and so at ${places(rest)} more`] : shown;
}

/**
 * Describes what is not right with the segments of all sources. `tracks`: of all media; default: they are not known. `kept`: the times that the
 * file has; default: all.
 */
export function describeSegments(
  fetched: FetchStatsBySource,
  tracks: readonly WrittenSpan[] = [],
  kept: readonly TimeSpan[] = [{ startS: -Infinity, endS: Infinity }],
) {
  /** If all tracks last as long as listed, the list is wrong about their bytes. */
  const isLong = ({ listedS }: FetchStats, name: SourceName) => {
    const own = tracks.filter(({ source }) => source === name);
    if (own.length === 0) return false;
    const playedS = Math.min(...own.map(({ endS }) => endS)) - Math.min(...own.map(({ startS }) => startS));
    return listedS !== null && playedS >= listedS - roundingS;
  };
  return {
    /** They are listed and not in the file. */
    missing: ofSources(fetched, (stats, what, name) => {
      const { missing, repeated, segments, cutOff, isInitChanged } = stats;
      const isEnd = cutOff > 0 && !isLong(stats, name);
      return [
        ...(missing === 0 ? [] : [`${missing} of ${segments} segments${what} had no media`]),
        ...(repeated === 0 ? [] : [`${repeated} of ${segments} segments${what} had the media of another one`]),
        ...(isEnd ? [`${cutOff} of ${segments} segments${what} had fewer bytes than their byte range`] : []),
        ...(isInitChanged
          ? [`the init section${what} has changed during the recording: what came then may be damaged`]
          : []),
      ];
    }),
    /** They are left out because of the end that their MPD states. */
    left: ofSources(fetched, ({ beyondEnd }, what) => {
      if (beyondEnd === 0) return [];
      const [segments, are] = beyondEnd === 1 ? ["1 segment", "is"] : [`${beyondEnd} segments`, "are"];
      return [`${segments}${what} after the end that the manifest states ${are} left out`];
    }),
    /** Where the media are another version. */
    replaced: ofSources(fetched, ({ replaced }) => describeReplaced(replaced, kept)),
    /** Where the lists of a stream have no media. */
    unlisted: ofSources(fetched, ({ unlisted }, what) => {
      const shown = unlisted.first.map(({ atS, segments }) =>
        segments === null
          ? `the playlist${what} restarted its numbering after ${seconds(atS)}, and media before that may be missing`
          : `the playlist${what} has no media of ${segments === 1 ? "1 segment" : `${segments} segments`} after ${seconds(atS)}`,
      );
      const rest = unlisted.count - shown.length;
      return rest > 0 ? [...shown, `and so at ${places(rest)} more`] : shown;
    }),
    /** Why recordings ended before their streams. */
    lost: ofSources(fetched, ({ lost }, what) =>
      lost === null ? [] : [`the recording ended before the playlist${what} said that the stream had ended: ${lost}`],
    ),
  };
}

export const seconds = (value: number): string => `${value.toFixed(1)} s`;
