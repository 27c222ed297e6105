import type { PageInfo } from "../../../model/page-info.ts";
import { pageKey } from "../../../parsers/url.ts";
import { createSimilarity, isOfTrailer, type MediumNames, namesTrailer, type PageNames } from "./similarity.ts";

/** What the page states about itself, to compare media with. */
export interface PageIdentity extends PageNames {
  /** Seconds. */
  duration: number | null;
  isFrontPage: boolean;
  /** A vocabulary calls the page video or audio, or it has a player. */
  isMedium: boolean;
  /** What the vocabularies call the page; null: nothing. */
  mediaType: PageInfo["media_type"] | null;
}

/**
 * Why a medium is excluded. `doubtful`: only the name of its file or folder says so; `other`: it is not the page's; `preview`:
 * it is a part of one; `never`: it is an advertisement, captions or part of the site's design.
 */
export type Exclusion = "none" | "doubtful" | "other" | "preview" | "never";

/** A medium that the page's vocabularies or its players name. */
export interface Candidate extends MediumNames {
  /** The same for all candidates that are one medium. */
  key: unknown;
  kind: "video" | "audio";
  /** Of its page and of its player. */
  urls: readonly URL[];
  /** Seconds. */
  duration: number | null;
  exclusion: Exclusion;
  /** What is around it, not its file, says that it is another page's medium. */
  isInOther: boolean;
  /** It has a title and a duration, and nothing around it excludes it. */
  isDescribed?: boolean;
  /** A vocabulary calls it the page's main entity. */
  isMain?: boolean;
  /** Its type or its file's name says that it is a trailer; its titles may do so too. */
  isTrailer?: boolean;
  isInArticle?: boolean;
  isElement?: boolean;
  /** It is one of several elements of a list. */
  isListed?: boolean;
  /** It is the one file of one of several tags that are alike. */
  isOneOfTags?: boolean;
}

/** If a page names more media than this, and nothing shows which one is its own, none is. */
const maxCandidates = 3;
/** How much two durations of one medium may differ, seconds. */
const maxDurationError = 2;
/** The points that an excluded medium needs. */
const minPoints = 2;

/** The signs of the page's own medium: the points of those that hold are added. */
const signals = [
  ["isMain", 20, "its vocabulary says so"],
  ["hasPageUrl", 6, "its page or its player is this one"],
  ["hasTitle", 4, "one title is a part of the other: pages add the name of their site"],
  ["hasWholeTitle", 1, "besides: a part of a title may be of a series"],
  ["hasId", 2, "pages have the ids of their media in their URLs"],
  ["hasDuration", 1, "two media may have the same, so it only decides between them"],
  ["isTrailer", -1, "of a page that does not call itself one: its title is often the film's with a word more"],
] as const;
/** The signs that it is not the one that is chosen by its position. */
const objections = [
  ["hasOtherDuration", "the page states another one"],
  ["isElsewhere", "it has a title, and is one of several or leads to another page of the site"],
] as const;
type Signal = (typeof signals)[number][0] | (typeof objections)[number][0];

interface Ranked<C> {
  candidate: C;
  holds: Record<Signal, boolean>;
  points: number;
  isOther: boolean;
}

/**
 * Chooses the medium that is the page's own; null if none is, or if nothing shows which. One for which a signal speaks is
 * certain; of these the one with most points is chosen, and an excluded one last. Without any, position counts: the first
 * one against which nothing speaks, a trailer last, if the page calls itself a medium, it is in the page's article, or there are at most three.
 * Media outside of lists come first. One of several similar tags, and a medium of a front page, is chosen by position only if the
 * page calls itself a medium.
 *
 * A related medium is chosen only if its title, id or URL is the page's; an advertisement never. A preview is chosen only if its
 * duration is the page's too, or if it has a title and a duration. The same holds if only the name of the file or folder excludes
 * a medium, unless its title is the page's. Video comes before audio, unless the page calls itself audio, or only the audio
 * is certain. If a page that calls itself a medium names nothing else, a preview with a title and a duration is chosen: some
 * sites call the whole video so.
 */
export function chooseMedium<C extends Candidate>(candidates: readonly C[], page: PageIdentity): C | null {
  const [only] = candidates;
  if (only === undefined) return null;
  if (candidates.length === 1 && isUndisputed(only, page)) return only;
  const rank = createRanking<C>(page);
  const ranked: Ranked<C>[] = [];
  for (const candidate of candidates) {
    if (candidate.exclusion !== "never") ranked.push(rank(candidate));
  }
  const videos = ranked.filter(({ candidate }) => candidate.kind === "video");
  const audios = ranked.filter(({ candidate }) => candidate.kind === "audio");
  const [first, second] = page.mediaType === "audio" ? [audios, videos] : [videos, audios];
  const hasKind = page.mediaType === "video";
  return (
    chooseCertain(first) ??
    (hasKind ? chooseByPosition(first, page) : null) ??
    chooseCertain(second) ??
    (hasKind ? null : chooseByPosition(first, page)) ??
    chooseByPosition(second, page)
  );
}

/** Whether nothing can speak against a page's only medium: it need not be compared. */
function isUndisputed(candidate: Candidate, page: PageIdentity): boolean {
  const { exclusion, duration, isListed, isElement } = candidate;
  const isInList = isListed === true || isElement === true;
  const haveDurations = duration !== null && page.duration !== null;
  const canBeChosen = page.isMedium || !page.isFrontPage;
  return exclusion === "none" && canBeChosen && !isInList && !haveDurations;
}

function createRanking<C extends Candidate>(page: PageIdentity): (candidate: C) => Ranked<C> {
  const similarity = createSimilarity(page);
  const keys = new Set(page.urls.map(pageKey));
  const [own] = page.urls;
  const takesTrailers = isOfTrailer(page);
  return (candidate) => {
    const { kind, titles, duration, urls, isMain = false } = candidate;
    const { isListed = false, isElement = false } = candidate;
    const { title, isId } = similarity(candidate);
    const difference = duration === null || page.duration === null ? null : Math.abs(duration - page.duration);
    const isElsewhere = isListed || (isElement && urls.some((url) => isOtherPage(url, own)));
    const holds: Record<Signal, boolean> = {
      isMain,
      hasPageUrl: urls.some((url) => keys.has(pageKey(url))),
      hasTitle: title !== "none",
      hasWholeTitle: title === "whole",
      hasId: isId,
      hasDuration: difference !== null && difference <= maxDurationError,
      isTrailer: kind === "video" && !takesTrailers && (candidate.isTrailer === true || titles.some(namesTrailer)),
      hasOtherDuration: difference !== null && difference > Math.max(5, (page.duration ?? 0) / 10),
      isElsewhere: isElsewhere && titles.length > 0,
    };
    return {
      candidate,
      holds,
      points: signals.reduce((sum, [signal, points]) => sum + (holds[signal] ? points : 0), 0),
      isOther: objections.some(([signal]) => holds[signal]),
    };
  };
}

/** Whether it is another page of the same site. */
function isOtherPage(url: URL, page: URL | undefined): boolean {
  return url.host === page?.host && url.pathname !== "/" && pageKey(url) !== pageKey(page);
}

function chooseCertain<C extends Candidate>(ranked: readonly Ranked<C>[]): C | null {
  const certain = ranked.filter((each) => isCertain(each));
  const most = Math.max(0, ...certain.map(({ points }) => points));
  const best = certain.filter(({ points }) => points === most);
  return (best.find(isDirect) ?? best[0])?.candidate ?? null;
}

function isCertain({ candidate, points, holds }: Ranked<Candidate>): boolean {
  const { exclusion, isInOther, isDescribed } = candidate;
  if (exclusion === "none") return points > 0;
  if (exclusion === "doubtful" && holds.hasWholeTitle) return true;
  return points >= minPoints && (isInOther || holds.hasDuration || isDescribed === true);
}

function chooseByPosition<C extends Candidate>(ranked: readonly Ranked<C>[], page: PageIdentity): C | null {
  if (page.isFrontPage && !page.isMedium) return null;
  const all = ranked.filter((each) => isDirect(each) && !each.isOther);
  if (all.length === 0 && page.isMedium) return choosePreview(ranked);
  const films = all.filter(({ holds }) => !holds.isTrailer);
  const possible = films.length > 0 ? films : all;
  const single = possible.filter(({ candidate }) => !candidate.isListed);
  const main = (single.length > 0 ? single : possible).map(({ candidate }) => candidate);
  const [first] = main;
  if (first === undefined || page.isMedium || first.isInArticle) return first ?? null;
  if (main.length > 1 && main.every(({ isOneOfTags }) => isOneOfTags)) return null;
  return new Set(main.map(({ key }) => key)).size <= maxCandidates ? first : null;
}

function choosePreview<C extends Candidate>(ranked: readonly Ranked<C>[]): C | null {
  const previews = ranked.filter(
    ({ candidate, isOther }) => candidate.exclusion === "preview" && candidate.isDescribed && !isOther,
  );
  return previews.length <= maxCandidates ? (previews[0]?.candidate ?? null) : null;
}

function isDirect({ candidate }: Ranked<Candidate>): boolean {
  return candidate.exclusion === "none";
}
