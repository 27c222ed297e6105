import { ServiceError } from "../../../model/errors.ts";
import type { FileWarning, FileWarningCode } from "../../../model/file-warnings.ts";
import { countSamples } from "../../../remux/mp4/read/sample-counts.ts";
import type { TrackKind } from "../../../remux/samples.ts";
import { shortestGapS, type TrackFacts } from "./audit.ts";
import type { Delivery } from "../sources/delivery.ts";
import type { SourceName } from "../sources/plan.ts";

/** A track of the result, and where it came from. */
export interface WrittenTrack extends TrackFacts {
  source: SourceName;
}

/** What is known of a file that was written. */
export interface Evidence {
  path: string;
  tracks: readonly WrittenTrack[];
  /** Places at which media of a kind were left out: damaged, or impossible to decode. */
  drops: Readonly<Record<TrackKind, number>>;
  /** Kinds that the format states. */
  stated: readonly TrackKind[];
  /** What the segments of a source stated; undefined for a file. */
  delivery(name: SourceName): Delivery | undefined;
  /** Duration of the file as it was read back, seconds; `null`: not stated. */
  durationS: number | null;
}

/**
 * Holds what was fetched and what was written against each other; returns what differs, at most one warning
 * of each code.
 *
 * @throws ServiceError `internal` if the index of the file states other samples than were written.
 */
export function judge(evidence: Evidence): FileWarning[] {
  assertSamples(evidence);
  const { delivery, tracks } = evidence;
  return toWarnings([
    ["frames_missing", [...missingSegments(delivery), ...damage(evidence)]],
    ["gap", [...holes(delivery), ...gaps(evidence)]],
    ["duration_differs", differentDurations(evidence)],
    ["times_changed", tracks.flatMap(changedTimes)],
    ["track_missing", missingTracks(evidence)],
    ["stream_lost", lostStreams(delivery)],
  ]);
}

/** Returns what differs as far as it is known of a file that was written by others. */
export function judgeDelivery({
  delivery,
  durationS,
}: Pick<Evidence, "delivery" | "durationS">): FileWarning[] {
  const playedS = durationS ?? 0;
  const durations = sources.flatMap(([name, what]) => {
    const source = durationS === null ? undefined : delivery(name);
    return source === undefined ? [] : differentSource(source, { playedS, endS: playedS }, what);
  });
  return toWarnings([
    ["frames_missing", missingSegments(delivery)],
    ["gap", holes(delivery)],
    ["duration_differs", durations],
    ["stream_lost", lostStreams(delivery)],
  ]);
}

function toWarnings(findings: readonly [FileWarningCode, string[]][]): FileWarning[] {
  return findings
    .filter(([, found]) => found.length > 0)
    .map(([code, found]) => ({ code, message: found.join("; ") }));
}

function assertSamples({ path, tracks }: Evidence): void {
  const stated = countSamples(path).toSorted((a, b) => a - b);
  const written = tracks.map(({ samples }) => samples).toSorted((a, b) => a - b);
  if (stated.join() === written.join()) return;
  const message = `the file that was written states ${stated.join(" and ")} samples instead of ${written.join(" and ")}`;
  throw new ServiceError("internal", message, { retryable: false });
}

const sources = [
  ["main", ""],
  ["audio", " of the separate audio"],
] as const;

function missingSegments(delivery: Evidence["delivery"]): string[] {
  return sources.flatMap(([name, what]) => {
    const { missing = 0, segments: listed = 0 } = delivery(name) ?? {};
    return missing === 0 ? [] : [`${missing} of ${listed} segments${what} had no media`];
  });
}

function damage({ drops }: Evidence): string[] {
  return (["video", "audio"] as const)
    .filter((kind) => drops[kind] > 0)
    .map((kind) => `${kind} is damaged at ${places(drops[kind])}, and left out there`);
}

function holes(delivery: Evidence["delivery"]): string[] {
  return sources.flatMap(([name, what]) => {
    const found = delivery(name)?.holes ?? { count: 0, first: [] };
    const shown = found.first.map(({ atS, segments }) =>
      segments === null
        ? `the playlist${what} was numbered anew after ${seconds(atS)}, and media before that may be missing`
        : `${segments} segments${what} after ${seconds(atS)} were not in the playlist`,
    );
    const rest = found.count - shown.length;
    return rest > 0 ? [...shown, `and so at ${places(rest)} more`] : shown;
  });
}

function lostStreams(delivery: Evidence["delivery"]): string[] {
  return sources.flatMap(([name, what]) => {
    const reason = delivery(name)?.lost ?? null;
    if (reason === null) return [];
    return [
      `the recording ended before the playlist${what} said that the stream had ended: ${reason}`,
    ];
  });
}

function gaps({ tracks, delivery }: Evidence): string[] {
  const startS = originOf(tracks);
  const endS = Math.max(...tracks.map((track) => track.endS));
  return tracks.flatMap((track) => {
    const { kind, gaps: found } = track;
    const shown = found.first.map(({ fromS, toS }) => span(fromS - startS, toS - startS));
    const rest = found.count - shown.length;
    const more = rest > 0 ? `, and ${rest} more; ${seconds(found.totalS)} together` : "";
    const within = found.count > 0 ? [`no ${kind} from ${shown.join(", ")}${more}`] : [];
    const late = track.startS - startS;
    const early = endS - track.endS;
    // The last segments of two sources of a live stream are not listed at the same time.
    const tolerance = Math.max(shortestGapS, delivery(track.source)?.longestS ?? 0);
    if (late > shortestGapS) within.unshift(`no ${kind} from ${span(0, late)}`);
    if (early > tolerance)
      within.push(`no ${kind} from ${span(track.endS - startS, endS - startS)}`);
    return within;
  });
}

function differentDurations({ tracks, delivery, durationS }: Evidence): string[] {
  const stated = sources.flatMap(([name, what]) => {
    const source = delivery(name);
    const own = tracks.filter((track) => track.source === name);
    if (source === undefined || own.length === 0) return [];
    // One of its tracks may have nothing at an end: that is a gap.
    const startS = Math.max(Math.min(...own.map((track) => track.startS)), originOf(tracks));
    const endS = Math.max(...own.map((track) => track.endS));
    const gapsS = Math.min(...own.map(({ gaps: found }) => found.totalS));
    const playedS = endS - startS - (source.holes.count > 0 ? gapsS : 0);
    return differentSource(source, { playedS, endS }, what);
  });
  const endS = Math.max(...tracks.map((track) => track.endS));
  const writtenS = endS - originOf(tracks);
  const differs = durationS !== null && Math.abs(durationS - writtenS) > shortestGapS;
  const file = `the file states ${seconds(durationS ?? 0)}, and has samples for ${seconds(writtenS)}`;
  return differs && tracks.length > 0 ? [...stated, file] : stated;
}

/** Of stated durations, and of what a stream lasts less than a longer one beside it. */
const roundingS = 0.1;

function differentSource(
  { statedS, longestS, isRounded, segments, absent }: Delivery,
  { playedS, endS }: { playedS: number; endS: number },
  what: string,
): string[] {
  if (statedS === null) return [];
  const tolerance = Math.max(longestS, shortestGapS) + (isRounded ? segments / 2 : 0);
  // The media may start late, but the segments before the one that is absent are all there are.
  const isShort = absent > 0 && statedS - Math.max(playedS, endS) > roundingS;
  if (!isShort && Math.abs(playedS - statedS) <= tolerance) return [];
  const why = isShort ? `, and the last segment does not exist` : "";
  return [
    `the media${what} last ${seconds(playedS)}, their manifest says ${seconds(statedS)}${why}`,
  ];
}

function changedTimes({ kind, samples, moved, shared }: WrittenTrack): string[] {
  const counts = [
    moved > 0 && `${moved} of ${samples} ${kind} samples do not come after the one before`,
    shared > 0 && `${shared} of ${samples} ${kind} samples have the time of another one`,
  ];
  return counts.filter((text) => text !== false);
}

function missingTracks({ tracks, stated }: Evidence): string[] {
  return stated
    .filter((kind) => !tracks.some((track) => track.kind === kind))
    .map((kind) => `the format has ${kind}, the file has none`);
}

/** Time 0 of the file; the writer takes audio up to a second before time 0 for priming. */
function originOf(tracks: readonly WrittenTrack[]): number {
  return Math.min(
    ...tracks.map(({ kind, startS }) =>
      kind === "audio" && startS >= -1 ? Math.max(0, startS) : startS,
    ),
  );
}

const places = (count: number): string => (count === 1 ? "1 place" : `${count} places`);
const seconds = (value: number): string => `${value.toFixed(1)} s`;
const span = (fromS: number, toS: number): string => `${fromS.toFixed(1)} to ${seconds(toS)}`;
