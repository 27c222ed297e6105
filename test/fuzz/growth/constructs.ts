import type { Grow } from "./grow.ts";
import { linkedData } from "./linked-data.ts";
import { markup } from "./markup.ts";
import { players } from "./players.ts";
import { scripts } from "./scripts.ts";
import { vocabularies } from "./vocabularies.ts";

/** By name: what the page reader knows, and what is broken of it. */
export const constructs: readonly (readonly [name: string, Grow])[] = [
  ...named("markup", markup),
  ...named("vocabularies", vocabularies),
  ...named("JSON-LD", linkedData),
  ...named("scripts", scripts),
  ...named("players", players),
];

function named(group: string, table: Readonly<Record<string, Grow>>): [string, Grow][] {
  return Object.entries(table).map(([name, grow]) => [`${group}: ${name}`, grow]);
}
