import { hasVideo, isProgramme, isWebm } from "../../model/format-ranking.ts";
import type { Format } from "../../model/page-info.ts";
import { codecFamily } from "../attributes.ts";
import type { DashRepresentation } from "./representations.ts";

/** A Representation and the format that it would be alone, without `format_id`. */
export interface Candidate {
  format: Format;
  representation: DashRepresentation;
}

/** The Representations of a format, one per Period, in order. */
export interface Joined {
  representations: DashRepresentation[];
  /** Index of the first Period that has none of its container and codecs; `null`: there is none. */
  missing: number | null;
  /** Indexes of the Periods that have it as another version only: in another language, or a description of the programme. */
  replaced: Replacement[];
}

interface Replacement {
  period: number;
  by: Format;
}

/**
 * Finds which Representations of several Periods belong together. Periods of advertisements and the like
 * have other sizes, bit rates or ids; but a track of a file has one codec.
 *
 * @param candidates All of one kind, in their order in the MPD.
 * @param durations Of the Periods, seconds; `null`: unknown.
 * @returns `listed`: those of the Period that offers most, of equal ones that lasts longest, then that states most roles, without those that have no counterpart in another
 * Period, or whose language the longest Period lacks, unless that is all of them. `join` takes one of them.
 */
export function comparePeriods(
  candidates: readonly Candidate[],
  durations: readonly (number | null)[],
): { listed: Candidate[]; join(candidate: Candidate): Joined } {
  const periods = [...Map.groupBy(candidates, ({ representation }) => representation.period)];
  const rolesIn = (some: readonly Candidate[]) =>
    some.reduce((sum, { format }) => sum + (format.roles?.length ?? 0), 0);
  const [main] = periods.toSorted(
    ([a, ofA], [b, ofB]) =>
      ofB.length - ofA.length || (durations[b] ?? 0) - (durations[a] ?? 0) || rolesIn(ofB) - rolesIn(ofA) || a - b,
  );
  const offered = main?.[1] ?? [];
  const tracks = periods.map(([, others]) => [...distinctTracks(others).values()]);
  const continuations = new Map<string, { isComplete: boolean; has_drm: boolean }>();
  for (const [key, track] of distinctTracks(offered)) {
    const found = tracks.map((others) => others.filter((other) => isSameTrack(other, track)));
    continuations.set(key, {
      isComplete: found.every((others) => others.length > 0),
      has_drm: found.some((others) => others.length > 0 && others.every((other) => other.has_drm)),
    });
  }
  const [longest] = periods.toSorted(([a], [b]) => (durations[b] ?? 0) - (durations[a] ?? 0));
  const languages = new Set(longest?.[1].map(({ format }) => format.language));
  const all = offered.map(({ format, representation }) => {
    const { isComplete = false, has_drm = false } = continuations.get(keyOf(trackOf(format))) ?? {};
    const candidate = { representation, format: { ...format, has_drm: format.has_drm || has_drm } };
    return { candidate, isComplete: isComplete && (languages.has(null) || hasLanguage(languages, format)) };
  });
  const complete = all.filter(({ isComplete }) => isComplete);
  const listed = (complete.length > 0 ? complete : all).map(({ candidate }) => candidate);
  return {
    listed,
    join({ format, representation }) {
      const index = offered.findIndex((each) => each.representation === representation);
      const joined: Joined = { representations: [], missing: null, replaced: [] };
      // Of video without audio, the language counts for nothing.
      const isWordless = representation.kind === "video" && format.acodec === "none";
      for (const [period, others] of periods) {
        const isOwn = period === representation.period;
        const found = isOwn ? representation : bestCounterpart(others, format, { representation, index });
        if (found === undefined) {
          joined.missing ??= period;
          continue;
        }
        joined.representations.push(found);
        const by = others.find((other) => other.representation === found)?.format;
        if (by !== undefined && !isWordless && isOtherVersion(by, format)) joined.replaced.push({ period, by });
      }
      return joined;
    },
  };
}

type Track = ReturnType<typeof trackOf>;

/** Returns what must be equal for samples to be in one track; `null`: unknown. */
function trackOf(format: Format) {
  const { vcodec, acodec, has_drm } = format;
  return { isWebm: isWebm(format), video: codecFamily(vcodec), audio: codecFamily(acodec), has_drm };
}

const keyOf = (track: Track): string => JSON.stringify(track);

function distinctTracks(candidates: readonly Candidate[]): Map<string, Track> {
  const tracks = candidates.map(({ format }) => trackOf(format));
  return new Map(tracks.map((track) => [keyOf(track), track]));
}

function isSameTrack(a: Track, b: Track): boolean {
  const isSame = (one: string | null, other: string | null) => one === null || other === null || one === other;
  return a.isWebm === b.isWebm && isSame(a.video, b.video) && isSame(a.audio, b.audio);
}

/** Returns the candidate of the same container and codecs that is most similar to `format`; undefined: none has these. */
export function mostSimilar<C extends Candidate>(candidates: readonly C[], format: Format): C | undefined {
  const found = bestCounterpart(candidates, format, { representation: { id: null }, index: 0 });
  return candidates.find(({ representation }) => representation === found);
}

/**
 * Prefers, in this order: without DRM, the same language, the same roles, the same name, the nearest height, the same id, the nearest bit
 * rate, the nearest index in the Period.
 */
function bestCounterpart(
  others: readonly Candidate[],
  format: Format,
  { representation: { id }, index }: { representation: Pick<DashRepresentation, "id">; index: number },
): DashRepresentation | undefined {
  const track = trackOf(format);
  const distance = (a: number | null, b: number | null) => Math.abs((a ?? 0) - (b ?? 0));
  let best: { representation: DashRepresentation; distances: number[] } | undefined;
  for (const [at, { format: other, representation }] of others.entries()) {
    if (!isSameTrack(trackOf(other), track)) continue;
    const distances = [
      Number(other.has_drm),
      languageDistance(other.language, format.language),
      roleDistance(other, format),
      Number(other.name !== format.name),
      distance(other.height, format.height),
      Number(representation.id !== id),
      distance(other.tbr, format.tbr),
      Math.abs(at - index),
    ];
    if (best === undefined || isLess(distances, best.distances)) best = { representation, distances };
  }
  return best?.representation;
}

/** Compares the first numbers that differ. */
function isLess(a: readonly number[], b: readonly number[]): boolean {
  const at = a.findIndex((value, index) => value !== b[index]);
  return at !== -1 && (a[at] ?? 0) < (b[at] ?? 0);
}

/** What does not state its language may be in any. */
function isOtherVersion(other: Format, format: Format): boolean {
  const isKnown = other.language !== null && format.language !== null;
  const isOther = isKnown && languageDistance(other.language, format.language) === 2;
  return isOther || (!hasVideo(format) && isProgramme(format) && !isProgramme(other));
}

/** Counts the roles that only one of them has. */
function roleDistance({ roles: a = [] }: Format, { roles: b = [] }: Format): number {
  return a.length + b.length - 2 * a.filter((role) => b.includes(role)).length;
}

function hasLanguage(languages: ReadonlySet<string | null>, { language }: Format): boolean {
  return language === null || [...languages].some((other) => languageDistance(other, language) < 2);
}

function languageDistance(a: string | null, b: string | null): number {
  if (a === b) return 0;
  return a?.split("-", 1)[0] === b?.split("-", 1)[0] ? 1 : 2;
}
