import type { Data } from "./data.ts";

/** Where what describes a medium stands. */
export interface Place {
  /** It is an element of a list. */
  isElement: boolean;
  /** It is one of several; the first of a playlist is what the player plays, and stands for itself. */
  isListed: boolean;
}

/** Of an object whose fields are named by the ids of what they hold. */
const idName = /^[\w-]*\d[\w-]*$/;

export function placeOf(item: Data): Place {
  // The elements of a GraphQL connection are `{node: …}`.
  const element = item.name === "node" && item.parent !== null ? item.parent : item;
  const list = element.parent;
  const isList = list?.kind === "array" || (list?.kind === "object" && idName.test(element.name));
  if (list === null || !isList) return { isElement: false, isListed: false };
  const elements = list.fields.filter(({ key, value }) => {
    return typeof value !== "string" && (list.kind === "array" || idName.test(key));
  });
  const isPlayed = elements[0]?.value === element && /playlist/i.test(list.name);
  return { isElement: true, isListed: elements.length > 1 && !isPlayed };
}
