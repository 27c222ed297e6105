import type { SourceName } from "./plan.ts";

/** Segments that no list showed when it was read. */
export interface UnlistedSegments {
  /** What was recorded before, seconds. */
  atS: number;
  /** `null`: the numbers restarted, and how many are missing is not known. */
  segments: number | null;
}

const maxUnlistedShown = 3;

/** Counts what the manifest says of the segments of a source, and which of them could not be fetched. */
export class FetchStats {
  segments = 0;
  /** Sum of their durations in the manifest, of the missing ones too, seconds; `null`: some have none. */
  listedS: number | null = 0;
  longestS = 0;
  /** All durations are whole seconds, as old playlists round them. */
  isRounded = true;
  /** Segments that were gone or had no media. */
  missing = 0;
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

  addUnlisted(segments: UnlistedSegments): void {
    const { unlisted } = this;
    unlisted.count += 1;
    if (unlisted.first.length < maxUnlistedShown) unlisted.first.push(segments);
  }
}

/** Of each source that has segments. */
export type FetchStatsBySource = ReadonlyMap<SourceName, FetchStats>;
