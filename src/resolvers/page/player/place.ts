import type { Data } from "./data.ts";

/** Where what describes a medium stands. */
export interface Place {
  /** It is an element of a list. */
  isElement: boolean;
  /** It is one of several; the first of a playlist is what the player plays, and stands for itself. */
  isListed: boolean;
}

export function placeOf(item: Data): Place {
  // The elements of a GraphQL connection are `{node: …}`.
  const element = item.name === "node" && item.parent !== null ? item.parent : item;
  const list = element.parent;
  if (list?.kind !== "array") return { isElement: false, isListed: false };
  const elements = list.fields.filter(({ value }) => typeof value !== "string");
  const isFirst = elements[0]?.value === element;
  const isPlayed = isFirst && /playlist/i.test(list.name);
  return { isElement: true, isListed: elements.length > 1 && !isPlayed };
}
