import type { LiveHole } from "./live.ts";
import type { SourceName } from "./plan.ts";

/** What the segments of a source stated, and which of them could not be had. */
export interface Delivery {
  segments: number;
  /** Sum of the stated durations, of the missing ones too, seconds; `null`: some state none. */
  statedS: number | null;
  longestS: number;
  /** All durations are whole seconds, as old playlists round them. */
  isRounded: boolean;
  /** Segments that were gone or had no media. */
  missing: number;
  /** Computed segments at the end of a Period that do not exist: all media may have come before them. */
  absent: number;
  /** Places at which segments of a live stream were not listed; the first few of them. */
  holes: { count: number; first: LiveHole[] };
  /** Why the recording of a live stream ended before the stream said that it has; `null`: it did not. */
  lost: string | null;
}

const maxHolesShown = 3;

/** Counts what the sources deliver. */
export interface Deliveries {
  addSegment(name: SourceName, durationS: number): void;
  /** A segment that was counted has no media. */
  addMissing(name: SourceName): void;
  /** A segment that was counted does not exist, which may be right. */
  addAbsent(name: SourceName): void;
  addHole(name: SourceName, hole: LiveHole): void;
  setLost(name: SourceName, reason: string): void;
  /** Returns undefined if the source has no segments. */
  of(name: SourceName): Delivery | undefined;
}

export function createDeliveries(): Deliveries {
  const all = new Map<SourceName, Delivery>();

  function open(name: SourceName): Delivery {
    const known = all.get(name);
    if (known !== undefined) return known;
    const none = { segments: 0, statedS: 0, longestS: 0, isRounded: true, missing: 0, absent: 0 };
    const opened = { ...none, holes: { count: 0, first: [] }, lost: null };
    all.set(name, opened);
    return opened;
  }

  return {
    addSegment(name, durationS) {
      const delivery = open(name);
      delivery.segments += 1;
      const { statedS } = delivery;
      delivery.statedS = durationS > 0 && statedS !== null ? statedS + durationS : null;
      delivery.longestS = Math.max(delivery.longestS, durationS);
      delivery.isRounded &&= Number.isInteger(durationS);
    },
    addMissing(name) {
      open(name).missing += 1;
    },
    addAbsent(name) {
      open(name).absent += 1;
    },
    addHole(name, hole) {
      const { holes } = open(name);
      holes.count += 1;
      if (holes.first.length < maxHolesShown) holes.first.push(hole);
    },
    setLost(name, reason) {
      open(name).lost = reason;
    },
    of: (name) => all.get(name),
  };
}
