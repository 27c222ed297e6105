import { mediaTypeOf } from "../../../parsers/media-type.ts";
import { parseLine } from "../../../parsers/text.ts";
import { parseUrls, tryParseUrl } from "../../../parsers/url.ts";
import { type Candidate, chooseMedium, type PageIdentity } from "../choice/choose-medium.ts";
import { namesTrailer } from "../choice/similarity.ts";
import { names } from "../lexicon/words.ts";
import { listPlayed } from "../lists/played-entries.ts";
import type { Markup } from "../markup/markup.ts";
import { type ListedMedia, type Metadata, thumbnailsAt } from "../metadata.ts";
import { type Data, isTag, namesFile, onceForEach } from "../scripts/data.ts";
import { findCandidates, type PlayerMedium } from "./candidates.ts";
import { findData } from "./find-data.ts";
import { describeItem, durationOf, postersOf, subtitlesOf, titlesOf } from "./item.ts";
import { exclusionOfData } from "./names.ts";

/**
 * Extracts what a page's players are set up with: the medium that is the page's own, as its scripts and
 * tags name it. Returns {} if there is none; with `mayList` a list if they are set up with several media of which none is certainly
 * the page's own.
 */
export function extractPlayer(
  markup: Pick<Markup, "playerSources" | "pageText">,
  page: PageIdentity,
  { base, mayList }: { base: URL; mayList: boolean },
): Metadata {
  const pageUrl = page.urls[0] ?? base;
  const candidates: PlayerCandidate[] = [];
  for (const medium of findCandidates(findData(markup), base)) {
    if (medium.exclusion !== "never") candidates.push(describe(medium, pageUrl));
  }
  const isMedium = page.mediaType === "video" || page.mediaType === "audio";
  const list = mayList && !isMedium ? listSetUps(candidates, base) : null;
  // On a front page, a medium is chosen only if it is certain.
  if (list !== null && chooseMedium(candidates, { ...page, isFrontPage: true, isMedium: false }) === null)
    return { list };
  const chosen = chooseMedium(candidates, page);
  if (chosen === null) return {};
  const { item, resources } = chosen.medium;
  return {
    resources,
    duration: durationOf(item),
    thumbnails: parseUrls(postersOf(item).slice(0, 5), base).flatMap((url) => thumbnailsAt(url)),
    subtitles: subtitlesOf(item, base),
  };
}

/** A player's medium, with the signs of whether it is the page's. */
interface PlayerCandidate extends Candidate {
  medium: PlayerMedium;
}

function describe(medium: PlayerMedium, pageUrl: URL): PlayerCandidate {
  const { item, resources, exclusion } = medium;
  const { urls, ...described } = describeItem(item);
  const position = positionOf(item);
  const itemExclusion = exclusionOfData(item);
  const { titles, duration } = described;
  return {
    medium,
    key: medium,
    kind: resources.some(isVideo) ? "video" : "audio",
    ...described,
    // Not kept: at a long page URL, short URLs of many media would take much memory.
    get urls() {
      return urls.flatMap((url) => (namesFile(url) ? [] : (tryParseUrl(url, pageUrl) ?? [])));
    },
    exclusion,
    isInOther: itemExclusion === "other",
    isDescribed: titles.length > 0 && duration !== null && itemExclusion === "none",
    isTrailer: resources.some(({ url }) => namesTrailer(url.pathname)),
    ...position,
    isOneOfTags: position.isListed && isTag(item) && resources.length === 1,
  };
}

/**
 * Returns what the playlists of a page play, and what further players are set up with; null for fewer than two media, or if the page has
 * another one beside them.
 */
function listSetUps(candidates: readonly PlayerCandidate[], base: URL): ListedMedia | null {
  const direct = candidates.filter(({ exclusion }) => exclusion === "none");
  const listed = direct.filter(({ medium: { item }, titles }) => {
    const isSetUp = names.has(item.name, "setUp") && item.parent?.kind === "block" && titles.length > 0;
    return isSetUp || isOfPlaylist(item);
  });
  if (listed.length < direct.length) return null;
  const media = listed.map(({ medium: { item, resources }, titles, isTrailer }) => ({
    resources,
    title: parseLine(titles[0]),
    duration: durationOf(item),
    thumbnail: tryParseUrl(postersOf(item)[0], base),
    isTrailer: isTrailer === true || titles.some(namesTrailer),
  }));
  return listPlayed(media);
}

function isOfPlaylist({ parent }: Data): boolean {
  return parent?.kind === "array" && names.has(parent.name, "playlist");
}

function isVideo({ fallback, url }: PlayerMedium["resources"][number]): boolean {
  return fallback === "video" && mediaTypeOf(null, url).kind !== "audio";
}

type Position = Required<Pick<Candidate, "isElement" | "isListed">>;

/** Returns the position of an item. The first element of a playlist, after trailers, is what the player plays: it is not one of several. */
function positionOf(item: Data): Position {
  // The elements of a GraphQL connection are `{node: …}`.
  const element = item.name === "node" && item.parent !== null ? item.parent : item;
  const list = element.parent;
  const isList = list?.kind === "array" || (list?.kind === "object" && isIdLike(element.name));
  if (list === null || !isList) return { isElement: false, isListed: false };
  const elements = elementsIn(list);
  const isPlayed = firstOf(list) === element && names.has(list.name, "playlist");
  return { isElement: true, isListed: elements.length > 1 && !isPlayed };
}

const elementsIn = onceForEach(({ kind, fields }) =>
  fields.flatMap(({ key, value }) => (typeof value !== "string" && (kind === "array" || isIdLike(key)) ? [value] : [])),
);

const firstOf = onceForEach((list) => {
  const elements = elementsIn(list);
  return elements.find((each) => !titlesOf(each).some(namesTrailer)) ?? elements[0];
});

/** Whether it may be an id: a name with a digit, of letters, digits, `_` and `-`. */
function isIdLike(name: string): boolean {
  return /\d/.test(name) && !/[^\w-]/.test(name);
}
