import { places } from "../damage/published-damage.ts";
import type { FetchStats, FetchStatsBySource } from "./fetch-stats.ts";
import type { SourceName } from "./plan.ts";

/** Returns what `find` finds in the segments of each source; its `what` names the source in a message. */
export function ofSources(
  fetched: FetchStatsBySource,
  find: (stats: FetchStats, what: string, name: SourceName) => string[],
): string[] {
  return [...fetched].flatMap(([name, stats]) => find(stats, name === "main" ? "" : " of the separate audio", name));
}

/** Describes segments that are listed and not in the file. */
export function missingSegments(fetched: FetchStatsBySource): string[] {
  return ofSources(fetched, ({ missing, repeated, segments }, what) => [
    ...(missing === 0 ? [] : [`${missing} of ${segments} segments${what} had no media`]),
    ...(repeated === 0 ? [] : [`${repeated} of ${segments} segments${what} had the media of another one`]),
  ]);
}

/** Describes segments that are left out because of the end that their MPD states. */
export function leftSegments(fetched: FetchStatsBySource): string[] {
  return ofSources(fetched, ({ beyondEnd }, what) => {
    if (beyondEnd === 0) return [];
    const [segments, are] = beyondEnd === 1 ? ["1 segment", "is"] : [`${beyondEnd} segments`, "are"];
    return [`${segments}${what} after the end that the manifest states ${are} left out`];
  });
}

/** Describes where the lists of a stream have no media. */
export function unlistedSegments(fetched: FetchStatsBySource): string[] {
  return ofSources(fetched, ({ unlisted }, what) => {
    const shown = unlisted.first.map(({ atS, segments }) =>
      segments === null
        ? `the playlist${what} restarted its numbering after ${seconds(atS)}, and media before that may be missing`
        : `the playlist${what} has no media of ${segments === 1 ? "1 segment" : `${segments} segments`} after ${seconds(atS)}`,
    );
    const rest = unlisted.count - shown.length;
    return rest > 0 ? [...shown, `and so at ${places(rest)} more`] : shown;
  });
}

/** Describes recordings that ended before their streams. */
export function lostStreams(fetched: FetchStatsBySource): string[] {
  return ofSources(fetched, ({ lost: reason }, what) =>
    reason === null ? [] : [`the recording ended before the playlist${what} said that the stream had ended: ${reason}`],
  );
}

const seconds = (value: number): string => `${value.toFixed(1)} s`;
