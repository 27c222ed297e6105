import { mediaTypeOf } from "../../../parsers/media-type.ts";
import { tryParseUrl } from "../../../parsers/url.ts";
import type { Candidate } from "../choice/candidate.ts";
import { names } from "../lexicon/words.ts";
import { type Data, isTag, namesFile } from "../scripts/data.ts";
import type { PlayerMedium } from "./candidates.ts";
import { describeItem } from "./item.ts";
import { exclusionOfData } from "./names.ts";

/** A player's medium with what tells whether it is the page's. */
export interface PlayerCandidate extends Candidate {
  medium: PlayerMedium;
}

/** Returns a function that describes the media of a page at `pageUrl`; it remembers the lists that they are in. */
export function createDescriber(pageUrl: URL): (medium: PlayerMedium) => PlayerCandidate {
  const findPosition = createPositions();
  return (medium) => {
    const { item, resources, exclusion } = medium;
    const { urls, ...described } = describeItem(item);
    const position = findPosition(item);
    const itemExclusion = exclusionOfData(item);
    const { titles, duration } = described;
    return {
      medium,
      key: medium,
      kind: resources.some(isVideo) ? "video" : "audio",
      ...described,
      urls: urls.flatMap((url) => (namesFile(url) ? [] : (tryParseUrl(url, pageUrl) ?? []))),
      exclusion,
      isInOther: itemExclusion === "other",
      isDescribed: titles.length > 0 && duration !== null && itemExclusion === "none",
      isMain: false,
      isInArticle: false,
      ...position,
      isOneOfTags: position.isListed && isTag(item) && resources.length === 1,
    };
  };
}

function isVideo({ fallback, url }: PlayerMedium["resources"][number]): boolean {
  return fallback === "video" && mediaTypeOf(null, url).kind !== "audio";
}

type Position = Pick<Candidate, "isElement" | "isListed">;

function createPositions(): (item: Data) => Position {
  const known = new Map<Data, readonly Data[]>();
  const elementsOf = (list: Data): readonly Data[] => {
    const elements = known.get(list) ?? elementsIn(list);
    known.set(list, elements);
    return elements;
  };
  return (item) => positionOf(item, elementsOf);
}

/** Returns the position of an item. The first element of a playlist is what the player plays: it is not one of several. */
function positionOf(item: Data, elementsOf: (list: Data) => readonly Data[]): Position {
  // The elements of a GraphQL connection are `{node: …}`.
  const element = item.name === "node" && item.parent !== null ? item.parent : item;
  const list = element.parent;
  const isList = list?.kind === "array" || (list?.kind === "object" && isIdLike(element.name));
  if (list === null || !isList) return { isElement: false, isListed: false };
  const elements = elementsOf(list);
  const isPlayed = elements[0] === element && names.has(list.name, "playlist");
  return { isElement: true, isListed: elements.length > 1 && !isPlayed };
}

function elementsIn({ kind, fields }: Data): Data[] {
  return fields.flatMap(({ key, value }) =>
    typeof value !== "string" && (kind === "array" || isIdLike(key)) ? [value] : [],
  );
}

/** Whether it may be an id: a name with a digit, of letters, digits, `_` and `-`. */
function isIdLike(name: string): boolean {
  return /\d/.test(name) && !/[^\w-]/.test(name);
}
