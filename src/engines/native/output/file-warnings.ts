import type { FileWarning, FileWarningCode } from "../../../model/file-warnings.ts";
import type { Cut } from "../../../remux/mp4/cut-plan.ts";
import { assertSampleCounts } from "../../../remux/mp4/read/listed-samples.ts";
import { type TrackKind, trackKinds } from "../../../remux/samples.ts";
import { places, publishedDamage } from "../damage/published-damage.ts";
import {
  type FetchStats,
  type FetchStatsBySource,
  describeSegments,
  ofSources,
  roundingS,
  seconds,
  usualGapS,
} from "../sources/fetch-stats.ts";
import type { Written, WrittenTrack } from "./demux-session.ts";
import { damagedSegments, unorderedSegments, type WebmSegments } from "./webm-segments.ts";

/** A track may begin so much after the other one of its source; those further apart have clocks of their own, seconds. */
const mostApartS = 8;

/** What is known of a downloaded file. */
export interface FileStats {
  path: string;
  /** As it was read back, seconds; `null`: the file does not state it. */
  durationS: number | null;
  /** `null`: the file is as published, or a WebM or Matroska file. */
  written: Written | null;
  listedKinds: readonly TrackKind[];
  /** What the segments had that were joined as they are. */
  joined?: readonly WebmSegments[];
  /** What of its samples is damaged, in words; absent: nothing. */
  damage?: readonly string[];
  /** What of the media it presents; absent: all. */
  cut?: Cut;
}

/**
 * Compares what was listed and fetched with the file. Returns what differs, as far as it is known: at most one
 * warning of each code.
 *
 * @throws ServiceError `internal` if the index of the file lists other samples than were written.
 */
export function findFileWarnings(fetched: FetchStatsBySource, file: FileStats): FileWarning[] {
  const { written, listedKinds, path, durationS, cut, joined = [], damage = [] } = file;
  const segments = describeSegments(fetched, cut === undefined ? written?.tracks : [], cut?.kept);
  if (cut !== undefined) return findCutWarnings(segments, { ...file, cut });
  if (written === null) {
    return toWarnings([
      ["frames_missing", [...segments.missing, ...damagedSegments(joined), ...publishedDamage(path, true), ...damage]],
      ["gap", [...segments.unlisted, ...joinedGaps(joined, fetched)]],
      ["times_changed", unorderedSegments(joined)],
      ["duration_differs", [...(durationS === null ? [] : differentDurations(fetched, durationS)), ...segments.left]],
      ["stream_lost", segments.lost],
      ["audio_missing", segments.replaced],
    ]);
  }
  const { tracks } = written;
  assertSampleCounts(path, tracks);
  return toWarnings([
    ["frames_missing", [...segments.missing, ...drops(written), ...shortEnds(written), ...damage]],
    ["gap", [...segments.unlisted, ...trackGaps(tracks, fetched)]],
    ["duration_differs", [...differentTrackDurations(fetched, tracks, durationS), ...segments.left]],
    ["times_changed", tracks.flatMap(changedTimes)],
    ["track_missing", missingTracks(tracks, listedKinds, written.listed)],
    ["tracks_left", leftTracks(written.left)],
    ["stream_lost", segments.lost],
    ["audio_missing", segments.replaced],
  ]);
}

/** Media that are not in the file are compared with nothing. */
function findCutWarnings(
  segments: ReturnType<typeof describeSegments>,
  { written, listedKinds, durationS, cut, damage = [] }: FileStats & { cut: Cut },
): FileWarning[] {
  const { tracks = [] } = written ?? {};
  const differs = durationS === null || Math.abs(durationS - cut.durationS) > roundingS;
  const lasts = `the file lasts ${seconds(durationS ?? 0)}, its parts ${seconds(cut.durationS)}`;
  return toWarnings([
    ["frames_missing", [...segments.missing, ...(written === null ? [] : drops(written)), ...damage]],
    ["gap", [...segments.unlisted, ...gapsWithin(tracks, written?.originS ?? 0, cut)]],
    ["duration_differs", [...(differs ? [lasts] : []), ...segments.left]],
    ["times_changed", tracks.flatMap(changedTimes)],
    ["track_missing", written === null ? [] : missingTracks(tracks, listedKinds, written.listed)],
    ["tracks_left", leftTracks(written?.left ?? { video: 0, audio: cut.leftAudio })],
    ["stream_lost", segments.lost],
    ["audio_missing", segments.replaced],
  ]);
}

/** Describes gaps in what is presented, with their times in the whole. */
function gapsWithin(tracks: readonly WrittenTrack[], originS: number, { kept, gaps: atEnds }: Cut): string[] {
  const within = tracks.flatMap(({ kind, gaps }) =>
    gaps.first
      .map(({ fromS, toS }) => ({ kind, startS: fromS - originS, endS: toS - originS }))
      .filter(({ startS, endS }) => kept.some((range) => startS < range.endS && endS > range.startS)),
  );
  return [...within, ...atEnds].map(({ kind, startS, endS }) => `no ${kind} from ${span(startS, endS)} of the whole`);
}

function toWarnings(findings: readonly [FileWarningCode, string[]][]): FileWarning[] {
  return findings.filter(([, found]) => found.length > 0).map(([code, found]) => ({ code, message: found.join("; ") }));
}

function drops({ drops: left }: Written): string[] {
  return trackKinds
    .filter((kind) => left[kind] > 0)
    .map((kind) => `${kind} is damaged at ${places(left[kind])}, and left out there`);
}

function joinedGaps(joined: readonly WebmSegments[], fetched: FetchStatsBySource): string[] {
  const tracks = joined.flatMap((segments) => segments.tracks());
  return tracks.length === 0 ? [] : trackGaps(tracks, fetched);
}

function shortEnds({ shortEnds: found }: Written): string[] {
  return found.map(({ source, missingS, before }) => {
    const what = source === "main" ? "" : " of the separate audio";
    const less = `${missingS.toFixed(1)} s less than the playlist says`;
    if (before === null) return `the last segment${what} has ${less}`;
    const segments = before === 1 ? "a segment before a discontinuity" : `${before} segments before discontinuities`;
    return `${segments}${what} ${before === 1 ? "has" : "have"} ${less}`;
  });
}

function trackGaps(tracks: readonly WrittenTrack[], fetched: FetchStatsBySource): string[] {
  const startS = originOf(tracks);
  const endS = Math.max(...tracks.map((track) => track.endS));
  return tracks.flatMap((track) => {
    const { kind, gaps } = track;
    const shown = gaps.first.map(({ fromS, toS }) => span(fromS - startS, toS - startS));
    const rest = gaps.count - shown.length;
    const more = rest > 0 ? `, and ${rest} more; ${seconds(gaps.totalS)} together` : "";
    const within = gaps.count > 0 ? [`no ${kind} from ${shown.join(", ")}${more}`] : [];
    const late = track.startS - startS;
    const early = endS - track.endS;
    const stats = fetched.get(track.source);
    if (stats !== undefined && lastsAsListed(track, tracks, stats)) return within;
    const { lateS = usualGapS, earlyS = usualGapS } = stats?.tolerance ?? {};
    const { unread } = track;
    if (unread && track.startS - unread.startS > lateS) {
      within.unshift(`the ${kind} begins ${seconds(track.startS - unread.startS)} after the video of its source`);
    }
    if (unread && unread.endS - track.endS > earlyS) {
      within.push(`the ${kind} ends ${seconds(unread.endS - track.endS)} before the video of its source`);
    }
    if (late > lateS) within.unshift(`no ${kind} from ${span(0, late)}`);
    if (early > earlyS) within.push(`no ${kind} from ${span(track.endS - startS, endS - startS)}`);
    return within;
  });
}

function differentDurations(fetched: FetchStatsBySource, durationS: number): string[] {
  return ofSources(fetched, (stats, what) => differentSource(stats, { playedS: durationS, endS: durationS }, what));
}

function differentTrackDurations(
  fetched: FetchStatsBySource,
  tracks: readonly WrittenTrack[],
  durationS: number | null,
): string[] {
  const isAudio = tracks.every(({ kind }) => kind === "audio");
  const found = ofSources(fetched, (stats, what, name) => {
    const own = tracks.filter((track) => track.source === name);
    if (own.every((track) => lastsAsListed(track, own, stats))) return [];
    // One of its tracks may have nothing at an end: that is a gap.
    const spans = own.flatMap(({ unread, ...track }) => (unread ? [track, unread] : [track]));
    const startS = Math.min(...spans.map((span) => span.startS));
    const endS = Math.max(...spans.map((span) => span.endS));
    const gapsS = Math.min(...own.map(({ gaps }) => gaps.totalS));
    const playedS = endS - startS;
    // A manifest may list what is before and after a gap, and the gap has a warning of its own.
    const withoutGaps = differentSource(stats, { playedS: playedS - gapsS, endS, isAudio }, what);
    return withoutGaps.length === 0 || stats.unlisted.count > 0
      ? withoutGaps
      : differentSource(stats, { playedS, endS, isAudio }, what);
  });
  const endS = Math.max(...tracks.map((track) => track.endS));
  const writtenS = endS - originOf(tracks);
  const differs = durationS !== null && Math.abs(durationS - writtenS) > usualGapS;
  const file = `the file states ${seconds(durationS ?? 0)}, and has samples for ${seconds(writtenS)}`;
  return differs && tracks.length > 0 ? [...found, file] : found;
}

/**
 * Whether the track has all that its source lists, and lacks nothing before or after it, though it begins up to `mostApartS` after the other.
 * False if the source has no other track, with which it is in sync: one that is alone may begin late because its segments are in another order.
 */
function lastsAsListed(track: WrittenTrack, tracks: readonly WrittenTrack[], { listedS }: FetchStats): boolean {
  const { source, startS, endS, gaps } = track;
  const ofSource = tracks.filter((other) => other.source === source);
  if (ofSource.length === 1 || listedS === null || startS - originOf(ofSource) > mostApartS) return false;
  return Math.abs(endS - startS - gaps.totalS - listedS) <= roundingS;
}

function differentSource(
  stats: FetchStats,
  { playedS, endS, isAudio = false }: { playedS: number; endS: number; isAudio?: boolean },
  what: string,
): string[] {
  const { listedS, segments, absent } = stats;
  if (listedS === null || segments === 0) return [];
  // The media may start late, but the segments before the one that is absent are all there are.
  const isShort = absent > 0 && listedS - Math.max(playedS, endS) > roundingS;
  if (!isShort && !stats.differsFrom(listedS, playedS, isAudio)) return [];
  const why = isShort ? `, and the last segment does not exist` : "";
  return [`the media${what} last ${seconds(playedS)}, their manifest says ${seconds(listedS)}${why}`];
}

function changedTimes({ kind, samples, outOfOrder, sameTime, guessed }: WrittenTrack): string[] {
  const counts = [
    outOfOrder > 0 && `${outOfOrder} of ${samples} ${kind} samples do not come after the one before`,
    guessed > 0 && `${guessed} of ${samples} ${kind} samples have no time, and may be shown in another order`,
    sameTime > 0 && `${sameTime} of ${samples} ${kind} samples have the time of another one`,
  ];
  return counts.filter((text) => text !== false);
}

/** Describes kinds of tracks that a format or its media list and a file with these tracks lacks. */
export function missingTracks(
  tracks: readonly Pick<WrittenTrack, "kind">[],
  listedKinds: readonly TrackKind[],
  listedByMedia: readonly TrackKind[] = [],
): string[] {
  const lists = new Map<TrackKind, string>();
  for (const kind of listedByMedia) lists.set(kind, `the media list ${kind}`);
  for (const kind of listedKinds) lists.set(kind, `the format has ${kind}`);
  for (const { kind } of tracks) lists.delete(kind);
  return [...lists.values()].map((list) => `${list}, the file has none`);
}

/** @param left Tracks of the source that are not in the file. */
export function leftTracks(left: Readonly<Record<TrackKind, number>>): string[] {
  return trackKinds.flatMap((kind) => {
    const [tracks, are] = left[kind] === 1 ? ["track", "is"] : ["tracks", "are"];
    return left[kind] > 0 ? [`${left[kind]} further ${kind} ${tracks} of the source ${are} left out`] : [];
  });
}

/** Time 0 of the file, but for priming: that is far shorter than what is compared. */
function originOf(tracks: readonly WrittenTrack[]): number {
  return Math.min(...tracks.map(({ startS }) => startS));
}

const span = (fromS: number, toS: number): string => `${fromS.toFixed(1)} to ${seconds(toS)}`;
