import { purposeKey } from "../model/format-ranking.ts";
import type { TrackRole } from "../model/track-roles.ts";

/** Audio, and what its manifest calls it. */
export interface ListedAudio {
  audio: { language: string | null; roles?: readonly TrackRole[]; name?: string };
  name: string | null;
  /** Audio of one group differs in what it is, that of several groups may differ in quality only. */
  group: string;
}

/**
 * Adds its name to all audio that nothing else tells apart: a group has several in one language and for the same purpose, with
 * different names. Of other groups, those with such a name get it too.
 */
export function addNames(listed: readonly ListedAudio[]): void {
  const keyOf = ({ audio, name }: ListedAudio) => JSON.stringify([purposeKey(audio), name]);
  const named = listed.filter(({ name }) => name !== null);
  const groups = Map.groupBy(named, ({ audio, group }) => JSON.stringify([purposeKey(audio), group]));
  const keys = [...groups.values()].map((same) => new Set(same.map(keyOf)));
  const telling = new Set(keys.filter(({ size }) => size > 1).flatMap((each) => [...each]));
  for (const each of named) if (each.name !== null && telling.has(keyOf(each))) each.audio.name = each.name;
}
