import type { PageInfo } from "../../../model/page-info.ts";
import { mediaTypeOf } from "../../../parsers/media-type.ts";
import type { Steps } from "../../../parsers/steps.ts";
import { pageKey, tryParseUrl } from "../../../parsers/url.ts";
import type { Candidate } from "./candidates.ts";
import { isTag, namesFile } from "./data.ts";
import { describeItem } from "./item.ts";
import { createLikeness } from "./likeness.ts";
import { createExclusions } from "./names.ts";
import { createPositions } from "./position.ts";

/** If a page names more media than this, and nothing tells which one is its own, none is. */
const maxCandidates = 3;

/** What the page's vocabularies state about it, to compare media with. */
export interface PageFacts {
  titles: readonly string[];
  /** The page's own first, then its canonical one and that of the player to embed. */
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
 * - its title is the page's, or one is a part of the other;
 * - its id is a part of the page's URL, or its URL is the page's;
 * - its duration is the one that the page states;
 * - its position: the first one, if the page calls itself a medium or names at most three. Media outside of lists come
 *   first. An element of a list is not chosen by position if it has a title and is one of several or links to another
 *   page. One of several similar tags, and a medium of a front page, is chosen by position only if the page calls itself a
 *   medium.
 *
 * Names may exclude a medium. A related video is chosen only if its title, id or URL is the page's; an advertisement never.
 * A preview is chosen only if its duration is the page's too, or if it has a title and a duration. The same holds if only
 * the name of the file or folder excludes a medium, unless its title is the page's. Video comes before audio, unless the
 * page calls itself audio, or only the audio is chosen by more than its position. If a page that calls itself a medium names
 * nothing else, a preview with a title and a duration is chosen: some sites call the whole video so.
 */
export function* choosePlayer(
  candidates: readonly Candidate[],
  page: PageFacts,
): Steps<Candidate | null> {
  const score = createScore(page);
  const scored: Scored[] = [];
  for (const candidate of candidates) {
    yield;
    if (candidate.exclusion !== "never") scored.push(score(candidate));
  }
  const isVideo = ({ candidate }: Scored) => candidate.resources.some(isVideoResource);
  const videos = scored.filter(isVideo);
  const audios = scored.filter((each) => !isVideo(each));
  if (page.mediaType === "video") {
    const choose = (some: Scored[]) => chooseCertain(some) ?? chooseByPosition(some, page);
    return choose(videos) ?? choose(audios);
  }
  const [first, second] = page.mediaType === "audio" ? [audios, videos] : [videos, audios];
  return (
    chooseCertain(first) ??
    chooseCertain(second) ??
    chooseByPosition(first, page) ??
    chooseByPosition(second, page)
  );
}

interface Scored {
  candidate: Candidate;
  /** Points for a title, an id or URL, and a duration that are the page's. */
  points: number;
  /** Its title is the page's whole title. */
  isSameTitle: boolean;
  isSameDuration: boolean;
  /** Its duration is another than the page's, or a list says that it is another page's. */
  isOther: boolean;
  /** It is one of several of a list. */
  isListed: boolean;
  /** The names of its item and of the objects around it say that it is another video. */
  isInOther: boolean;
  /** Its item has a title and a duration, and no name of the item excludes it. */
  isDescribed: boolean;
}

function createScore(page: PageFacts): (candidate: Candidate) => Scored {
  const likeness = createLikeness(page);
  const exclusions = createExclusions();
  const positionOf = createPositions();
  const keys = new Set(page.urls.map(pageKey));
  const [base] = page.urls;
  const pageAt = (text: string) => {
    const url = base === undefined || namesFile(text) ? null : tryParseUrl(text, base);
    return url ?? [];
  };
  return (candidate) => {
    const { item } = candidate;
    const { titles, texts, ids, urls, duration } = describeItem(item, exclusions.ofName);
    const { isElement, isListed } = positionOf(item);
    const { titlePoints, isId } = likeness({ titles, texts, ids });
    const exclusion = exclusions.ofData(item);
    const pages = urls.flatMap(pageAt);
    const isOwn = isId || pages.some((url) => keys.has(pageKey(url)));
    const isElsewhere = isListed || (isElement && pages.some((url) => isOtherPage(url, base)));
    const off =
      duration === null || page.duration === null ? null : Math.abs(duration - page.duration);
    const isSameDuration = off !== null && off <= 2;
    const isOtherDuration = off !== null && off > Math.max(5, (page.duration ?? 0) / 10);
    return {
      candidate,
      points: titlePoints + (isOwn ? 2 : 0) + (isSameDuration ? 1 : 0),
      isSameTitle: titlePoints === 5,
      isSameDuration,
      isOther: isOtherDuration || (isElsewhere && titles.length > 0),
      isListed,
      isInOther: exclusion === "other",
      isDescribed: titles.length > 0 && duration !== null && exclusion === "none",
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

function chooseByPosition(scored: readonly Scored[], page: PageFacts): Candidate | null {
  if (page.isFrontPage && !page.isMedium) return null;
  const possible = scored.filter((each) => isDirect(each) && !each.isOther);
  if (possible.length === 0 && page.isMedium) {
    const previews = scored.filter(
      (each) => each.candidate.exclusion === "preview" && each.isDescribed && !each.isOther,
    );
    return previews.length <= maxCandidates ? (previews[0]?.candidate ?? null) : null;
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
  return candidate.exclusion === "none";
}

function isCertain(scored: Scored): boolean {
  const { candidate, points, isSameTitle, isSameDuration, isDescribed, isInOther } = scored;
  if (candidate.exclusion === "none") return points > 0;
  if (candidate.exclusion === "doubtful" && isSameTitle) return true;
  return points >= 2 && (isInOther || isSameDuration || isDescribed);
}

function isVideoResource({ fallback, url }: Candidate["resources"][number]): boolean {
  return fallback === "video" && mediaTypeOf(null, url).kind !== "audio";
}
