import type { Steps } from "../../../parsers/steps.ts";
import { pageKey, parseUrls } from "../../../parsers/url.ts";
import { isA, type Thing, textOf, textsWithin, thingsOf } from "../markup/thing.ts";

const videoTypes = new Set(["VideoObject", "MusicVideoObject"]);
export const audioTypes: ReadonlySet<string> = new Set([
  "AudioObject",
  "MusicRecording",
  "PodcastEpisode",
  "RadioEpisode",
]);
const pageTypes =
  /(?:Article|Posting|Page|Report|Review|Recipe|CreativeWork|Product|Event|Movie|Episode|Series)$/;
const articleTypes = /(?:Article|Posting|Report|Review|Recipe)$/;
/** Properties whose media the page only mentions. */
const sideProperties = new Set(
  "itemlistelement track tracks relatedlink isrelatedto hasrelatedvideo suggestedvideo trailer haspart comment review potentialaction".split(
    " ",
  ),
);
const descriptiveProperties = "name description duration uploaddate thumbnailurl author".split(" ");
const maxThings = 2_000;
/** If a page has more media than this, the first one is not its main medium. */
const maxCandidates = 3;

/** What the page's other vocabularies state about it, to compare media with. */
export interface PageIdentity {
  /** Keys (`pageKey`) of the URLs of the page and of its players. */
  keys: ReadonlySet<string>;
  titles: readonly string[];
  isArticle: boolean;
  isFrontPage: boolean;
  /** Another vocabulary calls the page video or audio. */
  isMedium: boolean;
}

export interface MediumChoice {
  medium: Thing | null;
  /**
   * The medium is a part of the page, as in an article, not what the page is about. True for audio too:
   * its name lacks the artist, which the page's title has.
   */
  isPart: boolean;
  /** The things that describe the page, the most specific first. */
  pages: Thing[];
}

interface Found {
  thing: Thing;
  /** The property that it is a value of; "" on the top level. */
  property: string;
  isInArticle: boolean;
  isAside: boolean;
}

/**
 * Chooses the medium that the page is about from the graph of `roots`: the page's main entity, else one
 * with the page's URL or title, else the first unless there are many. Chooses none if the page only
 * lists media, or is its site's front page and no vocabulary calls it video or audio.
 */
export function* chooseMedium(
  roots: readonly Thing[],
  page: PageIdentity,
  base: URL,
): Steps<MediumChoice> {
  const found = yield* walk(roots);
  const pages = found.filter(
    ({ thing, isAside }) => !isAside && thing.types.some((type) => pageTypes.test(type)),
  );
  const chosen =
    (yield* choose(found.filter(isVideo), page, base)) ??
    (yield* choose(found.filter(isAudio), page, base));
  const isOnArticle = page.isArticle || pages.some(({ thing }) => isArticle(thing));
  return {
    medium: chosen === null ? null : mostDetailed(chosen, found),
    isPart:
      chosen !== null &&
      (isAudio(chosen) || chosen.isInArticle || (isOnArticle && chosen.property !== "mainentity")),
    pages: yield* rankPages(pages, page, base),
  };
}

/** Sorts the page's own article first, then other articles, then all other things. */
function* rankPages(found: Found[], page: PageIdentity, base: URL): Steps<Thing[]> {
  const own: Thing[] = [];
  const articles: Thing[] = [];
  const others: Thing[] = [];
  for (const { thing } of found) {
    yield;
    if (!isArticle(thing)) others.push(thing);
    else if (matchesUrl(thing, page, base)) own.push(thing);
    else articles.push(thing);
  }
  return [...own, ...articles, ...others];
}

function* choose(candidates: Found[], page: PageIdentity, base: URL): Steps<Found | null> {
  const main = candidates.find(({ property }) => property === "mainentity");
  if (main !== undefined) return main;
  if (page.isFrontPage && !page.isMedium) return null;
  for (const candidate of candidates) {
    if (matchesUrl(candidate.thing, page, base)) return candidate;
    yield;
  }
  const matching = candidates.find(({ thing }) => matchesTitle(thing, page));
  if (matching !== undefined) return matching;
  const direct = candidates.filter(({ isAside }) => !isAside);
  const first = direct[0] ?? null;
  const isMain =
    first !== null &&
    (first.isInArticle || page.isMedium || countDistinct(direct) <= maxCandidates);
  return isMain ? first : null;
}

/** Returns the most detailed of the things with the same `contentUrl`: some pages repeat a medium. */
function mostDetailed({ thing }: Found, found: Found[]): Thing {
  const contentUrl = textOf(thing, "contenturl");
  if (contentUrl === null) return thing;
  return found
    .map((each) => each.thing)
    .filter((each) => textOf(each, "contenturl") === contentUrl)
    .reduce((best, each) => (countDescriptive(each) > countDescriptive(best) ? each : best), thing);
}

function countDescriptive(thing: Thing): number {
  return descriptiveProperties.filter((property) => thing.properties.has(property)).length;
}

function matchesUrl(thing: Thing, page: PageIdentity, base: URL): boolean {
  const stated = [
    thing.id,
    textOf(thing, "url"),
    ...textsWithin(thing, "mainentityofpage", "url"),
    ...thingsOf(thing, "mainentityofpage").map(({ id }) => id),
    textOf(thing, "embedurl"),
  ];
  return parseUrls(stated, base).some((url) => page.keys.has(pageKey(url)));
}

function matchesTitle(thing: Thing, { titles }: PageIdentity): boolean {
  const name = comparable(textOf(thing, "name"));
  return name !== "" && titles.some((title) => comparable(title) === name);
}

function comparable(text: string | null): string {
  return (text ?? "").slice(0, 1_000).replace(/\s+/g, " ").trim().toLowerCase();
}

function countDistinct(candidates: Found[]): number {
  const keys = candidates.map(
    ({ thing }) => `${textOf(thing, "name")} ${textOf(thing, "contenturl", "embedurl")}`,
  );
  return new Set(keys).size;
}

function isVideo({ thing }: Found): boolean {
  return isA(thing, videoTypes) && thing.properties.size > 0;
}

function isAudio({ thing }: Found): boolean {
  return isA(thing, audioTypes) && thing.properties.size > 0;
}

function isArticle(thing: Thing): boolean {
  return thing.types.some((type) => articleTypes.test(type));
}

/** Returns all things of the graph in page order, each once, at most `maxThings`. */
function* walk(roots: readonly Thing[]): Steps<Found[]> {
  const found: Found[] = [];
  const seen = new Set<Thing>();
  const pending = roots
    .map((thing): Found => ({ thing, property: "", isInArticle: false, isAside: false }))
    .toReversed();
  while (found.length < maxThings) {
    const next = pending.pop();
    if (next === undefined) break;
    const { thing } = next;
    if (seen.has(thing)) continue;
    seen.add(thing);
    found.push(next);
    yield;
    const isInArticle = next.isInArticle || isArticle(thing);
    const isInList = next.isAside || thing.types.includes("ItemList");
    const children: Found[] = [];
    for (const [property, values] of thing.properties) {
      const isAside = isInList || sideProperties.has(property);
      for (const value of values) {
        if (typeof value !== "string")
          children.push({ thing: value, property, isInArticle, isAside });
      }
    }
    pending.push(...children.toReversed());
  }
  return found;
}
