import type { SampleGroup } from "../../samples.ts";
import { ascii, fullBox, u32, u32Table } from "../boxes.ts";
import { keptGroups } from "../sample-groups.ts";

/** Which samples of a track are in groups of one type (ISO/IEC 14496-12 §8.9). */
export interface GroupTable {
  type: SampleGroup["type"];
  descriptions: readonly string[];
  /** Counts of samples and the number of their description, from 1, in turn; 0: they are in no group. */
  runs: readonly number[];
}

/**
 * Returns a table for each type of group that samples are in.
 * @param pairs Counts of samples and the number of their set in turn.
 */
export function groupTables(sets: readonly (readonly SampleGroup[] | undefined)[], pairs: Uint32Array): GroupTable[] {
  return [...keptGroups.keys()].flatMap((type) => {
    const bySet = sets.map((set) => set?.find((group) => group.type === type)?.description);
    const descriptions = [...new Set(bySet.filter((description) => description !== undefined))];
    if (descriptions.length === 0) return [];
    const numbers = bySet.map((description) => (description === undefined ? 0 : descriptions.indexOf(description) + 1));
    const runs: number[] = [];
    for (let i = 0; i < pairs.length; i += 2) {
      const [count = 0, set = 0] = [pairs[i], pairs[i + 1]];
      const number = numbers[set] ?? 0;
      if (runs.at(-1) === number) runs[runs.length - 2]! += count;
      else runs.push(count, number);
    }
    return [{ type, descriptions, runs }];
  });
}

/** Returns an `sgpd` and an `sbgp` for each table. */
export function groupBoxes(tables: readonly GroupTable[]): Uint8Array[] {
  return tables.flatMap(({ type, descriptions, runs }) => {
    const [first = ""] = descriptions;
    const isEven = descriptions.every(({ length }) => length === first.length);
    const entries = descriptions.flatMap((description) => [
      ...(isEven ? [] : [u32(description.length)]),
      ascii(description),
    ]);
    return [
      fullBox("sgpd", 1, 0, ascii(type), u32(isEven ? first.length : 0, descriptions.length), ...entries),
      fullBox("sbgp", 0, 0, ascii(type), u32(runs.length / 2), u32Table(Uint32Array.from(runs))),
    ];
  });
}
