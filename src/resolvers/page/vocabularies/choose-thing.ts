import { pageKey, parseUrls } from "../../../parsers/url.ts";
import { type Candidate, chooseMedium, type PageIdentity } from "../choice/choose-medium.ts";
import { isOfTrailer, namesTrailer } from "../choice/similarity.ts";
import { durationOf, isA, type Thing, textOf, textsWithin, thingsOf } from "../markup/thing.ts";

const videoTypes = new Set(["VideoObject", "MusicVideoObject"]);
export const audioTypes: ReadonlySet<string> = new Set(
  "AudioObject MusicRecording PodcastEpisode RadioEpisode".split(" "),
);
const pageTypes = /(?:Article|Posting|Page|Report|Review|Recipe|CreativeWork|Product|Event|Movie|Episode|Series)$/;
const articleTypes = /(?:Article|Posting|Report|Review|Recipe)$/;
/** Properties whose media the page only mentions. */
const sideProperties = new Set(
  "itemlistelement track tracks relatedlink isrelatedto hasrelatedvideo suggestedvideo trailer haspart comment review potentialaction".split(
    " ",
  ),
);
const descriptiveProperties = "name description duration uploaddate thumbnailurl author".split(" ");
const maxThings = 2_000;
/** Of a thing. */
const maxPages = 5;

interface ThingChoice {
  medium: Thing | null;
  /**
   * The medium is a part of the page, as in an article, not what the page is about. True for audio too:
   * its name lacks the artist, which the page's title has.
   */
  isPart: boolean;
  /** The page is or has an article. */
  isOnArticle: boolean;
  /** The things that describe the page, the most specific first. */
  pages: Thing[];
  /** The URLs of the media and players of the trailers that a film on the page has. */
  trailerUrls: URL[];
}

interface Found {
  thing: Thing;
  /** The property that it is a value of; "" on the top level. */
  property: string;
  isInArticle: boolean;
  isAside: boolean;
}

/**
 * Chooses the medium that the page is about from the graph of `roots`, and the things that describe the page. The trailer of a film
 * is the medium only of a page that calls itself one, or with `takesTrailers`.
 */
export function chooseThing(
  roots: readonly Thing[],
  page: PageIdentity & { isArticle: boolean },
  { base, takesTrailers }: { base: URL; takesTrailers: boolean },
): ThingChoice {
  const found = walk(roots);
  const pages = found.filter(({ thing, isAside }) => !isAside && thing.types.some((type) => pageTypes.test(type)));
  const areWanted = takesTrailers || isOfTrailer(page);
  const trailers = new Set(areWanted ? [] : found.flatMap(({ thing }) => thingsOf(thing, "trailer")));
  const candidates: ThingCandidate[] = [];
  for (const each of found) {
    if (isMedium(each.thing) && !trailers.has(each.thing)) candidates.push(toCandidate(each, base));
  }
  const chosen = chooseMedium(candidates, page);
  const isOnArticle = page.isArticle || pages.some(({ thing }) => isArticle(thing));
  return {
    medium: chosen === null ? null : mostDetailed(chosen.thing, candidates),
    isPart: chosen !== null && (chosen.kind === "audio" || chosen.isInArticle || (isOnArticle && !chosen.isMain)),
    isOnArticle,
    pages: rankPages(pages, page, base),
    trailerUrls: [...trailers].flatMap((thing) =>
      parseUrls([textOf(thing, "contenturl"), textOf(thing, "embedurl")], base),
    ),
  };
}

interface ThingCandidate extends Candidate {
  thing: Thing;
}

function toCandidate({ thing, property, isInArticle, isAside }: Found, base: URL): ThingCandidate {
  const name = textOf(thing, "name");
  return {
    thing,
    key: `${name} ${textOf(thing, "contenturl", "embedurl")}`,
    kind: isA(thing, videoTypes) ? "video" : "audio",
    titles: name === null ? [] : [name],
    texts: [],
    ids: [],
    // Not kept: on a long base, short URLs of many things would take much memory.
    get urls() {
      return urlsOf(thing, base);
    },
    duration: durationOf(thing),
    exclusion: isAside ? "other" : "none",
    isInOther: isAside,
    isMain: property === "mainentity",
    isTrailer: [...thing.types, ...textsWithin(thing, "additionaltype"), ...textsWithin(thing, "genre")].some(
      namesTrailer,
    ),
    isInArticle,
  };
}

/** Returns the URLs of a thing, of its page and of its player. */
function urlsOf(thing: Thing, base: URL): URL[] {
  const stated = [
    thing.id,
    textOf(thing, "url"),
    ...textsWithin(thing, "mainentityofpage", "url").slice(0, maxPages),
    ...thingsOf(thing, "mainentityofpage")
      .slice(0, maxPages)
      .map(({ id }) => id),
    textOf(thing, "embedurl"),
  ];
  return parseUrls(stated, base);
}

/** Sorts the page's own article first, then other articles, then all other things. */
function rankPages(found: Found[], page: PageIdentity, base: URL): Thing[] {
  const keys = new Set(page.urls.map(pageKey));
  const own: Thing[] = [];
  const articles: Thing[] = [];
  const others: Thing[] = [];
  for (const { thing } of found) {
    if (!isArticle(thing)) others.push(thing);
    else if (urlsOf(thing, base).some((url) => keys.has(pageKey(url)))) own.push(thing);
    else articles.push(thing);
  }
  return [...own, ...articles, ...others];
}

/** Returns the most detailed of the media with the same `contentUrl`: some pages repeat a medium. */
function mostDetailed(thing: Thing, media: readonly ThingCandidate[]): Thing {
  const contentUrl = textOf(thing, "contenturl");
  if (contentUrl === null) return thing;
  return media
    .map((each) => each.thing)
    .filter((each) => textOf(each, "contenturl") === contentUrl)
    .reduce((best, each) => (countDescriptive(each) > countDescriptive(best) ? each : best), thing);
}

function countDescriptive(thing: Thing): number {
  return descriptiveProperties.filter((property) => thing.properties.has(property)).length;
}

/** Whether a thing is a video or an audio. */
export function isMedium(thing: Thing): boolean {
  return thing.properties.size > 0 && (isA(thing, videoTypes) || isA(thing, audioTypes));
}

function isArticle(thing: Thing): boolean {
  return thing.types.some((type) => articleTypes.test(type));
}

/** Returns all things of the graph in page order, each once, at most `maxThings`. */
function walk(roots: readonly Thing[]): Found[] {
  const found: Found[] = [];
  const seen = new Set<Thing>();
  const tops = new Set(roots);
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
    const isInArticle = next.isInArticle || isArticle(thing);
    const isInList = next.isAside || thing.types.includes("ItemList");
    const children: Found[] = [];
    for (const [property, values] of thing.properties) {
      const isAside = isInList || sideProperties.has(property);
      for (const value of values) {
        if (typeof value === "string") continue;
        // A page that is on the top level is not aside because its site, say, refers to it.
        if (!isAside || isMedium(value) || !tops.has(value))
          children.push({ thing: value, property, isInArticle, isAside });
      }
    }
    pending.push(...children.toReversed());
  }
  return found;
}
