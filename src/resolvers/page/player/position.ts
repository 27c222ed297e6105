import type { Data } from "./data.ts";

/** The position of an item among the page's data. */
export interface Position {
  /** It is an element of a list. */
  isElement: boolean;
  /** It is one of several elements, and not the first of a playlist, which is what the player plays. */
  isListed: boolean;
}

/** The name of a field in an object whose fields are named by the ids of their values. */
const idName = /^[\w-]*\d[\w-]*$/;

/** Returns a function that tells an item's position; it remembers the lists. */
export function createPositions(): (item: Data) => Position {
  const known = new Map<Data, readonly Data[]>();
  const elementsOf = (list: Data): readonly Data[] => {
    const elements = known.get(list) ?? elementsIn(list);
    known.set(list, elements);
    return elements;
  };
  return (item) => positionOf(item, elementsOf);
}

function positionOf(item: Data, elementsOf: (list: Data) => readonly Data[]): Position {
  // The elements of a GraphQL connection are `{node: …}`.
  const element = item.name === "node" && item.parent !== null ? item.parent : item;
  const list = element.parent;
  const isList = list?.kind === "array" || (list?.kind === "object" && idName.test(element.name));
  if (list === null || !isList) return { isElement: false, isListed: false };
  const elements = elementsOf(list);
  const isPlayed = elements[0] === element && /playlist/i.test(list.name);
  return { isElement: true, isListed: elements.length > 1 && !isPlayed };
}

function elementsIn({ kind, fields }: Data): Data[] {
  return fields.flatMap(({ key, value }) =>
    typeof value !== "string" && (kind === "array" || idName.test(key)) ? [value] : [],
  );
}
