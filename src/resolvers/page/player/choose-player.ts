import type { PageInfo } from "../../../page-info.ts";
import { mediaTypeOf } from "../../../parsers/media-type.ts";
import type { Steps } from "../../../parsers/steps.ts";
import { pageKey, tryParseUrl } from "../../../parsers/url.ts";
import type { Candidate } from "./candidates.ts";
import { isTag, namesFile } from "./data.ts";
import { describeItem } from "./item.ts";
import { createLikeness } from "./likeness.ts";
import { createBars } from "./names.ts";
import { createPlaces } from "./place.ts";

/** If a page names more media than this, and nothing tells which one is its own, none is. */
const maxCandidates = 3;

/** What the page's vocabularies state about it, to compare media with. */
export interface PageFacts {
  titles: readonly string[];
  /** Of the page, and of the player to embed. */
  urls: readonly URL[];
  /** Seconds. */
  duration: number | null;
  isFrontPage: boolean;
  /** A vocabulary calls the page video or audio, or it has a player. */
  isMedium: boolean;
  /** What the vocabularies call the page. */
  mediaType: PageInfo["media_type"];
}

/**
 * Chooses the medium that is the page's own; null if none is, or if it cannot be told. What counts, the
 * most telling first:
 * - its title is the page's, or is a part of it;
 * - its id is a part of the page's URL, or its URL is the page's;
 * - its duration is the one that the page states;
 * - its place: the first one of a page that calls itself a medium, or has no more than three. One that stands for itself
 *   comes before those of a list. What a list calls by another title, or gives another page, is not the page's; neither is
 *   one of several tags that are alike, unless the page calls itself a medium. A front page that does not has none.
 *
 * What is called a related video is taken only if its title, id or URL is the page's; an advertisement never. A preview is
 * taken only if its duration is the page's too or stands beside its title. The same holds if only the name of the file or
 * folder tells against a medium, unless its title is the page's. Video comes before audio, unless the page calls itself
 * audio, or only the audio is told by more than its place. If a page that calls itself a medium names nothing else, an
 * address that is called a preview is taken where a title and a duration stand beside it: sites name the whole video so too.
 */
export function* choosePlayer(
  candidates: readonly Candidate[],
  page: PageFacts,
): Steps<Candidate | null> {
  const score = createScore(page);
  const scored: Scored[] = [];
  for (const candidate of candidates) {
    yield;
    if (candidate.bar !== "never") scored.push(score(candidate));
  }
  const isVideo = ({ candidate }: Scored) => candidate.resources.some(isVideoResource);
  const videos = scored.filter(isVideo);
  const audios = scored.filter((each) => !isVideo(each));
  if (page.mediaType === "video") {
    const choose = (some: Scored[]) => chooseCertain(some) ?? chooseByPlace(some, page);
    return choose(videos) ?? choose(audios);
  }
  const [first, second] = page.mediaType === "audio" ? [audios, videos] : [videos, audios];
  return (
    chooseCertain(first) ??
    chooseCertain(second) ??
    chooseByPlace(first, page) ??
    chooseByPlace(second, page)
  );
}

interface Scored {
  candidate: Candidate;
  /** What speaks for it, weighed: title, id, duration. */
  points: number;
  /** Its title is the page's, not only a part of it. */
  isTitled: boolean;
  isSameDuration: boolean;
  /** Its duration is another than the page's, or a list says that it is another page's. */
  isOther: boolean;
  /** It is one of several of a list. */
  isListed: boolean;
  /** The names around what describes it tell of another video, not only those within. */
  isInOther: boolean;
  /** It has a title and a duration, and only the name of its address calls it a preview. */
  isWhole: boolean;
}

function createScore(page: PageFacts): (candidate: Candidate) => Scored {
  const likeness = createLikeness(page);
  const bars = createBars();
  const placeOf = createPlaces();
  const keys = new Set(page.urls.map(pageKey));
  const [base] = page.urls;
  const pageAt = (text: string) => {
    const url = base === undefined || namesFile(text) ? null : tryParseUrl(text, base);
    return url ?? [];
  };
  return (candidate) => {
    const { item } = candidate;
    const { titles, texts, ids, urls, duration } = describeItem(item, bars.ofName);
    const { isElement, isListed } = placeOf(item);
    const { title, isId } = likeness({ titles, texts, ids });
    const bar = bars.ofData(item);
    const pages = urls.flatMap(pageAt);
    const isOwn = isId || pages.some((url) => keys.has(pageKey(url)));
    const isElsewhere = isListed || (isElement && pages.some((url) => isOtherPage(url, base)));
    const off =
      duration === null || page.duration === null ? null : Math.abs(duration - page.duration);
    const isSameDuration = off !== null && off <= 2;
    const isOtherDuration = off !== null && off > Math.max(5, (page.duration ?? 0) / 10);
    return {
      candidate,
      points: title + (isOwn ? 2 : 0) + (isSameDuration ? 1 : 0),
      isTitled: title === 5,
      isSameDuration,
      isOther: isOtherDuration || (isElsewhere && titles.length > 0),
      isListed,
      isInOther: bar === "other",
      isWhole: titles.length > 0 && duration !== null && bar === "none",
    };
  };
}

/** Whether it is another page of the same site. */
function isOtherPage(url: URL, page: URL | undefined): boolean {
  return url.host === page?.host && url.pathname !== "/" && pageKey(url) !== pageKey(page);
}

function chooseCertain(scored: readonly Scored[]): Candidate | null {
  const certain = scored.filter((each) => isCertain(each));
  const most = Math.max(0, ...certain.map(({ points }) => points));
  const best = certain.filter(({ points }) => points === most);
  return (best.find(isDirect) ?? best[0])?.candidate ?? null;
}

function chooseByPlace(scored: readonly Scored[], page: PageFacts): Candidate | null {
  if (page.isFrontPage && !page.isMedium) return null;
  const possible = scored.filter((each) => isDirect(each) && !each.isOther);
  if (possible.length === 0 && page.isMedium) {
    const whole = scored.filter(
      (each) => each.candidate.bar === "preview" && each.isWhole && !each.isOther,
    );
    return whole.length <= maxCandidates ? (whole[0]?.candidate ?? null) : null;
  }
  const single = possible.filter(({ isListed }) => !isListed);
  const main = single.length > 0 ? single : possible;
  if (!page.isMedium && main.length > 1 && main.every(isOneOfTags)) return null;
  return page.isMedium || main.length <= maxCandidates ? (main[0]?.candidate ?? null) : null;
}

/** Whether it is the one file of one of several tags that are alike. */
function isOneOfTags({ candidate: { item, resources }, isListed }: Scored): boolean {
  return isListed && isTag(item) && resources.length === 1;
}

function isDirect({ candidate }: Scored): boolean {
  return candidate.bar === "none";
}

function isCertain(scored: Scored): boolean {
  const { candidate, points, isTitled, isSameDuration, isWhole, isInOther } = scored;
  if (candidate.bar === "none") return points > 0;
  if (candidate.bar === "doubtful" && isTitled) return true;
  return points >= 2 && (isInOther || isSameDuration || isWhole);
}

function isVideoResource({ fallback, url }: Candidate["resources"][number]): boolean {
  return fallback === "video" && mediaTypeOf(null, url).kind !== "audio";
}
