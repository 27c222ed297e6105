import type { Steps } from "../../../parsers/steps.ts";
import { pageKey, tryParseUrl } from "../../../parsers/url.ts";
import type { Candidate } from "./candidates.ts";
import { createBars } from "./names.ts";
import { describeItem } from "./item.ts";

/** If a page names more media than this, and nothing tells which one is its own, none is. */
const maxCandidates = 3;
const minTitleLength = 8;
const minIdLength = 4;

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
}

/**
 * Chooses the medium that is the page's own; null if none is, or if it cannot be told. What counts, the
 * most telling first:
 * - its title is the page's, or is a part of it;
 * - its id is a part of the page's URL, or its URL is the page's;
 * - its duration is the one that the page states;
 * - its place: the first one of a page that calls itself a medium, or has no more than three. A front
 *   page that does not call itself a medium has none.
 *
 * A preview or a related video is taken only for its title, id or URL; an advertisement never. Video comes
 * before audio. If a page that calls itself a medium names nothing else, an address that is called a preview is
 * taken where a title and a duration stand beside it: sites name the whole video so too.
 */
export function* choosePlayer(
  candidates: readonly Candidate[],
  page: PageFacts,
): Steps<Candidate | null> {
  const scored: Scored[] = [];
  for (const candidate of candidates) {
    yield;
    if (candidate.bar !== "never") scored.push(score(candidate, page));
  }
  const isVideo = ({ candidate }: Scored) => candidate.resources.some(isVideoResource);
  return (
    choose(scored.filter(isVideo), page) ??
    choose(
      scored.filter((each) => !isVideo(each)),
      page,
    )
  );
}

interface Scored {
  candidate: Candidate;
  /** What speaks for it, weighed: title, id, duration. */
  points: number;
  /** Its duration is another than the page's. */
  isOther: boolean;
  /** It has a title and a duration, and only the name of its address calls it a preview. */
  isWhole: boolean;
}

function score(candidate: Candidate, page: PageFacts): Scored {
  const { titles, ids, urls, duration } = describeItem(candidate.item);
  const base = page.urls[0];
  const keys = new Set(page.urls.map(pageKey));
  const isTitle = titles.some((title) => page.titles.some((each) => isSameTitle(title, each)));
  const isId =
    ids.some((id) => page.urls.some(({ href }) => hasPart(href, id))) ||
    urls.some((text) => {
      const url = base === undefined ? null : tryParseUrl(text, base);
      return url !== null && keys.has(pageKey(url));
    });
  const off =
    duration === null || page.duration === null ? null : Math.abs(duration - page.duration);
  const isSame = off !== null && off <= 2;
  const isOther = off !== null && off > Math.max(5, (page.duration ?? 0) / 10);
  const isWhole =
    titles.length > 0 && duration !== null && createBars().ofData(candidate.item) === "none";
  return {
    candidate,
    isWhole,
    points: (isTitle ? 4 : 0) + (isId ? 2 : 0) + (isSame ? 1 : 0),
    isOther,
  };
}

function choose(scored: readonly Scored[], page: PageFacts): Candidate | null {
  const isDirect = ({ candidate }: Scored) => candidate.bar === "none";
  const certain = scored.filter((each) => each.points >= 2 || (each.points > 0 && isDirect(each)));
  const most = Math.max(0, ...certain.slice(0, 1_000).map(({ points }) => points));
  const best = certain.filter(({ points }) => points === most);
  const chosen = best.find(isDirect) ?? best[0];
  if (chosen !== undefined) return chosen.candidate;
  if (page.isFrontPage && !page.isMedium) return null;
  const possible = scored.filter((each) => isDirect(each) && !each.isOther);
  if (possible.length === 0 && page.isMedium) {
    const whole = scored.filter((each) => each.isWhole && !each.isOther);
    return whole.length <= maxCandidates ? (whole[0]?.candidate ?? null) : null;
  }
  const isMain = page.isMedium || possible.length <= maxCandidates;
  return isMain ? (possible[0]?.candidate ?? null) : null;
}

function isVideoResource({ fallback, url }: Candidate["resources"][number]): boolean {
  return fallback === "video" && !/\.(?:mp3|m4a|aac|og[ga]|opus|wav|flac)$/i.test(url.pathname);
}

function isSameTitle(a: string, b: string): boolean {
  const [one, other] = [comparable(a), comparable(b)];
  if (one === other) return one !== "";
  const [short, long] = one.length < other.length ? [one, other] : [other, one];
  return short.length >= minTitleLength && long.includes(short);
}

function comparable(text: string): string {
  return text
    .slice(0, 1_000)
    .replace(/[\s\p{P}]+/gu, " ")
    .trim()
    .toLowerCase();
}

/** Whether `id` stands in the URL, not as part of a longer word or number. */
function hasPart(href: string, id: string): boolean {
  if (id.length < minIdLength || id.length > 200) return false;
  const at = href.indexOf(id);
  const isEdge = (character: string | undefined) => !/[a-z\d]/i.test(character ?? "");
  return at >= 0 && isEdge(href[at - 1]) && isEdge(href[at + id.length]);
}
