import { isSamePage, tryParseUrl } from "../../../parsers/url.ts";
import { isA, type Thing, textOf, textsWithin, thingsOf } from "./thing.ts";

const videoTypes = new Set(["VideoObject", "MusicVideoObject"]);
const audioTypes = new Set(["AudioObject", "MusicRecording", "PodcastEpisode", "RadioEpisode"]);
const pageTypes =
  /(?:Article|Posting|Page|Report|Review|Recipe|CreativeWork|Product|Event|Movie|Episode|Series)$/;
const articleTypes = /(?:Article|Posting|Report|Review|Recipe)$/;
/** Ways to media that the page only mentions. */
const sideProperties = new Set(
  "itemlistelement track tracks relatedlink isrelatedto hasrelatedvideo suggestedvideo trailer haspart comment review potentialaction".split(
    " ",
  ),
);
const tellingProperties = "name description duration uploaddate thumbnailurl author".split(" ");
const maxThings = 2_000;
/** With more media on a page than that, none stands out. */
const maxRivals = 3;

/** The page as its other vocabularies describe it: what the medium must fit. */
export interface PageIdentity {
  addresses: readonly URL[];
  titles: readonly string[];
  isArticle: boolean;
  isFrontPage: boolean;
  /** Another vocabulary calls the page a video or a sound. */
  isMedium: boolean;
}

export interface MediumChoice {
  medium: Thing | null;
  /**
   * The medium is an addition to the page, as in an article, not the page's subject. Recordings count as
   * such too: their own name lacks what the page's title has, the artist's.
   */
  isPart: boolean;
  pages: Thing[];
}

interface Found {
  thing: Thing;
  /** The property that leads to it; "" on the top level. */
  property: string;
  isInArticle: boolean;
  isAside: boolean;
}

/**
 * Finds the medium that the page is about among all that its graph names: the page's main entity, else
 * one whose address or name is the page's, else the first unless there are many. A page that only lists
 * media, or shows one off on its site's front page, is about none.
 */
export function chooseMedium(roots: readonly Thing[], page: PageIdentity, base: URL): MediumChoice {
  const found = walk(roots);
  const pages = found.filter(
    ({ thing, isAside }) => !isAside && thing.types.some((type) => pageTypes.test(type)),
  );
  const chosen =
    choose(found.filter(isVideo), page, base) ?? choose(found.filter(isAudio), page, base);
  const isArticle =
    page.isArticle ||
    pages.some(({ thing }) => thing.types.some((type) => articleTypes.test(type)));
  return {
    medium: chosen === null ? null : richestTwin(chosen, found),
    isPart:
      chosen !== null &&
      (isAudio(chosen) || chosen.isInArticle || (isArticle && chosen.property !== "mainentity")),
    pages: pages
      .map(({ thing }) => thing)
      .toSorted((a, b) => pageRank(b, page, base) - pageRank(a, page, base)),
  };
}

/** An article says more of its page than the page's frame does; the page's own article most. */
function pageRank(thing: Thing, page: PageIdentity, base: URL): number {
  if (!thing.types.some((type) => articleTypes.test(type))) return 0;
  return fitsAddress(thing, page, base) ? 2 : 1;
}

function choose(candidates: Found[], page: PageIdentity, base: URL): Found | null {
  const main = candidates.find(({ property }) => property === "mainentity");
  if (main !== undefined) return main;
  if (page.isFrontPage && !page.isMedium) return null;
  const fitting =
    candidates.find(({ thing }) => fitsAddress(thing, page, base)) ??
    candidates.find(({ thing }) => fitsTitle(thing, page));
  if (fitting !== undefined) return fitting;
  const rivals = candidates.filter(({ isAside }) => !isAside);
  const first = rivals[0] ?? null;
  const isLead =
    first !== null && (first.isInArticle || page.isMedium || distinct(rivals) <= maxRivals);
  return isLead ? first : null;
}

/** Pages state the same medium twice, once with all there is to say. */
function richestTwin({ thing }: Found, found: Found[]): Thing {
  const address = textOf(thing, "contenturl");
  const twins = found.filter(
    (twin) => address !== null && textOf(twin.thing, "contenturl") === address,
  );
  return twins.reduce(
    (best, twin) => (richness(twin.thing) > richness(best) ? twin.thing : best),
    thing,
  );
}

function richness(thing: Thing): number {
  return tellingProperties.filter((property) => thing.properties.has(property)).length;
}

function fitsAddress(thing: Thing, page: PageIdentity, base: URL): boolean {
  const stated = [
    thing.id,
    textOf(thing, "url"),
    ...textsWithin(thing, "mainentityofpage", "url"),
    ...thingsOf(thing, "mainentityofpage").map(({ id }) => id),
    textOf(thing, "embedurl"),
  ];
  return stated.some((each) => {
    const url = tryParseUrl(each, base);
    return url !== null && page.addresses.some((address) => isSamePage(url, address));
  });
}

function fitsTitle(thing: Thing, { titles }: PageIdentity): boolean {
  const name = comparable(textOf(thing, "name"));
  return name !== "" && titles.some((title) => comparable(title) === name);
}

function comparable(text: string | null): string {
  return (text ?? "").slice(0, 1_000).replace(/\s+/g, " ").trim().toLowerCase();
}

function distinct(candidates: Found[]): number {
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

/** All things in page order, each once. */
function walk(roots: readonly Thing[]): Found[] {
  const found: Found[] = [];
  const seen = new Set<Thing>();
  const pending: Found[] = roots.map((thing) => ({
    thing,
    property: "",
    isInArticle: false,
    isAside: false,
  }));
  pending.reverse();
  for (
    let next = pending.pop();
    next !== undefined && found.length < maxThings;
    next = pending.pop()
  ) {
    const { thing, isInArticle, isAside } = next;
    if (seen.has(thing)) continue;
    seen.add(thing);
    found.push(next);
    const children: Found[] = [];
    for (const [property, values] of thing.properties) {
      for (const value of values) {
        if (typeof value === "string") continue;
        children.push({
          thing: value,
          property,
          isInArticle: isInArticle || thing.types.some((type) => articleTypes.test(type)),
          isAside: isAside || sideProperties.has(property) || thing.types.includes("ItemList"),
        });
      }
    }
    pending.push(...children.toReversed());
  }
  return found;
}
