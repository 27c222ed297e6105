import type { SampleGroup } from "../samples.ts";
import { openFullBox, openRunLengths } from "./box-reader.ts";
import { ascii, type Box, childrenOf, fullBox, typeAt, u32, u32Table } from "./boxes.ts";

type GroupType = SampleGroup["type"];
type GroupSet = readonly SampleGroup[] | undefined;

/**
 * The groups that are kept, which say where decoding may start, and the bytes of a description of each where its box does not say
 * how many. `sync` repeats what the pictures say, other types are for editors or DRM, and `csgp` is not read.
 */
const keptGroups: ReadonlyMap<GroupType, number> = new Map([
  ["roll", 2],
  ["prol", 2],
  ["rap ", 1],
]);

/** Descriptions in `sgpd` boxes, and the number of the one that samples have by default, from 1; 0: none. */
export type GroupDescriptions = ReadonlyMap<GroupType, { entries: readonly string[]; byDefault: number }>;

/** Of a track or a fragment; further ones are left out. */
const maxDescriptions = 256;
/** The kept groups have one or two bytes. */
const maxDescriptionBytes = 16;
/** Numbers in a fragment above it count its own descriptions (ISO/IEC 14496-12 §8.9.4). */
const ownDescriptions = 0x10000;

/** Reads the `sgpd` boxes (§8.9.3) in a `stbl` or `traf`. A damaged one is left out: media can be read without it. */
export function readGroupDescriptions(bytes: Uint8Array, parent: Box): GroupDescriptions {
  const all = new Map<GroupType, { entries: string[]; byDefault: number }>();
  for (const { box, type } of groupBoxesIn(bytes, parent, "sgpd")) {
    const reader = openFullBox(bytes, box);
    const { version } = reader;
    if (reader.left < 8 + 4 * Math.min(version, 2)) continue;
    reader.skip(4);
    const length = version >= 1 ? reader.u32() : (keptGroups.get(type) ?? 0);
    const byDefault = version >= 2 ? reader.u32() : 0;
    const entries: string[] = [];
    for (let left = Math.min(reader.u32(), maxDescriptions); left > 0; left--) {
      const isStated = length === 0 && reader.left >= 4;
      const own = isStated ? reader.u32() : length;
      if (own === 0 || own > Math.min(reader.left, maxDescriptionBytes)) break;
      const at = box.end - reader.left;
      entries.push(Buffer.from(bytes.subarray(at, at + own)).toString("latin1"));
      reader.skip(own);
    }
    all.set(type, { entries, byDefault });
  }
  return all;
}

/**
 * Returns a function that gives the groups of one sample of a `stbl` or `traf` after the other by its `sbgp` boxes (§8.9.2);
 * undefined if no sample has one. `inTrack`: the descriptions of the track, `inFragment` those of the `traf`.
 */
export function openSampleGroups(
  bytes: Uint8Array,
  parent: Box,
  inTrack: GroupDescriptions,
  inFragment: GroupDescriptions = new Map(),
): (() => GroupSet) | undefined {
  if (inTrack.size + inFragment.size === 0) return undefined;
  const boxes = groupBoxesIn(bytes, parent, "sbgp");
  const columns = [...keptGroups.keys()].flatMap((type) => {
    const [own, general] = [inFragment.get(type), inTrack.get(type)];
    const ownDefault = own !== undefined && own.byDefault > 0 ? own.byDefault + ownDescriptions : undefined;
    const byDefault = ownDefault ?? general?.byDefault ?? 0;
    const found = boxes.find((each) => each.type === type)?.box;
    if (found === undefined && byDefault === 0) return [];
    const describe = (number: number) =>
      number > ownDescriptions ? own?.entries[number - ownDescriptions - 1] : general?.entries[number - 1];
    return [{ type, describe, next: openNumbers(bytes, found, byDefault) }];
  });
  if (columns.length === 0) return undefined;
  let latest: number[] = [];
  let set: GroupSet;
  return () => {
    const numbers = columns.map(({ next }) => next());
    if (numbers.every((number, i) => number === latest[i])) return set;
    latest = numbers;
    const groups = columns.flatMap(({ type, describe }, i) => {
      const description = describe(numbers[i] ?? 0);
      return description === undefined ? [] : [{ type, description }];
    });
    set = groups.length > 0 ? groups : undefined;
    return set;
  };
}

/** Returns a function that gives the number of a description for one sample after the other; `byDefault` after the last. */
function openNumbers(bytes: Uint8Array, found: Box | undefined, byDefault: number): () => number {
  if (found === undefined) return () => byDefault;
  const reader = openFullBox(bytes, found);
  reader.skip(reader.version === 0 || reader.left < 8 ? 4 : 8);
  const runs = reader.left < 4 ? 0 : Math.min(reader.u32(), Math.floor(reader.left / 8));
  return openRunLengths(reader, runs, byDefault);
}

/** Returns the boxes of one type about groups that are kept. */
function groupBoxesIn(bytes: Uint8Array, parent: Box, type: "sgpd" | "sbgp"): { box: Box; type: GroupType }[] {
  const [fullHeader, groupingType] = [4, 4];
  return childrenOf(bytes, parent, type).flatMap((box) => {
    if (box.end - box.body < fullHeader + groupingType) return [];
    const found = typeAt(bytes, box.body + fullHeader);
    return isKept(found) ? [{ box, type: found }] : [];
  });
}

const isKept = (type: string): type is GroupType => keptGroups.has(type as GroupType);

/** Returns how many samples before one in these groups have to be decoded for it (ISO/IEC 14496-12 §10.1): roll_distance below 0. */
export function rollOf(groups: GroupSet): number {
  if (groups === undefined) return 0;
  const distances = groups.filter(({ type, description }) => type !== "rap " && description.length >= 2);
  return Math.max(0, ...distances.map(({ description }) => -Buffer.from(description, "latin1").readInt16BE(0)));
}

/** Further ones are left out. */
const maxSets = 1 << 10;

/** Creates a list of the distinct sets of groups that samples of a track are in. */
export function createGroupSets() {
  const sets: GroupSet[] = [undefined];
  const numbers = new Map<string, number>();
  let latest: GroupSet;
  let latestNumber = 0;
  return {
    /** By their numbers; 0 is none. */
    all: sets as readonly GroupSet[],
    /** Adds `set` unless it is known; returns its number. */
    add(set: GroupSet): number {
      if (set === latest) return latestNumber;
      latest = set;
      const key = set?.map(({ type, description }) => type + description).join() ?? "";
      latestNumber = set === undefined ? 0 : (numbers.get(key) ?? 0);
      if (set !== undefined && latestNumber === 0 && sets.length < maxSets) {
        latestNumber = sets.push(set) - 1;
        numbers.set(key, latestNumber);
      }
      return latestNumber;
    },
  };
}

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
